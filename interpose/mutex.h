// Mutex operations as the wrappers of mutexes, condition variables and C11 share them. Each returns
// what the POSIX call of its name returns.
#pragma once

#include <ctime>

#include "interpose/object.h"

namespace relock {

// An absolute time-out as a caller states it. Checked only when the caller would have to wait.
struct Timeout {
  clockid_t clock;
  const timespec* when;
};

inline bool valid_nanoseconds(const timespec& time) {
  return time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}
inline bool supported_clock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}
Deadline deadline_of(const Timeout& timeout);

// `site`, here and below: the address that the program's call returns to, or null. Where rules pick
// the lock, they may ask for it at the first wait.
int mutex_lock(pthread_mutex_t* mutex, const void* site);
int mutex_trylock(pthread_mutex_t* mutex);
int mutex_lock_until(pthread_mutex_t* mutex, const Timeout& timeout, const void* site);
int mutex_unlock(pthread_mutex_t* mutex);

// For a condition variable's wait. glibc keeps the waiter counted as a user of the mutex, so that
// destroying the mutex meanwhile gives EBUSY.
bool mutex_may_unlock(MutexView mutex);  // false: EPERM
int mutex_release_for_wait(pthread_mutex_t* mutex);
int mutex_reacquire_after_wait(pthread_mutex_t* mutex, const void* site);

// Served by the C library, by configuration or by its kind.
bool mutex_is_glibcs(MutexView mutex);

}  // namespace relock
