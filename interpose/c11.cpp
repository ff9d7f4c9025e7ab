// mtx_* and cnd_*: the same objects and operations with C11 return values.
#include <cerrno>

#include <threads.h>

#include "interpose/cond.h"
#include "interpose/export.h"
#include "interpose/mutex.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/rules.h"
#include "interpose/runtime.h"

namespace relock {
namespace {

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t));
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t));

pthread_mutex_t* mutex_of(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* cond_of(cnd_t* cond) { return reinterpret_cast<pthread_cond_t*>(cond); }

int c11(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

}  // namespace
}  // namespace relock

using relock::c11;
using relock::g_runtime;

RELOCK_EXPORT(int, mtx_lock, (mtx_t * mutex)) {
  return c11(relock::mutex_lock(relock::mutex_of(mutex), __builtin_return_address(0)));
}
RELOCK_EXPORT(int, mtx_trylock, (mtx_t * mutex)) {
  return c11(relock::mutex_trylock(relock::mutex_of(mutex)));
}
RELOCK_EXPORT(int, mtx_timedlock, (mtx_t * mutex, const timespec* when)) {
  return c11(relock::mutex_lock_until(relock::mutex_of(mutex), {CLOCK_REALTIME, when},
                                      __builtin_return_address(0)));
}
RELOCK_EXPORT(int, mtx_unlock, (mtx_t * mutex)) {
  return c11(relock::mutex_unlock(relock::mutex_of(mutex)));
}
RELOCK_EXPORT(int, mtx_init, (mtx_t * mutex, int type)) {
  const int result = relock::real().mtx_init(mutex, type);
  if (relock::unlikely(g_runtime.mutexes_ruled) && result == thrd_success) {
    relock::rule_initialised_mutex(relock::MutexView(relock::mutex_of(mutex)),
                                   __builtin_return_address(0));
  }
  if (relock::unlikely(g_runtime.recording) && result == thrd_success) {
    relock::report_init(mutex, RELOCK_KIND_MUTEX, __builtin_return_address(0));
  }
  return result;
}
RELOCK_EXPORT(void, mtx_destroy, (mtx_t * mutex)) {
  if (relock::unlikely(g_runtime.recording)) {
    const relock::MutexView view(relock::mutex_of(mutex));
    relock::report_destroy(mutex, RELOCK_KIND_MUTEX, view.recorded_acquisitions());
  }
  relock::real().mtx_destroy(mutex);
}

RELOCK_EXPORT(int, cnd_wait, (cnd_t * cond, mtx_t* mutex)) {
  return c11(relock::cond_wait(relock::cond_of(cond), relock::mutex_of(mutex), nullptr,
                               __builtin_return_address(0)));
}
RELOCK_EXPORT(int, cnd_timedwait, (cnd_t * cond, mtx_t* mutex, const timespec* when)) {
  const relock::Timeout timeout{CLOCK_REALTIME, when};
  return c11(relock::cond_wait(relock::cond_of(cond), relock::mutex_of(mutex), &timeout,
                               __builtin_return_address(0)));
}
RELOCK_EXPORT(int, cnd_signal, (cnd_t * cond)) {
  return c11(relock::cond_signal(relock::cond_of(cond)));
}
RELOCK_EXPORT(int, cnd_broadcast, (cnd_t * cond)) {
  return c11(relock::cond_broadcast(relock::cond_of(cond)));
}
RELOCK_EXPORT(int, cnd_init, (cnd_t * cond)) {
  const int result = relock::real().cnd_init(cond);
  if (relock::unlikely(g_runtime.recording) && result == thrd_success) {
    relock::report_init(cond, RELOCK_KIND_COND, __builtin_return_address(0));
  }
  return result;
}
RELOCK_EXPORT(void, cnd_destroy, (cnd_t * cond)) {
  (void)relock::cond_destroy(relock::cond_of(cond));
}
