#include "interpose/profile/recorder.h"

#include <cstring>

#include "interpose/profile/hotspot_log.h"
#include "interpose/profile/modules.h"
#include "interpose/profile/own_stack.h"
#include "interpose/profile/process_state.h"
#include "interpose/profile/profile_file.h"
#include "interpose/profile/sampler.h"
#include "interpose/profile/stack_bounds.h"
#include "interpose/profile/stacks.h"
#include "interpose/profile/system.h"
#include "interpose/profile/tables.h"

namespace relock::profile {

namespace {

// ---- what runs on a stack of the recorder's own (own_stack.h) ----

struct OpenJob {
  Header* header = nullptr;

  static void run(void* job) { static_cast<OpenJob*>(job)->header = open_profile(); }
};

struct StackJob {
  Header* header;
  Registers start;
  std::uint32_t stack = 0;

  static void run(void* job) { static_cast<StackJob*>(job)->take(); }
  void take() {
    std::uint64_t frames[kMaxFrames];
    bool busy = false;
    std::uint32_t count = take_stack(start, frames, kMaxFrames, &busy);
    if (!note_modules(header, frames, count)) count = take_stack(start, frames, kMaxFrames, &busy);
    // A stack that was cut short would read as if it were complete.
    if (busy) return drop(header, kDropUnwinderBusy);
    add(header->stacks_taken, std::uint64_t{1});
    stack = intern_stack(header, frames, count);
  }
  // On the thread's own stack, if all that it meets is known: saves two system calls.
  bool take_known() {
    constexpr std::uint64_t kRoom = 8192;
    if (!has_room_below(start.rsp, kRoom)) return false;
    std::uint64_t frames[kMaxFrames];
    std::uint32_t count = 0;
    if (!take_known_stack(start, frames, kMaxFrames, &count)) return false;
    if (!modules_are_known(frames, count)) return false;
    add(header->stacks_taken, std::uint64_t{1});
    stack = intern_stack(header, frames, count);
    return true;
  }
};

struct ModuleJob {
  Header* header;
  std::uint64_t addresses[2];

  static void run(void* job) {
    const ModuleJob& self = *static_cast<ModuleJob*>(job);
    for (const std::uint64_t address : self.addresses) note_module(self.header, address);
  }
};

struct LogJob {
  Header* header;
  std::uint64_t now_ns;

  static void run_interval(void* job) {
    const LogJob& self = *static_cast<LogJob*>(job);
    write_interval_log(self.header, self.now_ns);
  }
  static void run_final(void* job) { write_final_log(static_cast<LogJob*>(job)->header); }
};

// The caller must have entered a RecordGuard.
Header* header_made() {
  if (Header* header = current_header()) return header;
  OpenJob job;
  return on_own_stack(&OpenJob::run, &job) ? job.header : nullptr;
}

// The caller must have entered a RecordGuard. 0: no stack could be taken.
[[gnu::noinline]] std::uint32_t record_stack(Header* header) {
  StackJob job{header, {}};
  capture_registers(&job.start);
  if (!job.take_known() && !on_own_stack(&StackJob::run, &job)) drop(header, kDropUnwinderBusy);
  return job.stack;
}

// The lock's row; a new one gets the objects that its name will be looked up in. `may_switch`: the
// caller has entered a RecordGuard, so no stack of the recorder is in use by this thread.
std::uint32_t lock_for_wait(Header* header, const void* object, int kind, bool may_switch) {
  const std::uint32_t known = find_lock(header, object, kind, false);
  if (known != kNoRow) return known;
  const std::uint32_t made = find_lock(header, object, kind, true);
  if (made == kNoRow) return kNoRow;
  if (read(sandboxed) && read(host.stacks) == 0) return made;  // prepare() has noted what there is
  ModuleJob job{header,
                {reinterpret_cast<std::uint64_t>(object), read(lock_row(header, made).init_site)}};
  if (!may_switch || !on_own_stack(&ModuleJob::run, &job)) drop(header, kDropModules);
  return made;
}

// The same where something is counted, which may be inside another call of the recorder.
std::uint32_t lock_to_count(Header* header, const void* object, int kind) {
  RecordGuard guard;
  return lock_for_wait(header, object, kind, guard.entered());
}

// wait_end is counted even inside another call of the recorder; only making the file is not safe
// there.
Header* header_for_count() {
  if (Header* header = current_header()) return header;
  RecordGuard guard;
  return guard.entered() ? header_made() : nullptr;
}

// Nobody has waited for the lock since it was made: a row at its address that has waits is of one
// that was there before and was never destroyed, since most programs don't. The look comes before
// the mark: waits for this object are counted by threads that have found the mark or set it, so
// those that this look sees are not among them.
void note_first_wait(Header* header, const RelockWaitBegin& asked) {
  if (asked.mark == nullptr || (read(*asked.mark) & RELOCK_MARK_KNOWN) != 0) return;
  const std::uint32_t known = find_lock(header, asked.object, asked.kind, false);
  const bool waited_for = known != kNoRow && read(lock_row(header, known).contended) != 0;
  const std::uint32_t before =
      __atomic_fetch_or(asked.mark, RELOCK_MARK_KNOWN, __ATOMIC_ACQ_REL);  // pairs with itself
  if (waited_for && (before & RELOCK_MARK_KNOWN) == 0) retire_lock(lock_row(header, known), 0);
}

// Leaves the ticket where the next release will find it. One waiter at a time can.
void mark(RelockWait& wait, std::uint32_t* cell) {
  std::uint32_t none = RELOCK_MARK_KNOWN;
  if (wait.ticket == 0 || wait.marked != 0 || cell == nullptr) return;
  // Whoever takes it out needs nothing but the number: its row was published by begin_ticket.
  wait.marked = exchange_if(*cell, none, RELOCK_MARK_KNOWN | wait.ticket) ? 1 : 0;
}

// Draws a ticket, leaves it for the releaser, and takes the waiter's stack: in this order, or else
// the releaser of a short wait would be gone before it could be found.
void sample_wait(Header* header, RelockWait& wait, std::uint32_t* mark_cell, std::uint32_t weight,
                 std::uint64_t begin_ns, std::uint64_t now_ns) {
  LockRow& row = lock_row(header, wait.lock - 1);
  add(row.samples, std::uint64_t{1});
  raise_to(header->last_monotonic_ns, now_ns);
  wait.ticket = begin_ticket(header, wait.lock - 1, weight, begin_ns);
  mark(wait, mark_cell);
  const std::uint32_t stack = record_stack(header);
  set_waiter_stack(header, wait.ticket, stack);
  std::uint32_t none = 0;
  if (stack != 0) exchange_if(row.first_stack, none, stack);
}

RelockWait wait_begin(RelockWaitBegin* asked) {
  ErrnoKeeper keeper;
  RecordGuard guard;
  Draw draw{asked->again, asked->undrawn, 0, kCertain};
  asked->undrawn = 0;
  asked->chance = kCertain;
  if (!guard.entered()) {
    if (Header* header = current_header()) drop(header, kDropNested);
    return {};
  }
  Header* header = header_made();
  if (header == nullptr) return {};
  note_first_wait(header, *asked);
  const std::uint32_t lock = lock_for_wait(header, asked->object, asked->kind, true);
  if (lock == kNoRow) return {};
  const std::uint64_t now_ns = host.clock_ns(CLOCK_MONOTONIC);
  count_threads(header, now_ns, false);
  LockRow& row = lock_row(header, lock);
  std::uint32_t weight = 0;
  if (read(host.stacks) == 0) {
    draw.undrawn = kMostUndrawn;
  } else {
    weight = draw_sample(header, predicted_wait_ns(row), now_ns, draw);
  }
  asked->undrawn = draw.undrawn;
  asked->chance = draw.chance;
  RelockWait wait{lock + 1, 0, 0};
  if (weight != 0) sample_wait(header, wait, asked->mark, weight, now_ns, now_ns);
  return wait;
}

void wait_sleeps(RelockWait* wait, std::uint32_t* mark_cell, std::uint32_t* chance) {
  ErrnoKeeper keeper;
  RecordGuard guard;
  Header* header = current_header();
  const std::uint32_t lock = wait->lock - 1;
  if (header == nullptr || wait->lock == 0 || lock >= kLockRows || !guard.entered() ||
      read(host.stacks) == 0) {
    return;
  }
  const LockRow& row = lock_row(header, lock);
  bool drawn = wait->ticket != 0;
  const std::uint64_t now_ns = host.clock_ns(CLOCK_MONOTONIC);
  const std::uint32_t weight = draw_again(header, predicted_sleep_ns(row), now_ns, chance, &drawn);
  if (wait->ticket != 0) {
    reweigh_ticket(header, wait->ticket, weight);
    return mark(*wait, mark_cell);
  }
  if (drawn) sample_wait(header, *wait, mark_cell, weight, now_ns, now_ns);
}

// The row that the wait began with, unless that was in another process's file.
std::uint32_t lock_of_wait(Header* header, const RelockWaitEnd& end) {
  const std::uint64_t key = lock_key(reinterpret_cast<std::uint64_t>(end.object), end.kind);
  const std::uint32_t row = end.wait.lock - 1;
  if (end.wait.lock != 0 && row < kLockRows && read(lock_row(header, row).key) == key) return row;
  return lock_to_count(header, end.object, end.kind);
}

constexpr std::uint64_t kDrawnAtEndNs = 50000;
constexpr std::uint64_t kFarLonger = 8;

// A wait that was far longer than could be expected (its owner or itself lost the CPU) would weigh
// too much in a short profile, if it was drawn at all: it is drawn once more by how long it was.
// So are others of which it will be known whom they waited for.
void draw_ended(Header* header, std::uint32_t lock, RelockWaitEnd& end) {
  if (end.wait_ns < kDrawnAtEndNs || end.chance == kCertain || read(host.stacks) == 0) return;
  RecordGuard guard;
  if (!guard.entered()) return;
  bool drawn = end.wait.ticket != 0;
  const std::uint64_t now_ns = host.clock_ns(CLOCK_MONOTONIC);
  const LockRow& row = lock_row(header, lock);
  const std::uint64_t expected_ns =
      end.slept != 0 ? predicted_sleep_ns(row) : predicted_wait_ns(row);
  const bool blocker_known = read(row.released_ns) + end.wait_ns >= now_ns;
  if (!blocker_known && end.wait_ns / kFarLonger < expected_ns) return;
  const std::uint32_t weight = draw_again(header, end.wait_ns, now_ns, &end.chance, &drawn);
  if (end.wait.ticket != 0) return reweigh_ticket(header, end.wait.ticket, weight);
  if (!drawn) return;
  end.wait.lock = lock + 1;
  sample_wait(header, end.wait, nullptr, weight, now_ns - end.wait_ns, now_ns);
  end.unreleased = 1;
}

void wait_end(const RelockWaitEnd* told) {
  ErrnoKeeper keeper;
  RelockWaitEnd end = *told;
  Header* header = header_for_count();
  if (header == nullptr) return;
  const std::uint32_t lock = lock_of_wait(header, end);
  if (lock != kNoRow) {
    count_wait(header, lock, end);
    draw_ended(header, lock, end);
  }
  if (end.wait.ticket == 0) return;
  const bool expect_release = end.outcome == RELOCK_WAIT_ACQUIRED && end.unreleased == 0;
  end_ticket(header, end.wait.ticket, end.wait_ns, expect_release);
}

void released(std::uint32_t ticket) {
  ErrnoKeeper keeper;
  Header* header = current_header();
  if (header == nullptr || ticket == 0) return;
  RecordGuard guard;
  if (!guard.entered()) return drop(header, kDropNested);
  if (read(host.stacks) == 0 || !claim_release(header, ticket)) return;
  const std::uint64_t now_ns = host.clock_ns(CLOCK_MONOTONIC);
  release_ticket(header, ticket, record_stack(header), now_ns);
}

void woken(const std::uint32_t* tickets, std::uint32_t count) {
  ErrnoKeeper keeper;
  Header* header = current_header();
  if (header == nullptr) return;
  RecordGuard guard;
  if (!guard.entered()) return drop(header, kDropNested);
  if (read(host.stacks) == 0) return;
  const std::uint64_t now_ns = host.clock_ns(CLOCK_MONOTONIC);
  std::uint32_t stack = 0;  // one for all
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!claim_release(header, tickets[i])) continue;
    if (stack == 0) stack = record_stack(header);
    release_ticket(header, tickets[i], stack, now_ns);
  }
}

void held(const void* object, int kind, std::uint64_t hold_ns, std::uint32_t weight) {
  Header* header = current_header();
  if (header == nullptr) return;
  const std::uint32_t lock = find_lock(header, object, kind, false);
  if (lock != kNoRow) count_hold(lock_row(header, lock), hold_ns, weight);
}

void counted(const void* object, int kind, std::uint64_t acquisitions) {
  ErrnoKeeper keeper;
  Header* header = header_for_count();
  if (header == nullptr) return;
  std::uint32_t lock = find_lock(header, object, kind, false);
  if (lock == kNoRow && has_room_for_idle_locks(header)) lock = lock_to_count(header, object, kind);
  if (lock != kNoRow) count_acquisitions(lock_row(header, lock), acquisitions, 1);
}

void try_failed(const void* object, int kind) {
  ErrnoKeeper keeper;
  Header* header = header_for_count();
  if (header == nullptr) return;
  const std::uint32_t lock = lock_to_count(header, object, kind);
  if (lock != kNoRow) add(lock_row(header, lock).try_failures, std::uint64_t{1});
}

// A live row of another object: it went away without being destroyed, which programs may do.
void object_init(const void* object, int kind, const void* site) {
  remember_init_site(object, site);
  Header* header = current_header();
  if (header == nullptr) return;
  const std::uint32_t lock = find_lock(header, object, kind, false);
  if (lock != kNoRow) retire_lock(lock_row(header, lock), 0);
}

void object_destroy(const void* object, int kind, std::uint64_t acquisitions) {
  forget_init_site(object);
  Header* header = current_header();
  if (header == nullptr) return;
  const std::uint32_t lock = find_lock(header, object, kind, false);
  if (lock != kNoRow) retire_lock(lock_row(header, lock), acquisitions);
}

void tick(std::uint64_t now_ns) {
  if (host.log_interval_s == 0 || read(sandboxed)) return;
  ErrnoKeeper keeper;
  RecordGuard guard;
  if (!guard.entered()) return;
  Header* header = current_header();
  if (header == nullptr || !interval_log_is_due(header, now_ns)) return;
  LogJob job{header, now_ns};
  on_own_stack(&LogJob::run_interval, &job);
}

void prepare(bool leaving) {
  ErrnoKeeper keeper;
  RecordGuard guard;
  if (!guard.entered()) return;
  Header* header = header_made();
  if (header != nullptr && leaving) note_all_modules(header);
}

void enter_sandbox(bool stacks_work) {
  write(sandboxed, true);
  if (!stacks_work) write(host.stacks, 0u);
  Header* header = current_header();
  if (header == nullptr) return;
  const std::uint32_t flags =
      kFlagFiltered | (stacks_work ? 0u : std::uint32_t{kFlagStacksRefused});
  __atomic_fetch_or(&header->flags, flags, __ATOMIC_RELEASE);  // pairs with the file's readers
}

// The child's page was cleared by the kernel: it has no file and no ticket. What is left is the
// thread's own state, when it forked from inside a handler.
void fork_child() {
  thread_state.stack_low = thread_state.stack_high = 0;
  thread_state.random = 0;
  thread_state.shard = 0;
  thread_state.offers = 0;
  thread_state.undrawn = 0;
  thread_state.demand_ns = 0;
  thread_state.next_weight = 0;
}

// Objects in a loaded object's data stay readable until the end, so their counters can be asked
// for; memory from the heap may be gone.
void update_acquisitions(Header* header) {
  if (host.acquisitions == nullptr) return;
  auto* table = rows<LockRow>(header, kSectionLocks);
  for (std::uint32_t i = 0; i < kLockRows; ++i) {
    LockRow& row = table[i];
    const std::uint64_t key = read_acquire(row.key);  // pairs with find_lock
    LoadedObject object;
    if (key == 0 || read(row.retired) != 0 || !find_object(key_address(key), &object)) continue;
    const auto* address = reinterpret_cast<const void*>(key_address(key));
    const std::uint64_t counter = host.acquisitions(address, static_cast<int>(key_kind(key)));
    if (counter != 0) count_acquisitions(row, counter, 1);
  }
}

// The log at the end goes through spdlog, which takes many system calls, and memory.
void write_log_at_end(Header* header) {
  if (std::strcmp(host.log_file, "/dev/null") == 0) return;
  LogJob job{header, 0};
  if (!on_own_stack(&LogJob::run_final, &job)) write_final_log(header);
}

void finish(bool abrupt) {
  ErrnoKeeper keeper;
  Header* header = current_header();
  if (header == nullptr) return;
  RecordGuard guard;
  if (!guard.entered()) return;
  update_acquisitions(header);
  settle_tickets(header);
  const std::uint64_t now_ns = host.clock_ns(CLOCK_MONOTONIC);
  count_threads(header, now_ns, true);
  raise_to(header->last_monotonic_ns, now_ns);
  __atomic_fetch_or(&header->flags, kFlagFinished,
                    __ATOMIC_RELEASE);  // pairs with the file's readers
  if (read(sandboxed)) return;
  if (read(header->sections[kSectionLocks].used) == 0) return remove_profile();
  if (!abrupt) write_log_at_end(header);
  if (is_last_thread()) close_profile(header);
}

}  // namespace

int start_recorder(const RelockHost& given, const void* caller, RelockProfiler* profiler) {
  host = given;
  int error = choose_profile_directory();
  if (error != 0) return error;
  error = set_up_process();
  if (error != 0) {
    say("relock: no profile: the kernel does not clear pages in forked children\n");
    return error;
  }
  if (!set_up_own_stacks()) {
    say("relock: no profile: there is no memory for the recorder\n");
    return ENOMEM;
  }
  if (host.stacks != 0 && !set_up_stacks(caller)) {
    say("relock: the profile has no stacks: libunwind-x86_64.so.8 is missing or too old\n");
    host.stacks = 0;
  }
  set_up_log();
  set_up_thread_count();
  *profiler = {RELOCK_PROFILER_VERSION,
               wait_begin,
               wait_end,
               released,
               woken,
               held,
               counted,
               try_failed,
               object_init,
               object_destroy,
               tick,
               prepare,
               wait_sleeps,
               enter_sandbox,
               fork_child,
               finish};
  return 0;
}

}  // namespace relock::profile

extern "C" __attribute__((visibility("default"))) int relock_profiler_entry(
    const RelockHost* host, RelockProfiler* profiler) {
  relock::profile::ErrnoKeeper keeper;
  if (host->version != RELOCK_PROFILER_VERSION) return EPROTO;
  return relock::profile::start_recorder(*host, __builtin_return_address(0), profiler);
}
