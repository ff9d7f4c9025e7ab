// lockbench: many threads and one lock, through plain pthread calls. It knows nothing of relock:
// whichever library is preloaded is what it measures. Linked with libc alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockbench {

enum class ObjectKind : std::uint8_t {
  kMutex,
  kSpin,
  kRwlock,
  kC11Mutex,
  kCondQueue,
  kCondPingpong,
  kCondBroadcast,
  kNone
};
constexpr int kObjectKinds = 8;

struct Settings {
  ObjectKind object = ObjectKind::kMutex;
  int threads = 0;  // 0: chosen by the object
  std::uint64_t section_ns = 100;
  std::uint32_t line_reads = 0;  // reads of the lock's own cache line inside the section
  std::uint64_t think_ns = 0;    // mean; each is drawn between none and twice that
  double think_multiple = -1;    // of the section, in place of think_ns
  std::uint64_t duration_ns = 1'000'000'000;
  std::uint32_t sample_every = 0;  // 0: chosen by threads and section
  std::uint32_t read_percent = 90;
  bool fixed_roles = false;  // each thread reads only or writes only; read_percent of the threads
  double turns_per_ns = 0;   // of the working loop; 0: found out at start
  bool alone = false;        // in the main thread, with no other thread in the process
  bool json = false;
  bool limits = false;  // measure the machine instead of a lock
};

// Waiting times by size: 16 steps for each doubling, so a value is off by at most a sixteenth.
class Histogram {
 public:
  void add(std::uint64_t value_ns);
  void add(const Histogram& other);
  std::uint64_t count() const { return count_; }
  std::uint64_t longest() const { return longest_; }
  // The value that `fraction` of all values do not exceed.
  std::uint64_t percentile(double fraction) const;

 private:
  static constexpr int kStepBits = 4;
  static constexpr int kBuckets = (64 - kStepBits + 1) << kStepBits;
  static int bucket_of(std::uint64_t value_ns);
  static std::uint64_t upper_bound_of(int bucket);

  std::uint64_t count_ = 0;
  std::uint64_t longest_ = 0;
  std::uint32_t buckets_[kBuckets] = {};
};

// One thread's numbers, on cache lines of its own.
struct alignas(128) Worker {
  int index = 0;
  std::uint64_t operations = 0;  // those that ended in time; read by the watching thread as well
  std::uint64_t reads = 0;       // of those, the ones that only read
  std::uint64_t updates = 0;     // increments of the shared counter, late ones too
  std::uint64_t torn_reads = 0;  // the counter changed while a reader held the lock
  std::uint64_t started_ns = 0;  // when it left the barrier; 0: never in time
  std::uint64_t random = 0;
  bool reading = false;  // this operation, with a readers-writer lock
  Histogram waits;
  Histogram read_waits;
};

struct Result {
  std::uint64_t elapsed_ns = 0;  // from before the barrier opens until after the stop flag is up
  std::uint64_t cpu_ns = 0;      // of the whole process in that time
  std::uint64_t counter = 0;     // must equal the sum of all updates
  std::uint64_t longest_stall_ns = 0;  // a thread without a finished operation, for any reason
  std::uint64_t latest_start_ns = 0;   // how long the last thread took to leave the barrier
  std::uint64_t drain_ns = 0;          // from the stop flag until the last thread had ended
  Worker* workers = nullptr;
};

// What the hardware and the kernel take at least; 0 where it cannot be measured here.
struct Limits {
  double turns_per_ns = 0;       // of the working loop
  double atomic_ns = 0;          // one atomic exchange on a line this CPU owns
  double bounce_ns = 0;          // a line from one CPU to another
  double futex_wake_ns = 0;      // from FUTEX_WAKE until the woken thread runs on another CPU
  double context_switch_ns = 0;  // hand-over between two threads on one CPU, wake and wait included
  double clock_ns = 0;           // reading CLOCK_MONOTONIC
  int cpus = 0;                  // that this process may use
};

// Finds out how many turns of the working loop one nanosecond takes.
double calibrate();
void set_turns_per_ns(double turns);

// Runs the benchmark. Returns 0, or an errno value when threads cannot be started.
int measure(const Settings& settings, Result* result);

// Prints the result; false when it shows that the lock does not exclude.
bool report(const Settings& settings, const Result& result);

// Takes about half a second.
Limits measure_limits();
void report_limits(const Limits& limits, bool json);

std::uint64_t now_ns();
const char* object_name(ObjectKind kind);

}  // namespace lockbench
