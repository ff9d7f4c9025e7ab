// The lock algorithms as this library uses them: tables of functions, one row per lock.
#pragma once

#include <cstdint>

#include "interpose/object.h"
#include "locks/wait.h"
#include "policy/options.h"

namespace relock {

struct MutexBackend {
  bool (*try_lock)(MutexView mutex);
  Acquire (*lock_slow)(MutexView mutex, WaitContext<LinuxPlatform>& context);
  void (*prepare_unlock)(MutexView mutex);
  void (*unlock_slow)(MutexView mutex, const Budget& budget);
};

struct SpinBackend {
  bool (*try_lock)(LinuxAtomic32& word);
  void (*lock_slow)(LinuxAtomic32& word, WaitContext<LinuxPlatform>& context);
  void (*unlock)(LinuxAtomic32& word);
  bool plain_release;  // storing 0 in the low byte releases the lock
};

// For kGlibc and kAuto the table of `tas`: it serves objects locked before the choice was known.
const MutexBackend& mutex_backend(LockKind kind);
const SpinBackend& spin_backend(LockKind kind);

}  // namespace relock
