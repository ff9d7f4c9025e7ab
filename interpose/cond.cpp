// pthread_cond_*: ours (locks/condvar.h) unless process-shared or RELOCK_MUTEX=glibc.
//
// A waiter is parked on a semaphore in its own frame: sem_clockwait is a cancellation point with
// both clocks, which a bare futex is not.
#include "interpose/cond.h"

#include <cerrno>
#include <new>

#include <semaphore.h>

#include "interpose/export.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/runtime.h"

namespace relock {

struct SemaphoreParker {
  sem_t semaphore;
  LinuxAtomic32 mark;  // recording.h: of this waiter alone; whoever wakes it takes its ticket

  SemaphoreParker() {
    g_libc.sem_init(&semaphore, 0, 0);
    mark.store(kKnown, MemoryOrder::kRelaxed);  // published with the node (C1)
  }

  // After the value is raised the semaphore's address may be used, its memory not: sem_post is made
  // so. Errors cannot occur.
  void post() {
    if (unlikely(g_runtime.recording)) take_woken(mark);
    g_libc.sem_post(&semaphore);
  }

  // 0, ETIMEDOUT or EINVAL. A cancellation point. Signal handlers do not end it.
  int wait(const Timeout* timeout) {
    for (;;) {
      const int failed = timeout == nullptr
                             ? g_libc.sem_wait(&semaphore)
                             : g_libc.sem_clockwait(&semaphore, timeout->clock, timeout->when);
      if (failed == 0) return 0;
      if (errno != EINTR) return errno;
    }
  }
};

namespace {

using Condition = CondVar<LinuxPlatform, SemaphoreParker, CondView>;

bool cond_is_glibcs(CondView cond) {
  return unlikely(g_runtime.mutex_is_glibcs) || unlikely(cond.is_shared());
}

// One wait, as its cancellation handler sees it.
struct Wait {
  CondView cond;
  pthread_mutex_t* mutex;
  CondWaiter* node;
  RecordedWait* record;
  const void* site;  // where the program called
};

void hand_back(CondView cond, CondWaiter& node) {
  Condition::hand_back(cond, node);
  if (unlikely(g_runtime.recording)) report_woken();
}

// Runs while the thread is being cancelled, before the program's own handlers, which expect the
// mutex to be held. A signal that had reached this waiter goes to the next one.
void cancelled(void* argument) {
  Wait& wait = *static_cast<Wait*>(argument);
  if (!Condition::leave(wait.cond, *wait.node)) {
    (void)wait.node->parker.wait(nullptr);  // posted, or about to be; no longer cancellable
    hand_back(wait.cond, *wait.node);
  }
  if (wait.record != nullptr) wait.record->end(RELOCK_WAIT_CANCELLED);
  (void)mutex_reacquire_after_wait(wait.mutex, wait.site);
}

// Parks until signalled or timed out. 0 or ETIMEDOUT.
int park(Wait& wait, const Timeout* timeout) {
  int result = 0;
  pthread_cleanup_push(cancelled, &wait);
  result = wait.node->parker.wait(timeout);
  pthread_cleanup_pop(0);
  if (result == 0) {
    Condition::confirm(wait.cond, *wait.node);
    return 0;
  }
  if (Condition::leave(wait.cond, *wait.node)) return result;
  // Signalled in the same moment. The post is on its way; cancellation waits for the next point.
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  (void)wait.node->parker.wait(nullptr);
  pthread_setcancelstate(before, nullptr);
  Condition::confirm(wait.cond, *wait.node);
  return 0;
}

int wait_recorded(Wait& wait, const Timeout* timeout) {
  if (likely(!g_runtime.recording)) return park(wait, timeout);
  RecordedWait record({wait.cond.address(), RELOCK_KIND_COND, &wait.node->parker.mark, nullptr},
                      true);
  wait.record = &record;
  const int result = park(wait, timeout);
  record.end(result == 0 ? RELOCK_WAIT_ACQUIRED : RELOCK_WAIT_TIMED_OUT);
  return result;
}

int wait_ours(CondView cond, pthread_mutex_t* mutex, const Timeout* timeout, const void* site) {
  const MutexView view(mutex);
  if (!mutex_is_glibcs(view) && !mutex_may_unlock(view)) return EPERM;
  CondWaiter node;
  Wait wait{cond, mutex, &node, nullptr, site};
  Condition::enlist(cond, node);
  if (const int error = mutex_release_for_wait(mutex); error != 0) {
    if (!Condition::leave(cond, node)) {  // signalled meanwhile: the signal is not ours to take
      (void)node.parker.wait(nullptr);
      hand_back(cond, node);
    }
    return error;
  }
  const int result = wait_recorded(wait, timeout);
  const int error = mutex_reacquire_after_wait(mutex, site);
  return error != 0 ? error : result;
}

// ---- a process-shared condition variable with one of our mutexes ----
//
// Waiters and signallers meet in glibc's object, but glibc must not touch our mutex. So the waiter
// lends glibc a mutex of its own for the time of the wait. Between letting go of the real mutex and
// being counted by glibc a signal can be missed; therefore it waits in short slices and returns as
// if woken without a reason, which POSIX allows and every caller must expect.

struct SharedWait {
  pthread_mutex_t* mutex;
  pthread_mutex_t stand_in;
  const void* site;
};

void shared_cancelled(void* argument) {
  auto& wait = *static_cast<SharedWait*>(argument);
  real().pthread_mutex_unlock(&wait.stand_in);
  (void)mutex_reacquire_after_wait(wait.mutex, wait.site);
}

timespec slice_end(clockid_t clock) {
  constexpr std::int64_t kSliceNs = 5'000'000;
  return linux_detail::to_timespec(LinuxPlatform::clock_ns(clock) + kSliceNs);
}

bool earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

int wait_shared(pthread_cond_t* cond, pthread_mutex_t* mutex, const Timeout* timeout,
                const void* site) {
  if (!mutex_may_unlock(MutexView(mutex))) return EPERM;
  const clockid_t clock = timeout == nullptr ? CLOCK_MONOTONIC : timeout->clock;
  const timespec slice = slice_end(clock);
  const bool last = timeout != nullptr && !earlier(slice, *timeout->when);
  SharedWait wait{mutex, PTHREAD_MUTEX_INITIALIZER, site};
  real().pthread_mutex_lock(&wait.stand_in);
  (void)mutex_release_for_wait(mutex);
  int result = 0;
  pthread_cleanup_push(shared_cancelled, &wait);
  result =
      real().pthread_cond_clockwait(cond, &wait.stand_in, clock, last ? timeout->when : &slice);
  pthread_cleanup_pop(0);
  real().pthread_mutex_unlock(&wait.stand_in);
  const int error = mutex_reacquire_after_wait(mutex, site);
  if (error != 0) return error;
  return result == ETIMEDOUT && !last ? 0 : result;
}

void glibcs_cancelled(void* record) {
  static_cast<RecordedWait*>(record)->end(RELOCK_WAIT_CANCELLED);
}

int wait_glibcs(pthread_cond_t* cond, pthread_mutex_t* mutex, const Timeout* timeout) {
  const auto wait = [&] {
    return timeout == nullptr
               ? real().pthread_cond_wait(cond, mutex)
               : real().pthread_cond_clockwait(cond, mutex, timeout->clock, timeout->when);
  };
  if (likely(!g_runtime.recording)) return wait();
  const MutexView view(mutex);
  const bool records = view.keeps_records();
  // glibc lets go of the mutex inside, and takes it again.
  const ReportedRelease told(mutex, records ? &view.mark() : nullptr,
                             records ? &view.record() : nullptr);
  told.report();
  TableRecord* const known = table_record(cond);
  RecordedWait record({cond, RELOCK_KIND_COND, known != nullptr ? &known->mark : nullptr, nullptr},
                      true);
  int result = 0;
  pthread_cleanup_push(glibcs_cancelled, &record);
  result = wait();
  pthread_cleanup_pop(0);
  record.end(result == ETIMEDOUT ? RELOCK_WAIT_TIMED_OUT : RELOCK_WAIT_ACQUIRED);
  if (records) note_acquisition({mutex, RELOCK_KIND_MUTEX, &view.mark(), &view.record()});
  return result;
}

}  // namespace

int cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex, const Timeout* timeout,
              const void* site) {
  if (timeout != nullptr && !valid_nanoseconds(*timeout->when)) return EINVAL;
  const CondView view(cond);
  if (cond_is_glibcs(view)) {
    if (mutex_is_glibcs(MutexView(mutex))) return wait_glibcs(cond, mutex, timeout);
    return wait_shared(cond, mutex, timeout, site);
  }
  const int saved = errno;
  const int result = wait_ours(view, mutex, timeout, site);
  errno = saved;
  return result;
}

// Wakes by glibc's own function. Whom is not known: the sampled waiter's ticket goes to the first.
int wake_glibcs(pthread_cond_t* cond, int (*wake)(pthread_cond_t*)) {
  if (likely(!g_runtime.recording)) return wake(cond);
  TableRecord* const known = table_record(cond, false);
  if (known != nullptr) take_woken(known->mark);
  const int error = wake(cond);
  report_woken();
  return error;
}

int cond_signal(pthread_cond_t* cond) {
  const CondView view(cond);
  if (cond_is_glibcs(view)) return wake_glibcs(cond, real().pthread_cond_signal);
  Condition::signal(view);
  if (unlikely(g_runtime.recording)) report_woken();
  return 0;
}

int cond_broadcast(pthread_cond_t* cond) {
  const CondView view(cond);
  if (cond_is_glibcs(view)) return wake_glibcs(cond, real().pthread_cond_broadcast);
  Condition::broadcast(view);
  if (unlikely(g_runtime.recording)) report_woken();
  return 0;
}

int cond_destroy(pthread_cond_t* cond) {
  const CondView view(cond);
  if (unlikely(g_runtime.recording)) {
    (void)forget_table_record(cond);
    report_destroy(cond, RELOCK_KIND_COND, 0);
  }
  if (cond_is_glibcs(view)) return real().pthread_cond_destroy(cond);
  WaitContext<LinuxPlatform> context{&g_runtime.budget};
  Condition::destroy(view, context);
  return 0;
}

}  // namespace relock

// ---- the symbols ----

using relock::g_runtime;

RELOCK_EXPORT(int, pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t* mutex)) {
  return relock::cond_wait(cond, mutex, nullptr, __builtin_return_address(0));
}
RELOCK_EXPORT(int, pthread_cond_timedwait,
              (pthread_cond_t * cond, pthread_mutex_t* mutex, const timespec* when)) {
  const relock::Timeout timeout{relock::CondView(cond).clock(), when};
  return relock::cond_wait(cond, mutex, &timeout, __builtin_return_address(0));
}
RELOCK_EXPORT(int, pthread_cond_clockwait,
              (pthread_cond_t * cond, pthread_mutex_t* mutex, clockid_t clock,
               const timespec* when)) {
  if (!relock::valid_nanoseconds(*when) || !relock::supported_clock(clock)) return EINVAL;
  const relock::Timeout timeout{clock, when};
  return relock::cond_wait(cond, mutex, &timeout, __builtin_return_address(0));
}
RELOCK_EXPORT(int, pthread_cond_signal, (pthread_cond_t * cond)) {
  return relock::cond_signal(cond);
}
RELOCK_EXPORT(int, pthread_cond_broadcast, (pthread_cond_t * cond)) {
  return relock::cond_broadcast(cond);
}
RELOCK_EXPORT(int, pthread_cond_init,
              (pthread_cond_t * cond, const pthread_condattr_t* attributes)) {
  const int error = relock::real().pthread_cond_init(cond, attributes);
  if (relock::unlikely(g_runtime.recording) && error == 0) {
    (void)relock::forget_table_record(cond);
    relock::report_init(cond, RELOCK_KIND_COND, __builtin_return_address(0));
  }
  return error;
}
RELOCK_EXPORT(int, pthread_cond_destroy, (pthread_cond_t * cond)) {
  return relock::cond_destroy(cond);
}
