#include "interpose/profile/frame_rules.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/stat.h>

#include "interpose/profile/modules.h"
#include "interpose/profile/process_state.h"
#include "interpose/profile/stack_bounds.h"
#include "interpose/profile/system.h"

// The names carry libunwind's prefix for this architecture.
#define RELOCK_STRING(name) #name
#define RELOCK_NAME_OF(name) RELOCK_STRING(name)

// Exported by libunwind for its own companions, declared nowhere.
#define RELOCK_SEARCH_TABLE UNW_OBJ(dwarf_search_unwind_table)

namespace relock::profile {

namespace {

struct Unwinder {
  unw_addr_space_t space;
  decltype(&unw_init_remote) init_remote;
  decltype(&unw_step) step;
  decltype(&unw_get_reg) get_reg;
  decltype(&unw_get_save_loc) get_save_loc;
  decltype(&unw_is_signal_frame) is_signal_frame;
  int (*search_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int, void*);
};
Unwinder unwinder;

// ---- what libunwind may see ------------------------------------------------------------------

// A question to libunwind. Without a reader it is asked about made-up registers: the stack and base
// pointers have values far away from all memory, so that what it computes tells which of them the
// unwind table uses, and with which offset.
struct Question {
  StackReader* reader;
  std::uint64_t registers[UNW_X86_64_RIP + 1];
  LoadedObject object;  // the last one that was looked at
  bool nothing_known;   // the address has no unwind information
};

constexpr std::uint64_t kMadeUpStack = std::uint64_t{1} << 44;
constexpr std::uint64_t kMadeUpBase = std::uint64_t{1} << 45;
constexpr std::uint64_t kReadFromStack = std::uint64_t{1} << 46;
constexpr std::int64_t kFarthest = 1 << 28;

std::int64_t distance(std::uint64_t address, std::uint64_t from) {
  return static_cast<std::int64_t>(address - from);
}
bool near(std::uint64_t address, std::uint64_t from) {
  return distance(address, from) > -kFarthest && distance(address, from) < kFarthest;
}

int find_unwind_info(unw_addr_space_t space, unw_word_t address, unw_proc_info_t* info, int need,
                     void* context) {
  auto* question = static_cast<Question*>(context);
  if (!find_object(address, &question->object) || question->object.unwind_table == nullptr) {
    question->nothing_known = true;
    return -UNW_ENOINFO;
  }
  // The header of the sorted table: version, three encodings, where the frames are, their number.
  struct [[gnu::packed]] TableHeader {
    std::uint8_t version, frames_encoding, count_encoding, table_encoding;
    std::int32_t frames;
    std::uint32_t count;
  };
  const auto* header = static_cast<const TableHeader*>(question->object.unwind_table);
  const bool as_linkers_write = header->version == 1 && header->frames_encoding == 0x1b &&
                                header->count_encoding == 0x03 && header->table_encoding == 0x3b;
  if (!as_linkers_write || header->count == 0) {
    question->nothing_known = true;
    return -UNW_ENOINFO;
  }
  unw_dyn_info_t table{};
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.start_ip = question->object.start;
  table.end_ip = question->object.end;
  table.u.rti.segbase = reinterpret_cast<unw_word_t>(header);
  table.u.rti.table_data = reinterpret_cast<unw_word_t>(header + 1);
  table.u.rti.table_len = header->count;  // in words of 8 bytes, as the entries are
  const int result = unwinder.search_table(space, address, &table, info, need, context);
  if (result < 0) question->nothing_known = true;
  return result;
}

void put_unwind_info(unw_addr_space_t, unw_proc_info_t*, void*) {}
int no_dynamic_info(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }
int no_resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
int no_float(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }
int no_name(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) {
  return -UNW_ENOINFO;
}

int access_memory(unw_addr_space_t, unw_word_t address, unw_word_t* value, int writing,
                  void* context) {
  auto* question = static_cast<Question*>(context);
  if (writing != 0) return -UNW_EINVAL;
  const LoadedObject& object = question->object;
  const bool in_object = address >= object.start && address + 8 <= object.end;
  if (!in_object) {
    if (question->reader != nullptr) {
      std::uint64_t word = 0;
      if (question->reader->read_word(address, &word)) return *value = word, 0;
    } else if (near(address, kMadeUpStack) || near(address, kMadeUpBase)) {
      *value = address + kReadFromStack;  // near neither: a frame that depends on it is complex
      return 0;
    }
    if (!find_object(address, &question->object) || address + 8 > question->object.end) {
      return -UNW_EINVAL;
    }
  }
  *value = *reinterpret_cast<const unw_word_t*>(address);
  return 0;
}

int access_register(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int writing,
                    void* context) {
  auto* question = static_cast<Question*>(context);
  if (writing != 0 || number < 0 || number > UNW_X86_64_RIP) return -UNW_EBADREG;
  *value = question->registers[number];
  return 0;
}

// ---- rules -----------------------------------------------------------------------------------

constexpr std::uint32_t kRuleRows = 16384;  // a power of two
constexpr std::uint32_t kMaxProbes = 16;

// Rows are filled once. key: address | epoch << 48, with bit 63 set while the row is being filled.
struct RuleRow {
  std::uint64_t key;
  FrameRule rule;
};
RuleRow rule_rows[kRuleRows];
constexpr std::uint64_t kFilling = std::uint64_t{1} << 63;

std::uint64_t rule_key(std::uint64_t address) {
  return address | std::uint64_t{module_epoch() & 0x7fffu} << 48;
}
std::uint32_t rule_start(std::uint64_t key) {
  return static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15u >> 40);
}

bool find_rule(std::uint64_t key, FrameRule* rule) {
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    const RuleRow& row = rule_rows[(rule_start(key) + probe) & (kRuleRows - 1)];
    const std::uint64_t seen = read_acquire(row.key);  // pairs with keep_rule
    if (seen == 0) return false;
    if (seen == key) return *rule = row.rule, true;
  }
  return false;
}

void keep_rule(std::uint64_t key, const FrameRule& rule) {
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    RuleRow& row = rule_rows[(rule_start(key) + probe) & (kRuleRows - 1)];
    std::uint64_t empty = 0;
    if (!exchange_if(row.key, empty, key | kFilling)) continue;
    row.rule = rule;
    publish(row.key, key);  // pairs with find_rule
    return;
  }
  // Full here: the rule is asked for again next time.
}

bool near_enough(std::int64_t offset) { return offset > INT32_MIN / 2 && offset < INT32_MAX / 2; }

// Reads the answer out of a step with made-up registers.
FrameRule rule_from_step(unw_cursor_t* cursor) {
  FrameRule rule;
  rule.kind = FrameKind::kComplex;
  unw_word_t frame = 0;
  unw_save_loc_t saved_base{};
  unw_save_loc_t saved_return{};
  if (unwinder.get_reg(cursor, UNW_REG_SP, &frame) < 0 ||
      unwinder.get_save_loc(cursor, UNW_X86_64_RBP, &saved_base) < 0 ||
      unwinder.get_save_loc(cursor, UNW_X86_64_RIP, &saved_return) < 0) {
    return rule;
  }
  if (saved_return.type != UNW_SLT_MEMORY || saved_return.u.addr != frame - 8) return rule;
  const bool base_kept = saved_base.type == UNW_SLT_REG && saved_base.u.regnum == UNW_X86_64_RBP;
  const bool base_saved =
      saved_base.type == UNW_SLT_MEMORY && near_enough(distance(saved_base.u.addr, frame));
  if (!base_kept && !base_saved) return rule;
  if (base_saved) {
    rule.base_saved = true;
    rule.base_offset = static_cast<std::int32_t>(distance(saved_base.u.addr, frame));
  }
  if (near(frame, kMadeUpStack)) {
    rule.kind = FrameKind::kFromStack;
    rule.frame_offset = static_cast<std::int32_t>(distance(frame, kMadeUpStack));
  } else if (near(frame, kMadeUpBase)) {
    rule.kind = FrameKind::kFromBase;
    rule.frame_offset = static_cast<std::int32_t>(distance(frame, kMadeUpBase));
  }
  return rule;
}

FrameRule ask_unwinder(std::uint64_t address) {
  Question question{};
  question.registers[UNW_X86_64_RIP] = address;
  question.registers[UNW_X86_64_RSP] = kMadeUpStack;
  question.registers[UNW_X86_64_RBP] = kMadeUpBase;
  unw_cursor_t cursor;
  FrameRule rule;
  if (unwinder.init_remote(&cursor, unwinder.space, &question) < 0) return rule;
  const int result = unwinder.step(&cursor);
  if (question.nothing_known) return rule;
  if (unwinder.is_signal_frame(&cursor) > 0) {
    rule.kind = FrameKind::kSignal;
  } else if (result == 0) {
    rule.kind = FrameKind::kOutermost;
  } else if (result < 0) {
    rule.kind = FrameKind::kComplex;
  } else {
    rule = rule_from_step(&cursor);
  }
  return rule;
}

// ---- entering libunwind ------------------------------------------------------------------------

// By the one call that every sandbox allows. Nobody wakes the sleeper.
void nap_before_unwinder(long ns) {
  const timespec moment{0, ns};
  system_call(SYS_futex, &process->unwinder_lock, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, &moment,
              nullptr, 0);
}

// libunwind allocates from a pool of its own under a mutex of its own. One thread at a time, so
// that nobody waits for that mutex, and so that fork can be kept away from it.
class UnwinderEntry {
 public:
  UnwinderEntry() {
    for (int attempt = 0; attempt < 4000 && !entered_; ++attempt) {
      std::uint32_t open = 0;
      if (read(process->unwinder_ready) == 0) return;
      entered_ = exchange_if(process->unwinder_lock, open, 1u);
      if (!entered_ && attempt < 3995) __builtin_ia32_pause();
      // Whoever is inside may have lost its CPU.
      if (!entered_ && attempt >= 3995) nap_before_unwinder(1000000);
    }
  }
  ~UnwinderEntry() {
    if (entered_) publish(process->unwinder_lock, 0u);  // pairs with the exchange above
  }
  UnwinderEntry(const UnwinderEntry&) = delete;
  UnwinderEntry& operator=(const UnwinderEntry&) = delete;
  bool entered() const { return entered_; }

 private:
  bool entered_ = false;
};

// A child may be made while another thread is inside libunwind; the pool's mutex would stay locked
// in the child for ever. So fork waits until nobody is inside. The thread that forks from a signal
// handler which interrupted its own walk must not wait for itself: its child goes on with the walk.
constexpr int kForkWaits = 5000;  // of 20 us and more
// Each forking thread's own: two may run their handlers at the same time.
__thread bool fork_holds_unwinder __attribute__((tls_model("initial-exec")));
__thread bool fork_found_ready __attribute__((tls_model("initial-exec")));

void before_fork() {
  fork_found_ready = read(process->unwinder_ready) != 0;
  if (thread_state.busy != 0) return;
  for (int attempt = 0; attempt < kForkWaits; ++attempt) {
    std::uint32_t open = 0;
    fork_holds_unwinder = exchange_if(process->unwinder_lock, open, 1u);
    if (fork_holds_unwinder) return;
    nap_before_unwinder(20000);
  }
  fork_found_ready = false;  // a thread that never came back from libunwind: the child stays out
}
void after_fork() {
  if (fork_holds_unwinder) publish(process->unwinder_lock, 0u);  // pairs with UnwinderEntry
  fork_holds_unwinder = false;
}
// The child's page is clear. A child made behind the C library's back stays out of libunwind and
// uses the rules that are known already.
void after_fork_in_child() {
  fork_holds_unwinder = false;
  write(process->unwinder_ready, std::uint32_t{fork_found_ready});
}

// ---- opening -------------------------------------------------------------------------------

template <typename Function>
bool look_up(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// libunwind makes a pipe for checking addresses, at its first use. The recorder's address space
// never checks that way, and open descriptors would shift the numbers that the program's get.
void close_pipe(int first, int second) {
  struct stat left;
  struct stat right;
  if (fstat(first, &left) == 0 && fstat(second, &right) == 0 && S_ISFIFO(left.st_mode) &&
      S_ISFIFO(right.st_mode) && left.st_ino == right.st_ino) {
    sys_close(first);
    sys_close(second);
  }
}

void initialise_without_pipe(decltype(&unw_set_caching_policy) set_policy, bool fresh) {
  int next[2] = {-1, -1};
  if (fresh) {
    // The two numbers that the pipe will get.
    next[0] = sys_open("/", O_PATH | O_CLOEXEC);
    next[1] = sys_open("/", O_PATH | O_CLOEXEC);
    for (int descriptor : next) {
      if (descriptor >= 0) sys_close(descriptor);
    }
  }
  // Its cache would take a lock and two system calls for every frame; the rules replace it.
  set_policy(unwinder.space, UNW_CACHE_NONE);
  if (next[0] >= 0 && next[1] >= 0) close_pipe(next[0], next[1]);
}

}  // namespace

bool open_unwinder() {
  // The part of libunwind for other address spaces, with an address space of the recorder's own:
  // nothing that a program's own use of libunwind depends on is touched. Opened by name instead of
  // linked, so that libunwind's _Unwind_* functions are in nobody's search order.
  constexpr const char* kLibrary = "libunwind-x86_64.so.8";
  const bool fresh = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) == nullptr;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return false;
  decltype(&unw_create_addr_space) create = nullptr;
  decltype(&unw_set_caching_policy) set_policy = nullptr;
  Unwinder& found = unwinder;
  if (!look_up(library, RELOCK_NAME_OF(unw_create_addr_space), &create) ||
      !look_up(library, RELOCK_NAME_OF(unw_set_caching_policy), &set_policy) ||
      !look_up(library, RELOCK_NAME_OF(unw_init_remote), &found.init_remote) ||
      !look_up(library, RELOCK_NAME_OF(unw_step), &found.step) ||
      !look_up(library, RELOCK_NAME_OF(unw_get_reg), &found.get_reg) ||
      !look_up(library, RELOCK_NAME_OF(unw_get_save_loc), &found.get_save_loc) ||
      !look_up(library, RELOCK_NAME_OF(unw_is_signal_frame), &found.is_signal_frame) ||
      !look_up(library, RELOCK_NAME_OF(RELOCK_SEARCH_TABLE), &found.search_table)) {
    return false;
  }
  unw_accessors_t accessors{find_unwind_info, put_unwind_info, no_dynamic_info, access_memory,
                            access_register,  no_float,        no_resume,       no_name};
  found.space = create(&accessors, 0);
  if (found.space == nullptr) return false;
  initialise_without_pipe(set_policy, fresh);
  if (pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) return false;
  write(process->unwinder_ready, 1u);
  return true;
}

bool known_frame_rule(std::uint64_t address, FrameRule* rule) {
  return address >> 48 == 0 && find_rule(rule_key(address), rule);
}

FrameRule frame_rule(std::uint64_t address, bool* busy) {
  FrameRule rule;
  if (address >> 48 != 0) return rule;
  const std::uint64_t key = rule_key(address);
  if (find_rule(key, &rule)) return rule;
  UnwinderEntry entry;
  if (!entry.entered()) {
    *busy = true;
    return rule;
  }
  rule = ask_unwinder(address);
  keep_rule(key, rule);
  return rule;
}

void walk_with_unwinder(const Registers& start, StackReader* reader,
                        bool (*visit)(void* context, std::uint64_t address), void* context,
                        bool* busy) {
  UnwinderEntry entry;
  if (!entry.entered()) {
    *busy = true;
    return;
  }
  Question question{};
  question.reader = reader;
  question.registers[UNW_X86_64_RIP] = start.rip;
  question.registers[UNW_X86_64_RSP] = start.rsp;
  question.registers[UNW_X86_64_RBP] = start.rbp;
  question.registers[UNW_X86_64_RBX] = start.rbx;
  question.registers[UNW_X86_64_R12] = start.r12;
  question.registers[UNW_X86_64_R13] = start.r13;
  question.registers[UNW_X86_64_R14] = start.r14;
  question.registers[UNW_X86_64_R15] = start.r15;
  unw_cursor_t cursor;
  if (unwinder.init_remote(&cursor, unwinder.space, &question) < 0) return;
  std::uint64_t address = start.rip;
  while (visit(context, address)) {
    unw_word_t stack_before = 0;
    unw_word_t stack_after = 0;
    unw_word_t next = 0;
    unwinder.get_reg(&cursor, UNW_REG_SP, &stack_before);
    if (unwinder.step(&cursor) <= 0) return;
    if (unwinder.get_reg(&cursor, UNW_REG_IP, &next) < 0 || next < 4096) return;
    // What a signal interrupted may lie on another stack, and its address is exact.
    const bool interrupted = unwinder.is_signal_frame(&cursor) > 0;
    unwinder.get_reg(&cursor, UNW_REG_SP, &stack_after);
    if (interrupted) {
      reader->move_to(stack_after);
    } else if (stack_after <= stack_before) {
      return;
    }
    address = interrupted ? next : next - 1;
  }
}

}  // namespace relock::profile
