// pthread_rwlock_*: whose the object is, and recording. rwsem.cpp or glibc serves it.
#include <cerrno>

#include <pthread.h>

#include "interpose/export.h"
#include "interpose/mutex.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/rules.h"
#include "interpose/runtime.h"
#include "interpose/rwsem.h"

namespace relock {
namespace {

// A process-shared lock stays the C library's: its bytes belong to other processes too. Where rules
// pick the lock, whoever is sent off the fast path asks them.
inline bool looks_like_glibcs(RwlockView rwlock) {
  return g_runtime.rwlock_is_glibcs || rwlock.is_shared();
}
bool is_glibcs(RwlockView rwlock) {
  if (!looks_like_glibcs(rwlock)) return false;
  return likely(!g_runtime.rwlocks_ruled) || rwlock.is_shared() ||
         rule_makes_rwlock_glibcs(rwlock.object());
}

// The two sides of a lock: which of glibc's functions serves it, and which of ours.
struct Side {
  RelockObjectKind kind;
  int (*RealFunctions::*real_try)(pthread_rwlock_t*);
  int (*RealFunctions::*real_lock)(pthread_rwlock_t*);
  int (*RealFunctions::*real_clocklock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*try_ours)(RwlockView);
  int (*lock_ours)(RwlockView, const Timeout*, WaitObserver*);
};
constexpr Side kReading{RELOCK_KIND_RWLOCK_READ,
                        &RealFunctions::pthread_rwlock_tryrdlock,
                        &RealFunctions::pthread_rwlock_rdlock,
                        &RealFunctions::pthread_rwlock_clockrdlock,
                        &rwsem_try_read,
                        &rwsem_read};
constexpr Side kWriting{RELOCK_KIND_RWLOCK_WRITE,
                        &RealFunctions::pthread_rwlock_trywrlock,
                        &RealFunctions::pthread_rwlock_wrlock,
                        &RealFunctions::pthread_rwlock_clockwrlock,
                        &rwsem_try_write,
                        &rwsem_write};

template <const Side& kSide>
int try_lock(RwlockView rwlock) {
  return is_glibcs(rwlock) ? (real().*kSide.real_try)(rwlock.object()) : kSide.try_ours(rwlock);
}

template <const Side& kSide>
__attribute__((noinline)) int lock_elsewhere(RwlockView rwlock, const Timeout* timeout,
                                             WaitObserver* observer) {
  if (!is_glibcs(rwlock)) return kSide.lock_ours(rwlock, timeout, observer);
  pthread_rwlock_t* const object = rwlock.object();
  return timeout == nullptr ? (real().*kSide.real_lock)(object)
                            : (real().*kSide.real_clocklock)(object, timeout->clock, timeout->when);
}

template <const Side& kSide>
inline int lock(RwlockView rwlock, const Timeout* timeout, WaitObserver* observer) {
  if (likely(!looks_like_glibcs(rwlock))) return kSide.lock_ours(rwlock, timeout, observer);
  return lock_elsewhere<kSide>(rwlock, timeout, observer);
}

__attribute__((noinline)) int unlock_elsewhere(RwlockView rwlock) {
  return is_glibcs(rwlock) ? real().pthread_rwlock_unlock(rwlock.object()) : rwsem_unlock(rwlock);
}

inline int unlock_any(RwlockView rwlock) {
  return likely(!looks_like_glibcs(rwlock)) ? rwsem_unlock(rwlock) : unlock_elsewhere(rwlock);
}

// A process-shared lock gets no marks and counters.
std::uint32_t count_acquisition(RwlockView rwlock) {
  return rwlock.is_shared() ? 0 : rwlock.acquisitions().fetch_add(1, MemoryOrder::kRelaxed) + 1;
}

// Tries first (once the arguments are known to be right), so that only a real wait is timed.
template <const Side& kSide>
int lock_recorded(RwlockView rwlock, const Timeout* timeout) {
  if (timeout != nullptr &&
      (!supported_clock(timeout->clock) || !valid_nanoseconds(*timeout->when))) {
    return EINVAL;
  }
  int error = try_lock<kSide>(rwlock);
  if (error == 0) {
    count_acquisition(rwlock);
    return 0;
  }
  RecordedWait wait(rwlock.object(), kSide.kind, rwlock.is_shared() ? nullptr : &rwlock.mark());
  if (is_glibcs(rwlock)) wait.begin();  // nobody will tell when it is about to sleep
  error = lock<kSide>(rwlock, timeout, &wait);
  if (error == 0) {
    wait.end(RELOCK_WAIT_ACQUIRED, count_acquisition(rwlock));
  } else {
    wait.end(error == ETIMEDOUT ? RELOCK_WAIT_TIMED_OUT : RELOCK_WAIT_CANCELLED, 0);
  }
  return error;
}

template <const Side& kSide>
int try_any(pthread_rwlock_t* object) {
  RwlockView rwlock(object);
  const int error = try_lock<kSide>(rwlock);
  if (likely(!g_runtime.recording)) return error;
  if (error == 0) {
    count_acquisition(rwlock);
  } else if (error == EBUSY) {
    report_try_failed(object, kSide.kind);
  }
  return error;
}

template <const Side& kSide>
inline int lock_any(pthread_rwlock_t* object, const Timeout* timeout) {
  RwlockView rwlock(object);
  if (likely(!g_runtime.recording)) return lock<kSide>(rwlock, timeout, nullptr);
  return lock_recorded<kSide>(rwlock, timeout);
}

}  // namespace
}  // namespace relock

using relock::g_runtime;
using relock::likely;
using relock::real;
using relock::Timeout;
using relock::unlikely;

RELOCK_EXPORT(int, pthread_rwlock_rdlock, (pthread_rwlock_t * rwlock)) {
  return relock::lock_any<relock::kReading>(rwlock, nullptr);
}
RELOCK_EXPORT(int, pthread_rwlock_wrlock, (pthread_rwlock_t * rwlock)) {
  return relock::lock_any<relock::kWriting>(rwlock, nullptr);
}
RELOCK_EXPORT(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * rwlock, const timespec* when)) {
  const Timeout timeout{CLOCK_REALTIME, when};
  return relock::lock_any<relock::kReading>(rwlock, &timeout);
}
RELOCK_EXPORT(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * rwlock, const timespec* when)) {
  const Timeout timeout{CLOCK_REALTIME, when};
  return relock::lock_any<relock::kWriting>(rwlock, &timeout);
}
RELOCK_EXPORT(int, pthread_rwlock_clockrdlock,
              (pthread_rwlock_t * rwlock, clockid_t clock, const timespec* when)) {
  const Timeout timeout{clock, when};
  return relock::lock_any<relock::kReading>(rwlock, &timeout);
}
RELOCK_EXPORT(int, pthread_rwlock_clockwrlock,
              (pthread_rwlock_t * rwlock, clockid_t clock, const timespec* when)) {
  const Timeout timeout{clock, when};
  return relock::lock_any<relock::kWriting>(rwlock, &timeout);
}
RELOCK_EXPORT(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * rwlock)) {
  return relock::try_any<relock::kReading>(rwlock);
}
RELOCK_EXPORT(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * rwlock)) {
  return relock::try_any<relock::kWriting>(rwlock);
}
RELOCK_EXPORT(int, pthread_rwlock_unlock, (pthread_rwlock_t * rwlock)) {
  relock::RwlockView view(rwlock);
  if (likely(!g_runtime.recording)) return relock::unlock_any(view);
  const std::uint32_t ticket = view.is_shared() ? 0 : relock::take_mark(view.mark());
  const int error = relock::unlock_any(view);
  relock::report_release(ticket);
  return error;
}

RELOCK_EXPORT(int, pthread_rwlock_init,
              (pthread_rwlock_t * rwlock, const pthread_rwlockattr_t* attributes)) {
  const int error = real().pthread_rwlock_init(rwlock, attributes);
  if (unlikely(g_runtime.recording) && error == 0) {
    relock::report_init(rwlock, RELOCK_KIND_RWLOCK_READ, __builtin_return_address(0));
    relock::report_init(rwlock, RELOCK_KIND_RWLOCK_WRITE, __builtin_return_address(0));
  }
  return error;
}
RELOCK_EXPORT(int, pthread_rwlock_destroy, (pthread_rwlock_t * rwlock)) {
  if (unlikely(g_runtime.recording)) {
    relock::RwlockView view(rwlock);
    const std::uint32_t acquisitions =
        view.is_shared() ? 0 : view.acquisitions().load(relock::MemoryOrder::kRelaxed);
    relock::report_destroy(rwlock, RELOCK_KIND_RWLOCK_READ, acquisitions);
    relock::report_destroy(rwlock, RELOCK_KIND_RWLOCK_WRITE, acquisitions);
  }
  return real().pthread_rwlock_destroy(rwlock);
}

RELOCK_EXPORT_ALIAS(__pthread_rwlock_init, pthread_rwlock_init);
RELOCK_EXPORT_ALIAS(__pthread_rwlock_destroy, pthread_rwlock_destroy);
RELOCK_EXPORT_ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
RELOCK_EXPORT_ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
RELOCK_EXPORT_ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
RELOCK_EXPORT_ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
RELOCK_EXPORT_ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);
