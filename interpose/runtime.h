// The state of this library in one process, and what the hot paths need of it.
#pragma once

#include <cstdint>

#include "interpose/backend.h"
#include "interpose/profiler_api.h"
#include "locks/budget.h"
#include "policy/options.h"
#include "policy/topology.h"

namespace relock {

struct Runtime {
  // Read by every call; written once, in the constructor. Zero (before it) means: mutexes and
  // spinlocks are ours, unrecorded, with the default lock, whose free and locked words are the same
  // in every choice that may follow.
  bool mutex_needs_care = false;  // glibc's or recorded: off the fast path
  bool mutex_is_glibcs = false;
  bool mutex_recorded = false;  // and served by us, where rules do not say otherwise
  bool spin_is_glibcs = false;
  bool rwlock_is_glibcs = false;  // or some are, where rules pick
  bool mutexes_ruled = false;     // RELOCK_RULES picks the lock of single objects (rules.h)
  bool spins_ruled = false;
  bool rwlocks_ruled = false;
  bool recording = false;
  bool spin_plain_release = true;
  std::uint32_t tid_offset = 0;  // of the tid in the C library's thread descriptor; 0: not known

  LockKind mutex_kind = LockKind::kTas;  // what serves, where the option says `auto`
  LockKind spin_kind = LockKind::kTas;
  const MutexBackend* mutex = nullptr;
  const SpinBackend* spin = nullptr;
  Budget budget;

  Options options;
  Topology topology;
  RelockProfiler profiler{};
};

extern Runtime g_runtime;

// This process's fork epoch plus one, in a page that is zero again in a forked child; null before
// the library has started.
extern LinuxAtomic32* g_epoch;
std::uint32_t count_epoch();  // the first slow path in a child

inline bool unlikely(bool condition) { return __builtin_expect(condition, false); }
inline bool likely(bool condition) { return __builtin_expect(condition, true); }

inline std::uint32_t LinuxPlatform::epoch() {
  const LinuxAtomic32* const epoch = g_epoch;
  if (unlikely(epoch == nullptr)) return 0;
  const std::uint32_t known = epoch->load(MemoryOrder::kAcquire);
  return likely(known != 0) ? known - 1 : count_epoch();
}

std::uint32_t thread_id_slow();

inline bool thread_id_is_known() { return g_runtime.tid_offset != 0; }

// The id that the C library knows this thread by, and writes into __owner. Read where the C library
// keeps it, so that it is right in every child of every kind of fork, without a system call.
// Only where thread_id_is_known().
inline std::uint32_t known_thread_id() {
#if defined(__x86_64__)
  const std::uint64_t offset = g_runtime.tid_offset;
  std::uint32_t tid;
  __asm__ volatile("movl %%fs:(%1), %0" : "=r"(tid) : "r"(offset));
  return tid;
#else
  return thread_id_slow();
#endif
}

inline std::uint32_t thread_id() {
  return likely(thread_id_is_known()) ? known_thread_id() : thread_id_slow();
}

inline const MutexBackend& mutex_backend() {
  return g_runtime.mutex != nullptr ? *g_runtime.mutex : mutex_backend(kDefaultLock);
}
inline const SpinBackend& spin_backend() {
  return g_runtime.spin != nullptr ? *g_runtime.spin : spin_backend(kDefaultLock);
}

// What `auto` stands for here; and the limits of waiting, in another mode than RELOCK_WAIT's.
LockKind resolve_lock(LockKind kind);
Budget budget_with(WaitMode mode);

// Called in the child of fork, before anything else there.
void after_fork_in_child();

// Opens the recorder and fills g_runtime.profiler; on failure the program runs on unrecorded.
void open_profiler();

}  // namespace relock
