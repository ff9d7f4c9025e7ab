// pthread_rwlock_*: glibc's own, counted and recorded.
#include <cerrno>

#include <pthread.h>

#include "interpose/export.h"
#include "interpose/mutex.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/runtime.h"

namespace relock {
namespace {

using TryFunction = int (*)(pthread_rwlock_t*);

// A process-shared lock's bytes belong to other processes too: no marks and counters in it.
std::uint32_t count_acquisition(RwlockView view) {
  return view.is_shared() ? 0 : view.acquisitions().fetch_add(1, MemoryOrder::kRelaxed) + 1;
}

// Tries first (once the arguments are known to be right), so that only a real wait is timed. `lock`
// is the call that waits.
template <class Lock>
int lock_recorded(pthread_rwlock_t* rwlock, RelockObjectKind kind, TryFunction try_lock,
                  Lock lock) {
  RwlockView view(rwlock);
  int error = try_lock(rwlock);
  if (error == 0) {
    count_acquisition(view);
    return 0;
  }
  RecordedWait wait(rwlock, kind, view.is_shared() ? nullptr : &view.mark());
  wait.begin();
  error = lock();
  if (error == 0) {
    wait.end(RELOCK_WAIT_ACQUIRED, count_acquisition(view));
  } else {
    wait.end(error == ETIMEDOUT ? RELOCK_WAIT_TIMED_OUT : RELOCK_WAIT_CANCELLED, 0);
  }
  return error;
}

template <class Lock>
int read_recorded(pthread_rwlock_t* rwlock, Lock lock) {
  return lock_recorded(rwlock, RELOCK_KIND_RWLOCK_READ, real().pthread_rwlock_tryrdlock, lock);
}
template <class Lock>
int write_recorded(pthread_rwlock_t* rwlock, Lock lock) {
  return lock_recorded(rwlock, RELOCK_KIND_RWLOCK_WRITE, real().pthread_rwlock_trywrlock, lock);
}

int try_recorded(pthread_rwlock_t* rwlock, RelockObjectKind kind, TryFunction try_lock) {
  const int error = try_lock(rwlock);
  if (error == 0) {
    count_acquisition(RwlockView(rwlock));
  } else if (error == EBUSY) {
    g_runtime.profiler.try_failed(rwlock, kind);
  }
  return error;
}

}  // namespace
}  // namespace relock

using relock::g_runtime;
using relock::likely;
using relock::real;
using relock::unlikely;

RELOCK_EXPORT(int, pthread_rwlock_rdlock, (pthread_rwlock_t * rwlock)) {
  if (likely(!g_runtime.recording)) return real().pthread_rwlock_rdlock(rwlock);
  return relock::read_recorded(rwlock, [&] { return real().pthread_rwlock_rdlock(rwlock); });
}
RELOCK_EXPORT(int, pthread_rwlock_wrlock, (pthread_rwlock_t * rwlock)) {
  if (likely(!g_runtime.recording)) return real().pthread_rwlock_wrlock(rwlock);
  return relock::write_recorded(rwlock, [&] { return real().pthread_rwlock_wrlock(rwlock); });
}
RELOCK_EXPORT(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * rwlock, const timespec* when)) {
  if (likely(!g_runtime.recording) || !relock::valid_nanoseconds(*when)) {
    return real().pthread_rwlock_timedrdlock(rwlock, when);
  }
  return relock::read_recorded(rwlock,
                               [&] { return real().pthread_rwlock_timedrdlock(rwlock, when); });
}
RELOCK_EXPORT(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * rwlock, const timespec* when)) {
  if (likely(!g_runtime.recording) || !relock::valid_nanoseconds(*when)) {
    return real().pthread_rwlock_timedwrlock(rwlock, when);
  }
  return relock::write_recorded(rwlock,
                                [&] { return real().pthread_rwlock_timedwrlock(rwlock, when); });
}
RELOCK_EXPORT(int, pthread_rwlock_clockrdlock,
              (pthread_rwlock_t * rwlock, clockid_t clock, const timespec* when)) {
  if (likely(!g_runtime.recording) || !relock::supported_clock(clock) ||
      !relock::valid_nanoseconds(*when)) {
    return real().pthread_rwlock_clockrdlock(rwlock, clock, when);
  }
  return relock::read_recorded(
      rwlock, [&] { return real().pthread_rwlock_clockrdlock(rwlock, clock, when); });
}
RELOCK_EXPORT(int, pthread_rwlock_clockwrlock,
              (pthread_rwlock_t * rwlock, clockid_t clock, const timespec* when)) {
  if (likely(!g_runtime.recording) || !relock::supported_clock(clock) ||
      !relock::valid_nanoseconds(*when)) {
    return real().pthread_rwlock_clockwrlock(rwlock, clock, when);
  }
  return relock::write_recorded(
      rwlock, [&] { return real().pthread_rwlock_clockwrlock(rwlock, clock, when); });
}
RELOCK_EXPORT(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * rwlock)) {
  if (likely(!g_runtime.recording)) return real().pthread_rwlock_tryrdlock(rwlock);
  return relock::try_recorded(rwlock, RELOCK_KIND_RWLOCK_READ, real().pthread_rwlock_tryrdlock);
}
RELOCK_EXPORT(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * rwlock)) {
  if (likely(!g_runtime.recording)) return real().pthread_rwlock_trywrlock(rwlock);
  return relock::try_recorded(rwlock, RELOCK_KIND_RWLOCK_WRITE, real().pthread_rwlock_trywrlock);
}
RELOCK_EXPORT(int, pthread_rwlock_unlock, (pthread_rwlock_t * rwlock)) {
  if (likely(!g_runtime.recording)) return real().pthread_rwlock_unlock(rwlock);
  relock::RwlockView view(rwlock);
  const std::uint32_t ticket = view.is_shared() ? 0 : relock::take_mark(view.mark());
  const int error = real().pthread_rwlock_unlock(rwlock);
  relock::report_release(ticket);
  return error;
}

RELOCK_EXPORT(int, pthread_rwlock_init,
              (pthread_rwlock_t * rwlock, const pthread_rwlockattr_t* attributes)) {
  const int error = real().pthread_rwlock_init(rwlock, attributes);
  if (unlikely(g_runtime.recording) && error == 0) {
    g_runtime.profiler.object_init(rwlock, RELOCK_KIND_RWLOCK_READ, __builtin_return_address(0));
    g_runtime.profiler.object_init(rwlock, RELOCK_KIND_RWLOCK_WRITE, __builtin_return_address(0));
  }
  return error;
}
RELOCK_EXPORT(int, pthread_rwlock_destroy, (pthread_rwlock_t * rwlock)) {
  if (unlikely(g_runtime.recording)) {
    relock::RwlockView view(rwlock);
    const std::uint32_t acquisitions =
        view.is_shared() ? 0 : view.acquisitions().load(relock::MemoryOrder::kRelaxed);
    g_runtime.profiler.object_destroy(rwlock, RELOCK_KIND_RWLOCK_READ, acquisitions);
    g_runtime.profiler.object_destroy(rwlock, RELOCK_KIND_RWLOCK_WRITE, acquisitions);
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
