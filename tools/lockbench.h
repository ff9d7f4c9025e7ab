// lockbench: many threads and one lock, through plain pthread calls. It knows nothing of relock:
// whichever library is preloaded is what it measures. Linked with libc alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockbench {

enum class ObjectKind : std::uint8_t { kMutex, kSpin, kCond, kRwlock };

struct Settings {
  ObjectKind object = ObjectKind::kMutex;
  int threads = 2;
  std::uint64_t section_ns = 100;
  std::uint32_t line_reads = 0;  // reads of the lock's own cache line inside the section
  std::uint64_t think_ns = 0;    // mean; each is drawn between none and twice that
  std::uint64_t duration_ns = 1'000'000'000;
  std::uint32_t sample_every = 0;  // 0: chosen by the number of threads
  std::uint32_t read_percent = 90;
  bool alone = false;  // in the main thread, with no other thread in the process
  bool json = false;
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
  std::uint64_t updates = 0;     // increments of the shared counter, late ones too
  std::uint64_t torn_reads = 0;  // the counter changed while a reader held the lock
  std::uint64_t random = 0;
  bool reading = false;  // this operation, with a readers-writer lock
  Histogram waits;
};

struct Result {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t counter = 0;           // must equal the sum of all updates
  std::uint64_t longest_stall_ns = 0;  // a thread without a finished operation, for any reason
  Worker* workers = nullptr;
};

// Finds out how many turns of the working loop one nanosecond takes.
void calibrate();

// Runs the benchmark. Returns 0, or an errno value when threads cannot be started.
int measure(const Settings& settings, Result* result);

// Prints the result; false when it shows that the lock does not exclude.
bool report(const Settings& settings, const Result& result);

std::uint64_t now_ns();
const char* object_name(ObjectKind kind);

}  // namespace lockbench
