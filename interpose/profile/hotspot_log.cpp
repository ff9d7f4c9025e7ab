#include "interpose/profile/hotspot_log.h"

// spdlog keeps the thread's number in thread-local data that is allocated at its first use.
#define SPDLOG_NO_TLS
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <cstring>
#include <memory>

#include "interpose/profile/code_names.h"
#include "interpose/profile/process_state.h"
#include "interpose/profile/profile_file.h"
#include "interpose/profile/system.h"
#include "interpose/profile/tables.h"
#include "interpose/profile/text.h"

namespace relock::profile {

namespace {

constexpr std::uint32_t kLocksShown = 5;
constexpr std::uint32_t kPairsShown = 3;
constexpr std::uint32_t kFramesShown = 4;
constexpr std::uint64_t kMillisecond = 1000000;

using Line = Text<220>;  // what the formatter holds without allocating is 250 characters

struct NoMutex {
  void lock() {}
  void unlock() {}
};

char log_path[2200];  // from the root on: programs change directory; empty: standard error

int open_log_file() {
  return sys_open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
}

// What went wrong with the log file, once.
void complain(int error, const char* what_now) {
  static bool said;
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  const char* reason = strerrordesc_np(error);
  Text<2600> line;
  line << "relock: warning: RELOCK_LOG_FILE=" << host.log_file << ": "
       << (reason != nullptr ? reason : "unknown error") << ": " << what_now << "\n";
  say(line.c_str());
}

// Writes to standard error or to a file that is opened for each log: a descriptor that stays open
// might be closed by the program and its number used again.
class LogSink final : public spdlog::sinks::base_sink<NoMutex> {
 public:
  void open() {
    owned_ = log_path[0] != '\0';
    descriptor_ = owned_ ? open_log_file() : host.standard_error_is_the_same() ? 2 : -1;
    if (owned_ && descriptor_ < 0) complain(-descriptor_, "the log is lost");
  }
  void close() {
    if (owned_ && descriptor_ >= 0) sys_close(descriptor_);
    descriptor_ = -1;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (descriptor_ < 0) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const int error = sys_write_all(descriptor_, line.data(), line.size());
    if (error != 0 && owned_) complain(error, "the log is incomplete");
  }
  void flush_() override {}

 private:
  int descriptor_ = -1;
  bool owned_ = false;
};

// Where the log goes is settled, and tried, while the program is still where it was started.
void choose_log_file() {
  if (host.log_file == nullptr || host.log_file[0] == '\0') return;
  copy_text(log_path, absolute_path(host.log_file).c_str());
  const int descriptor = open_log_file();
  if (descriptor >= 0) {
    sys_close(descriptor);
    return;
  }
  complain(-descriptor, "the log goes to standard error");
  log_path[0] = '\0';
}

// Never destroyed: threads may log while the process exits.
LogSink* sink;
spdlog::logger* logger;

// One log at a time works in these.
struct HotLock {
  std::uint32_t row;
  std::uint64_t wait_ns;
};
struct HotPair {
  const PairRow* row;
  std::uint64_t weighted_ns;
};
struct LogWork {
  CodeNames names;
  bool may_allocate;  // not in a thread that waits: it may be inside the allocator
  HotLock locks[kLocksShown];
  std::uint32_t lock_count;
  HotPair pairs[kLocksShown][kPairsShown];
  std::uint64_t weighted_ns[kLocksShown];  // of all pairs of the lock
};
LogWork work;

void emit(const Line& line) {
  // The lines carry no time of day, and spdlog would ask the program's clock_gettime for one.
  logger->log(spdlog::log_clock::time_point(), spdlog::source_loc(), spdlog::level::info,
              spdlog::string_view_t(line.c_str(), line.size()));
}

template <typename Item, std::uint32_t N>
void keep_largest(Item (&items)[N], Item item, std::uint64_t Item::*by) {
  for (Item& place : items) {
    if (place.*by >= item.*by) continue;
    const Item pushed = place;
    place = item;
    item = pushed;
  }
}

void find_hot_locks(Header* header) {
  const auto* table = rows<LockRow>(header, kSectionLocks);
  for (HotLock& lock : work.locks) lock = {0, 0};
  for (std::uint32_t i = 0; i < kLockRows; ++i) {
    if (read(table[i].key) == 0) continue;
    keep_largest(work.locks, HotLock{i, wait_sums(header, table[i]).wait_ns}, &HotLock::wait_ns);
  }
  work.lock_count = 0;
  while (work.lock_count < kLocksShown && work.locks[work.lock_count].wait_ns > 0) {
    ++work.lock_count;
  }
}

void find_hot_pairs(Header* header) {
  const auto* table = rows<PairRow>(header, kSectionPairs);
  std::memset(work.pairs, 0, sizeof work.pairs);
  std::memset(work.weighted_ns, 0, sizeof work.weighted_ns);
  for (std::uint32_t i = 0; i < kPairRows; ++i) {
    const std::uint64_t key = read(table[i].key);
    if (key == 0) continue;
    for (std::uint32_t lock = 0; lock < work.lock_count; ++lock) {
      if (pair_lock(key) != work.locks[lock].row) continue;
      const std::uint64_t weighted = read(table[i].weighted_wait_ns);
      work.weighted_ns[lock] += weighted;
      keep_largest(work.pairs[lock], HotPair{&table[i], weighted}, &HotPair::weighted_ns);
    }
  }
}

// The frames of a stack, 0 terminated when shorter than kFramesShown.
void stack_frames(Header* header, std::uint32_t stack, std::uint64_t (&frames)[kFramesShown]) {
  std::memset(frames, 0, sizeof frames);
  if (stack == 0) return;
  const StackRow& row = rows<StackRow>(header, kSectionStacks)[stack - 1];
  const std::uint32_t count = read_acquire(row.frames);  // pairs with intern_stack
  for (std::uint32_t i = 0; i < count && i < kFramesShown; ++i) {
    frames[i] = rows<std::uint64_t>(header, kSectionFrames)[row.first_frame + i];
  }
}

void want_stack(Header* header, std::uint32_t stack) {
  std::uint64_t frames[kFramesShown];
  stack_frames(header, stack, frames);
  for (std::uint64_t frame : frames) work.names.want(frame);
}

void find_names(Header* header) {
  work.names.clear();
  for (std::uint32_t i = 0; i < work.lock_count; ++i) {
    const LockRow& lock = rows<LockRow>(header, kSectionLocks)[work.locks[i].row];
    work.names.want(key_address(lock.key));
    work.names.want(lock.init_site > 0 ? lock.init_site - 1 : 0);
    want_stack(header, read(lock.first_stack));
    for (const HotPair& pair : work.pairs[i]) {
      if (pair.row == nullptr) continue;
      want_stack(header, pair_waiter(pair.row->key));
      want_stack(header, pair_blocker(pair.row->key));
    }
  }
  work.names.look_up(header);
}

void put_duration(Line& line, std::uint64_t ns) {
  const char* unit = " ns";
  std::uint64_t part = 1;
  if (ns >= 10'000'000'000) {
    unit = " s", part = 1'000'000'000;
  } else if (ns >= 10'000'000) {
    unit = " ms", part = 1'000'000;
  } else if (ns >= 10'000) {
    unit = " us", part = 1'000;
  }
  line << ns / part << unit;
}

std::uint64_t rounded_percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<std::uint64_t>(100.0 * part / whole + 0.5);
}

const char* kind_word(std::uint32_t kind) {
  constexpr const char* kWords[] = {"mutex", "spinlock", "rwlock (read)", "rwlock (write)",
                                    "condition variable"};
  return kind < kKinds ? kWords[kind] : "lock";
}

void put_lock_name(Header* header, Line& line, const LockRow& lock) {
  const std::uint64_t address = key_address(lock.key);
  std::uint64_t first[kFramesShown];
  stack_frames(header, read(lock.first_stack), first);
  if (work.names.has_symbol(address)) {
    line << work.names.name(address, 100, work.may_allocate).c_str();
  } else if (lock.init_site != 0) {
    line << "made at " << work.names.name(lock.init_site - 1, 92, work.may_allocate).c_str();
  } else if (first[0] != 0) {
    line << "first waited for at " << work.names.name(first[0], 80, work.may_allocate).c_str();
  } else {
    line.hex(address);
  }
}

void log_stack(Header* header, const char* label, std::uint32_t stack) {
  std::uint64_t frames[kFramesShown];
  stack_frames(header, stack, frames);
  if (frames[0] == 0) {
    Line line;
    line << "     " << label << "(not recorded)";
    emit(line);
    return;
  }
  for (std::uint32_t i = 0; i < kFramesShown && frames[i] != 0; ++i) {
    Line line;
    line << "     ";
    if (i == 0) line << label;
    line.pad_to(5 + std::strlen(label));
    line << work.names.name(frames[i], 110, work.may_allocate).c_str();
    emit(line);
  }
}

void log_lock(Header* header, std::uint32_t rank) {
  const LockRow& lock = rows<LockRow>(header, kSectionLocks)[work.locks[rank].row];
  const WaitSums waits = wait_sums(header, lock);
  Line line;
  line << std::uint64_t{rank} + 1 << ". " << kind_word(key_kind(lock.key)) << " ";
  put_lock_name(header, line, lock);
  emit(line);
  line.clear();
  line << "   waited ";
  put_duration(line, waits.wait_ns);
  line << " in " << waits.contended << " waits, mean ";
  put_duration(line, waits.contended > 0 ? waits.wait_ns / waits.contended : 0);
  line << ", longest ";
  put_duration(line, waits.max_wait_ns);
  const std::uint64_t taken = read(lock.acquisitions) + read(lock.acquisitions_before);
  if (taken > 0) line << ", taken at least " << taken << " times";
  emit(line);
  for (const HotPair& pair : work.pairs[rank]) {
    if (pair.row == nullptr) continue;
    line.clear();
    line << "   " << rounded_percent(pair.weighted_ns, work.weighted_ns[rank]) << " % of it:";
    emit(line);
    log_stack(header, "waits in   ", pair_waiter(pair.row->key));
    log_stack(header, "because of ", pair_blocker(pair.row->key));
  }
}

void write_log(Header* header, std::uint64_t now_ns, bool may_allocate) {
  work.may_allocate = may_allocate;
  find_hot_locks(header);
  if (work.lock_count == 0) return;
  find_hot_pairs(header);
  find_names(header);
  sink->open();
  Line line;
  line << "hottest locks of " << header->comm << "[" << std::uint64_t{header->pid} << "] after ";
  put_duration(line, now_ns > header->start_monotonic_ns ? now_ns - header->start_monotonic_ns : 0);
  line << " since the first contention:";
  emit(line);
  for (std::uint32_t i = 0; i < work.lock_count; ++i) log_lock(header, i);
  sink->close();
}

// Whether this thread may write now; the other one does, or the page says nobody.
bool take_log() {
  std::uint32_t open = 0;
  return logger != nullptr && exchange_if(process->log_busy, open, 1u);
}
std::uint64_t interval_ns() { return std::uint64_t{host.log_interval_s} * 1000 * kMillisecond; }
void give_log() { publish(process->log_busy, 0u); }  // pairs with take_log

}  // namespace

void set_up_log() {
  choose_log_file();
  auto made = std::make_shared<LogSink>();
  made->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "relock: %v", spdlog::pattern_time_type::utc, "\n"));
  sink = made.get();
  // The logger's own reference keeps the sink alive; neither is ever deleted.
  logger = new spdlog::logger("relock", std::move(made));
}

bool interval_log_is_due(Header* header, std::uint64_t now_ns) {
  std::uint64_t due_ns = read(process->next_log_ns);
  if (due_ns == 0) {
    exchange_if(process->next_log_ns, due_ns, header->start_monotonic_ns + interval_ns());
    return false;
  }
  return now_ns >= due_ns;
}

void write_interval_log(Header* header, std::uint64_t now_ns) {
  std::uint64_t due_ns = read(process->next_log_ns);
  if (now_ns < due_ns || !take_log()) return;
  if (exchange_if(process->next_log_ns, due_ns, now_ns + interval_ns())) {
    write_log(header, now_ns, false);
  }
  give_log();
}

void write_final_log(Header* header) {
  // An interval log that is being written has the same content.
  if (!take_log()) return;
  write_log(header, host.clock_ns(CLOCK_MONOTONIC), true);
  give_log();
}

}  // namespace relock::profile
