#include "interpose/recording.h"

#include <climits>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

#include "interpose/message.h"
#include "interpose/real.h"

namespace relock {
namespace {

// Waits shorter than this are told of after the release.
constexpr std::uint64_t kShortNs = 50000;

// The recorder lies beside this library.
bool plugin_path(char* path, std::size_t size) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&g_table_records), &self) == 0) return false;
  const char* slash = std::strrchr(self.dli_fname, '/');
  const std::size_t folder =
      slash == nullptr ? 0 : static_cast<std::size_t>(slash - self.dli_fname) + 1;
  constexpr char kName[] = "librelock-profile.so";
  if (folder + sizeof kName > size) return false;
  std::memcpy(path, self.dli_fname, folder);
  std::memcpy(path + folder, kName, sizeof kName);
  return true;
}

// The counter of an object that the recorder knows to be mapped still.
std::uint64_t acquisitions_of(const void* object, int kind) {
  auto* address = const_cast<void*>(object);
  switch (kind) {
    case RELOCK_KIND_MUTEX:
      return MutexView(static_cast<pthread_mutex_t*>(address)).recorded_acquisitions();
    case RELOCK_KIND_SPIN: {
      const TableRecord* spin = table_record(object);
      return spin == nullptr ? 0 : acquisitions_in(spin->record.load(MemoryOrder::kRelaxed));
    }
    case RELOCK_KIND_RWLOCK_READ:
      return RwlockView(static_cast<pthread_rwlock_t*>(address)).recorded_reads();
    case RELOCK_KIND_RWLOCK_WRITE:
      return RwlockView(static_cast<pthread_rwlock_t*>(address)).recorded_writes();
    default:
      return 0;
  }
}

std::uint64_t clock_ns(int clock) {
  return static_cast<std::uint64_t>(LinuxPlatform::clock_ns(clock));
}

RelockHost host_description() {
  const Options& options = g_runtime.options;
  RelockHost host{};
  host.version = RELOCK_PROFILER_VERSION;
  host.profile_dir = options.profile_dir.c_str();
  host.log_file = options.log_file.c_str();
  host.log_interval_s = options.log_interval_s;
  host.samples_per_s = options.profile_rate;
  host.stacks = options.profile_stacks ? 1 : 0;
  host.mutex_lock_name = lock_name(g_runtime.mutex_kind);
  host.spin_lock_name = lock_name(g_runtime.spin_kind);
  host.rwlock_name = rwlock_name(options.rwlock);
  host.wait_name = wait_mode_name(options.wait);
  host.nodes =
      g_runtime.topology.nodes > 1 ? static_cast<std::uint32_t>(g_runtime.topology.nodes) : 1;
  host.counter_bits[RELOCK_KIND_MUTEX] = kCountBits;
  host.counter_bits[RELOCK_KIND_SPIN] = kCountBits;
  host.counter_bits[RELOCK_KIND_RWLOCK_READ] = RwlockView::kReadBits;
  host.counter_bits[RELOCK_KIND_RWLOCK_WRITE] = RwlockView::kWriteBits;
  host.acquisitions = acquisitions_of;
  host.standard_error_is_the_same = standard_error_is_the_same;
  host.clock_ns = clock_ns;
  return host;
}

void say_no_profile(const char* why) {
  LineBuffer line;
  line.add("relock: warning: RELOCK_PROFILE=1: ");
  line.add(why);
  line.add(": running without a profile");
  say(line.data);
}

// A copy is told, since the recorder's own locks may bring this thread here again.
void tell_wait() {
  const RelockWaitEnd wait = t_record.wait;
  t_record.due &= ~kWaitDue;
  const auto tell = [&](const RelockProfiler& recorder) { recorder.wait_end(&wait); };
  // Of a lock that has a row, and without a stack: nothing has to be made for it.
  wait.wait.lock != 0 && wait.wait.ticket == 0 ? tell_count(tell) : tell_recorder(tell);
}

// Keeps a signal handler, which may lock and unlock, away from a half written record.
class RecordChange {
 public:
  RecordChange() : entered_(t_record.changing == 0) {
    if (entered_) t_record.changing = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // pairs with the handler's look at `changing`
  }
  ~RecordChange() {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // pairs with the handler's look at `changing`
    if (entered_) t_record.changing = 0;
  }
  RecordChange(const RecordChange&) = delete;
  RecordChange& operator=(const RecordChange&) = delete;
  bool entered() const { return entered_; }

 private:
  bool entered_;
};

std::uint32_t random_up_to(std::uint32_t limit) {
  std::uint32_t state = t_record.random;
  if (state == 0) state = LinuxPlatform::slot_hint() | 1u;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  t_record.random = state;
  return static_cast<std::uint32_t>((std::uint64_t{state} * limit) >> 32) + 1;
}

// Every hold of a lock that was taken seldom, one in 64 of one that was taken often.
std::uint32_t hold_weight(std::uint32_t count) {
  return count < 256 ? 1 : count < kOftenTaken ? 8 : kMostHoldWeight;
}

void put_hold(const Hold& hold) {
  const RecordChange change;
  if (!change.entered()) return;
  int place = 0;
  while (place < kHolds - 1 && (t_record.due & kHoldDue << place) != 0) ++place;
  t_record.holds[place] = hold;
  t_record.due |= kHoldDue << place;
}

// The hold of `object` that began when its record said `record`, if it is timed; weight 0: not.
Hold take_hold(const void* object, const LinuxAtomic32* record) {
  const RecordChange change;
  if (!change.entered()) return {};
  for (int place = 0; place < kHolds; ++place) {
    Hold& hold = t_record.holds[place];
    if ((t_record.due & kHoldDue << place) == 0 || hold.object != object) continue;
    t_record.due &= ~(kHoldDue << place);
    // Another thread has let go of it and had it since, as normal mutexes allow.
    if (record != nullptr && record->load(MemoryOrder::kRelaxed) != hold.record) return {};
    return hold;
  }
  return {};
}

// A lock that keeps records: the release that follows its short waits looks at what is due.
bool is_told_late(const RecordedObject& object) {
  return object.mark != nullptr && object.kind != RELOCK_KIND_COND;
}

// Whether it is the lock that this thread asked about last.
bool is_asked_about(const RecordedObject& object) {
  return t_record.waited_for == object.address &&
         t_record.kind == static_cast<std::uint32_t>(object.kind);
}

}  // namespace

__thread ThreadRecord t_record __attribute__((tls_model("initial-exec")));

RecordedWait::RecordedWait(const RecordedObject& object, bool blocks)
    : WaitObserver{&before_sleep}, object_(object), since_(ticks()) {
  if ((t_record.due & kWaitDue) != 0) tell_wait();
  if (t_record.undrawn == 0 || !is_asked_about(object)) {
    ask();
  } else {
    --t_record.undrawn;
    ++t_record.passed;
    begun_.lock = t_record.lock;
  }
  chance_ = t_record.chance;
  if (blocks) before_sleep(this);
}

void RecordedWait::ask() {
  RelockWaitBegin begin{
      object_.address,         mark(),          static_cast<std::uint8_t>(object_.kind),
      is_asked_about(object_), t_record.passed, 0};
  tell_recorder([&](const RelockProfiler& recorder) { begun_ = recorder.wait_begin(&begin); });
  t_record.waited_for = is_told_late(object_) ? object_.address : nullptr;
  t_record.kind = static_cast<std::uint32_t>(object_.kind);
  t_record.lock = begun_.lock;
  t_record.undrawn = begin.undrawn;
  t_record.chance = begin.chance;
  t_record.passed = 0;
}

std::uint32_t* RecordedWait::mark() const {
  return object_.mark != nullptr ? object_.mark->address() : nullptr;
}

void RecordedWait::before_sleep(WaitObserver* self) {
  auto& wait = *static_cast<RecordedWait*>(self);
  wait.slept_ = true;
  tell_recorder([&](const RelockProfiler& recorder) {
    recorder.wait_sleeps(&wait.begun_, wait.mark(), &wait.chance_);
    if (g_runtime.options.log_interval_s != 0) {
      recorder.tick(static_cast<std::uint64_t>(LinuxPlatform::now_ns()));
    }
  });
}

void RecordedWait::end(RelockWaitOutcome outcome, std::uint64_t acquisitions,
                       RelockHandOff hand_off) {
  RelockWaitEnd end;
  end.wait_ns = ticks_to_ns(since_, ticks());
  end.object = object_.address;
  end.wait = begun_;
  end.acquisitions = acquisitions;
  end.kind = static_cast<std::uint8_t>(object_.kind);
  end.outcome = static_cast<std::uint8_t>(outcome);
  end.hand_off = static_cast<std::uint8_t>(hand_off);
  end.slept = slept_ ? 1 : 0;
  end.unreleased = begun_.marked != 0 ? 0 : 1;
  end.chance = chance_;
  if (begun_.marked != 0) {
    // Nobody has taken the mark: the lock became free before it was there, or without a release.
    std::uint32_t own = kKnown | begun_.ticket;
    if (object_.mark->compare_exchange(own, kKnown, MemoryOrder::kRelaxed)) end.unreleased = 1;
  }
  if (outcome == RELOCK_WAIT_ACQUIRED && end.wait_ns < kShortNs && is_told_late(object_)) {
    const RecordChange change;
    if (change.entered() && (t_record.due & kWaitDue) == 0) {
      t_record.wait = end;
      t_record.due |= kWaitDue;
      return;
    }
  }
  tell_recorder([&](const RelockProfiler& recorder) { recorder.wait_end(&end); });
}

void RecordedWait::end(RelockWaitOutcome outcome) {
  if (outcome != RELOCK_WAIT_ACQUIRED || object_.record == nullptr) {
    return end(outcome, 0, RELOCK_HANDOFF_UNKNOWN);
  }
  const std::uint32_t record = object_.record->load(MemoryOrder::kRelaxed);
  end(outcome, acquisitions_in(record + kOneAcquisition), hand_off_from(record & kNodeBits));
}

RelockHandOff hand_off_from(std::uint32_t node_before) {
  if (g_runtime.topology.nodes <= 1) return RELOCK_HANDOFF_WITHIN;
  if (node_before == 0) return RELOCK_HANDOFF_UNKNOWN;
  return node_before == own_node() ? RELOCK_HANDOFF_WITHIN : RELOCK_HANDOFF_ACROSS;
}

std::uint32_t own_node() { return static_cast<std::uint32_t>(LinuxPlatform::node()) + 1; }

void report_count(const void* object, RelockObjectKind kind, std::uint64_t acquisitions) {
  tell_recorder(
      [=](const RelockProfiler& recorder) { recorder.counted(object, kind, acquisitions); });
}

void note_known_acquisition(const RecordedObject& object) {
  std::uint32_t record = object.record->load(MemoryOrder::kRelaxed);
  if (g_runtime.topology.nodes > 1) {
    record = (record & ~kNodeBits) | (own_node() & kNodeBits);
    object.record->store(record, MemoryOrder::kRelaxed);
  }
  const std::uint32_t count = acquisitions_in(record);
  if (is_due(count, kCountBits)) report_count(object.address, object.kind, count);
  draw_hold(object.address, object.kind, count, record);
}

void draw_hold(const void* object, RelockObjectKind kind, std::uint32_t count,
               std::uint32_t record) {
  const std::uint32_t weight = hold_weight(count);
  if (weight > 1) {
    t_record.until_hold -= static_cast<std::int32_t>(kMostHoldWeight / weight);
    if (likely(t_record.until_hold > 0)) return;
    // Between 1 and twice the mean less 1, so that no rhythm of the program is followed.
    t_record.until_hold += static_cast<std::int32_t>(random_up_to(2 * kMostHoldWeight - 1));
  }
  put_hold({object, ticks(), record, static_cast<std::uint16_t>(weight),
            static_cast<std::uint16_t>(kind)});
}

ReportedRelease::ReportedRelease(const void* object, LinuxAtomic32* mark,
                                 const LinuxAtomic32* record) {
  if (mark != nullptr) ticket_ = take_ticket(*mark);
  if (t_record.due < kHoldDue) return;
  hold_ = take_hold(object, record);
  if (hold_.weight != 0) hold_ns_ = ticks_to_ns(hold_.since, ticks());
}

void ReportedRelease::report() const {
  if ((t_record.due & kWaitDue) != 0) tell_wait();
  if (ticket_ != 0) {
    tell_recorder([this](const RelockProfiler& recorder) { recorder.released(ticket_); });
  }
  if (hold_.weight != 0) {
    tell_count([this](const RelockProfiler& recorder) {
      recorder.held(hold_.object, hold_.kind, hold_ns_, hold_.weight);
    });
  }
}

// A copy is told: a signal handler may wake others meanwhile.
void report_woken() {
  const WokenTickets woken = t_record.woken;
  t_record.woken.count = 0;
  if (woken.count == 0) return;
  tell_recorder(
      [&](const RelockProfiler& recorder) { recorder.woken(woken.tickets, woken.count); });
}

TableRecord g_table_records[1u << kTableBits];

TableRecord* find_table_record(const void* object, bool make) {
  constexpr std::size_t kProbes = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  std::size_t index = table_place(object);
  for (std::size_t probe = 0; probe < kProbes; ++probe, ++index) {
    TableRecord& record = g_table_records[index % (1u << kTableBits)];
    std::uintptr_t seen = __atomic_load_n(&record.address, __ATOMIC_RELAXED);
    if (seen == address) return &record;
    if (seen == 0 && !make) return nullptr;
    // Relaxed: an entry carries nothing but counters.
    if (seen == 0 && (__atomic_compare_exchange_n(&record.address, &seen, address, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                      seen == address)) {
      return &record;
    }
  }
  return nullptr;
}

std::uint32_t forget_table_record(const void* object) {
  TableRecord* const known = table_record(object, false);
  if (known == nullptr) return 0;
  known->mark.store(0, MemoryOrder::kRelaxed);
  return known->record.exchange(0, MemoryOrder::kRelaxed);
}

void open_profiler() {
  char path[PATH_MAX];
  if (!plugin_path(path, sizeof path)) return say_no_profile("cannot tell where relock lies");
  void* plugin = real().dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return say_no_profile(dlerror());
  auto* entry =
      reinterpret_cast<decltype(&relock_profiler_entry)>(dlsym(plugin, "relock_profiler_entry"));
  if (entry == nullptr) return say_no_profile("librelock-profile.so is of another version");
  measure_tick_rate();
  const RelockHost host = host_description();
  if (entry(&host, &g_runtime.profiler) != 0) return;  // it has said why
  if (g_runtime.profiler.version != RELOCK_PROFILER_VERSION) {
    return say_no_profile("librelock-profile.so is of another version");
  }
  g_runtime.recording = true;
  g_runtime.mutex_needs_care = true;
  g_runtime.mutex_recorded = !g_runtime.mutex_is_glibcs;
  at_quick_exit([] { g_runtime.profiler.finish(/*abrupt=*/false); });
}

}  // namespace relock
