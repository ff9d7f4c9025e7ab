// What the recorder keeps per process, outside the profile file.
#pragma once

#include <cstdint>

#include "interpose/profile/profile_format.h"
#include "interpose/profiler_api.h"

namespace relock::profile {

inline constexpr std::uint32_t kSeenModules = 256;  // a power of two
inline constexpr std::uint32_t kOwnStacks = 16;

// Lives in a page that the kernel clears in a forked child, whichever way the child is made: there
// it reads as "no file yet", so a child can never write into its parent's profile. All zero is the
// valid start. Fields are read and written with the functions below.
struct ProcessState {
  std::uint64_t header;  // address of the mapped file, 0 before it is there
  std::uint32_t phase;   // Phase
  std::uint32_t next_ticket;
  std::uint32_t unwinder_lock;   // 1: a thread is inside libunwind
  std::uint32_t unwinder_ready;  // libunwind may be entered
  std::uint64_t window_end_ns;   // see sampler.h
  std::uint64_t window_demand_ns;
  std::uint64_t period_ns;
  std::uint32_t window_offers;
  std::uint32_t window_taken;
  std::uint64_t next_log_ns;
  std::uint32_t log_busy;
  std::uint32_t next_shard;
  std::uint64_t threads_counted_ns;          // see threads.cpp
  std::uint32_t stacks_busy[kOwnStacks];     // see own_stack.cpp
  std::uint64_t seen_modules[kSeenModules];  // see modules.cpp
};

enum Phase : std::uint32_t { kPhaseNone, kPhaseOpening, kPhaseReady, kPhaseFailed };

// Statistics need no order among themselves: a reader takes each number as it finds it.
template <typename T>
inline void add(T& field, T amount) {
  __atomic_fetch_add(&field, amount, __ATOMIC_RELAXED);
}
// The same where no other thread writes; in one instruction, for the sake of signal handlers.
inline void add_alone(std::uint64_t& field, std::uint64_t amount) {
  __asm__("addq %1, %0" : "+m"(field) : "r"(amount) : "cc");
}
inline void add_alone(std::uint32_t& field, std::uint32_t amount) {
  __asm__("addl %1, %0" : "+m"(field) : "r"(amount) : "cc");
}
template <typename T>
inline T read(const T& field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}
template <typename T>
inline void write(T& field, T value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}
template <typename T>
inline void raise_to(T& field, T value) {
  T seen = read(field);
  while (seen < value && !__atomic_compare_exchange_n(&field, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
}
// The orders that publish a row: whoever reads `field` with read_acquire after publish or
// exchange_if stored it also sees what was written before.
template <typename T>
inline T read_acquire(const T& field) {
  return __atomic_load_n(&field, __ATOMIC_ACQUIRE);  // pairs with publish and exchange_if
}
template <typename T>
inline void publish(T& field, T value) {
  __atomic_store_n(&field, value, __ATOMIC_RELEASE);  // pairs with read_acquire
}
template <typename T>
inline bool exchange_if(T& field, T& expected, T desired) {
  return __atomic_compare_exchange_n(&field, &expected, desired, false,
                                     __ATOMIC_ACQ_REL,   // pairs with itself and read_acquire
                                     __ATOMIC_ACQUIRE);  // pairs with publish
}

// Per thread, at a fixed offset from the thread pointer: reaching it never allocates.
struct ThreadState {
  std::uint32_t busy;   // inside the recorder
  std::uint32_t shard;  // which rows of kSectionShards it adds to, plus 1; 0: has not waited yet
  std::uint64_t random;
  std::uint64_t demand_ns;  // what it has not yet told the sampler's window, see sampler.cpp
  std::uint32_t offers;
  std::int32_t undrawn;
  std::uint32_t next_weight;  // the wait that it asks about next is drawn, with this weight
  std::uint32_t shard_of;     // the file that `shard` is of, by its start
  std::uint64_t stack_low;    // this thread's own stack as far as it is known to be mapped
  std::uint64_t stack_high;
};
extern __thread ThreadState thread_state __attribute__((tls_model("initial-exec")));

extern ProcessState* process;  // null until set_up_process
extern RelockHost host;        // the copy that the entry point made
extern bool sandboxed;         // a filter is in force, in this process or inherited

// Makes the page. Returns 0 or an errno value.
int set_up_process();

inline Header* current_header() {
  return reinterpret_cast<Header*>(read_acquire(process->header));  // pairs with open_profile
}

inline void drop(Header* header, DropIndex what) { add(header->drops[what], std::uint64_t{1}); }

template <typename Row>
inline Row* rows(Header* header, SectionIndex index) {
  return reinterpret_cast<Row*>(reinterpret_cast<char*>(header) + section_offset(index));
}

// Keeps two calls of one thread apart: a signal handler may wait for a lock while its thread is
// recording, and so may the libraries that the recorder itself uses.
class RecordGuard {
 public:
  RecordGuard() : entered_(thread_state.busy == 0) {
    if (entered_) thread_state.busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // pairs with the handler that reads `busy`
  }
  ~RecordGuard() {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // pairs with the handler that reads `busy`
    if (entered_) thread_state.busy = 0;
  }
  RecordGuard(const RecordGuard&) = delete;
  RecordGuard& operator=(const RecordGuard&) = delete;
  bool entered() const { return entered_; }

 private:
  bool entered_;
};

}  // namespace relock::profile
