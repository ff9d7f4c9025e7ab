// pthread_mutex_*: decode the object, call the lock, keep glibc's bookkeeping.
//
// The fast path of a normal mutex is one compare-exchange each way and no call. Everything else
// (other types, contention, recording, glibc's own objects) leaves it by a tail call.
#include "interpose/mutex.h"

#include <cerrno>
#include <climits>

#include "interpose/export.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/rules.h"
#include "interpose/runtime.h"
#include "locks/gate.h"
#include "locks/tas.h"

namespace relock {
namespace {

// What is the same for every algorithm.
using Crowded = GatedMutex<LinuxPlatform, Tas, MutexView>;

constexpr std::uint32_t kFree = MutexLayout::kFree;
constexpr std::uint32_t kLocked = MutexLayout::kFree | MutexLayout::kLocked;

// P1 of every lock: acquire here pairs with the release in release_word() or unlock_slow().
inline bool take_free(MutexView mutex) {
  std::uint32_t expected = kFree;
  return mutex.word().compare_exchange(expected, kLocked, MemoryOrder::kAcquire);
}

inline void set_owner(MutexView mutex, std::uint32_t tid) {
  mutex.owner().store(tid, MemoryOrder::kRelaxed);  // read by others only to compare with their own
}

inline bool owned_by(MutexView mutex, std::uint32_t tid) {
  return mutex.owner().load(MemoryOrder::kRelaxed) == tid;
}

// Whose slow path serves a mutex: everybody's, or the one that a rule has picked for it. `site`:
// the address that the program's call returns to, for a call that may have to wait.
inline MutexService service_to_wait(MutexView mutex, const void* site) {
  if (likely(!g_runtime.mutexes_ruled)) return {&mutex_backend(), &g_runtime.budget};
  return decide_mutex(mutex, site);
}
inline MutexService service_of(MutexView mutex) {
  if (likely(!g_runtime.mutexes_ruled)) return {&mutex_backend(), &g_runtime.budget};
  return known_mutex(mutex);
}

// A robust mutex has its list link where records are; a process-shared one is touched by processes
// that know nothing of them.
inline RecordedObject recorded(MutexView mutex) {
  const bool keeps = mutex.keeps_records();
  return {mutex.address(), RELOCK_KIND_MUTEX, keeps ? &mutex.mark() : nullptr,
          keeps ? &mutex.record() : nullptr};
}

int acquire_contended(MutexView mutex, const Timeout* timeout, const void* site) {
  Deadline deadline;
  WaitContext<LinuxPlatform> context{nullptr};
  if (timeout != nullptr) {
    // glibc lets times before the epoch pass first, whatever their nanoseconds.
    if (timeout->when->tv_sec >= 0 && !valid_nanoseconds(*timeout->when)) return EINVAL;
    deadline = deadline_of(*timeout);
    context.deadline = &deadline;
  }
  const MutexService service = service_to_wait(mutex, site);
  context.budget = service.budget;
  if (likely(!g_runtime.recording)) {
    return service.backend->lock_slow(mutex, context) == Acquire::kAcquired ? 0 : ETIMEDOUT;
  }
  RecordedWait wait(recorded(mutex), false);
  context.observer = &wait;
  const bool acquired = service.backend->lock_slow(mutex, context) == Acquire::kAcquired;
  wait.end(acquired ? RELOCK_WAIT_ACQUIRED : RELOCK_WAIT_TIMED_OUT);
  return acquired ? 0 : ETIMEDOUT;
}

// The word is ours from here on; counts and owner are not yet set.
inline int acquire(MutexView mutex, const Timeout* timeout, const void* site) {
  if (likely(take_free(mutex)) || Crowded::lock_crowded(mutex)) return 0;
  return acquire_contended(mutex, timeout, site);
}

inline void count_acquisition(MutexView mutex) {
  if (unlikely(g_runtime.recording)) note_acquisition(recorded(mutex));
}

// `users`: 1, or 0 for a condition variable's waiter, who has stayed counted.
int lock_ours(MutexView mutex, const Timeout* timeout, std::uint32_t users, const void* site) {
  const std::uint32_t tid = thread_id();
  const int type = mutex.type();
  if (type == PTHREAD_MUTEX_RECURSIVE_NP && owned_by(mutex, tid)) {
    if (mutex.count() == UINT_MAX) return EAGAIN;
    ++mutex.count();
    return 0;
  }
  if (type == PTHREAD_MUTEX_ERRORCHECK_NP && owned_by(mutex, tid)) return EDEADLK;
  if (const int error = acquire(mutex, timeout, site); error != 0) return error;
  if (type == PTHREAD_MUTEX_RECURSIVE_NP) mutex.count() = 1;
  set_owner(mutex, tid);
  mutex.users() += users;
  count_acquisition(mutex);
  return 0;
}

int trylock_ours(MutexView mutex) {
  const std::uint32_t tid = thread_id();
  const bool recursive = mutex.type() == PTHREAD_MUTEX_RECURSIVE_NP;
  if (recursive && owned_by(mutex, tid)) {
    if (mutex.count() == UINT_MAX) return EAGAIN;
    ++mutex.count();
    return 0;
  }
  if (!take_free(mutex) && !service_of(mutex).backend->try_lock(mutex)) {
    if (unlikely(g_runtime.recording)) {
      report_try_failed(mutex.address(), RELOCK_KIND_MUTEX);
    }
    return EBUSY;
  }
  if (recursive) mutex.count() = 1;
  set_owner(mutex, tid);
  ++mutex.users();
  count_acquisition(mutex);
  return 0;
}

// Clears the owner and lets go. The release is the last access to the object. `users`: 1, or 0 for
// a condition variable's waiter. An unlocked mutex stays unlocked, but is counted down all the
// same, as glibc does.
void release(MutexView mutex, std::uint32_t users) {
  const std::uint32_t word = mutex.word().load(MemoryOrder::kRelaxed);
  const bool simple = word == kLocked || Crowded::is_crowded(mutex, word);
  if (!simple && (word & MutexLayout::kLocked) != 0) {
    service_of(mutex).backend->prepare_unlock(mutex);
  }
  set_owner(mutex, 0);
  mutex.users() -= users;
  if (simple && Crowded::release_crowded(mutex, word)) return;
  const MutexService service = service_of(mutex);
  service.backend->unlock_slow(mutex, *service.budget);
}

void release_and_report(MutexView mutex, std::uint32_t users) {
  if (likely(!g_runtime.recording) || likely(!release_is_reported(mutex.mark()))) {
    return release(mutex, users);
  }
  const ReportedRelease told(mutex.address(), &mutex.mark(), &mutex.record());
  release(mutex, users);
  told.report();
}

// ---- glibc's mutexes, recorded ----

// What a wait that ended with `error` came to; a robust mutex is acquired with EOWNERDEAD as well.
RelockWaitOutcome outcome_of(int error) {
  if (error == ETIMEDOUT) return RELOCK_WAIT_TIMED_OUT;
  return error == 0 || error == EOWNERDEAD ? RELOCK_WAIT_ACQUIRED : RELOCK_WAIT_CANCELLED;
}

// By another thread. In a robust mutex the word holds the owner's tid and flags.
bool looks_held(MutexView mutex) {
  constexpr std::uint32_t kTidMask = 0x3fffffff;
  const std::uint32_t owner = mutex.word().load(MemoryOrder::kRelaxed) & kTidMask;
  return owner != 0 && owner != thread_id();
}

int lock_glibcs(MutexView mutex, const Timeout* timeout) {
  pthread_mutex_t* const object = mutex.object();
  const auto lock = [&] {
    return timeout == nullptr
               ? real().pthread_mutex_lock(object)
               : real().pthread_mutex_clocklock(object, timeout->clock, timeout->when);
  };
  if (!g_runtime.recording) return lock();
  // A try leaves traces in a robust mutex that cannot be recovered; there a look must do.
  int error = !mutex.is_robust()  ? real().pthread_mutex_trylock(object)
              : looks_held(mutex) ? EBUSY
                                  : lock();
  if (error == EBUSY) {
    RecordedWait wait(recorded(mutex), true);
    error = lock();
    wait.end(outcome_of(error));
  }
  if (error == 0 && mutex.keeps_records()) note_acquisition(recorded(mutex));
  return error;
}

int trylock_glibcs(MutexView mutex) {
  const int error = real().pthread_mutex_trylock(mutex.object());
  if (!g_runtime.recording) return error;
  if (error == EBUSY) report_try_failed(mutex.address(), RELOCK_KIND_MUTEX);
  if (error == 0 && mutex.keeps_records()) note_acquisition(recorded(mutex));
  return error;
}

int unlock_glibcs(MutexView mutex) {
  if (!g_runtime.recording || !mutex.keeps_records() || !release_is_reported(mutex.mark())) {
    return real().pthread_mutex_unlock(mutex.object());
  }
  const ReportedRelease told(mutex.address(), &mutex.mark(), &mutex.record());
  const int error = real().pthread_mutex_unlock(mutex.object());
  told.report();
  return error;
}

// glibc's own wait leaves its caller counted among the users; its public calls do not. So the owner
// counts itself once more before it lets go, and takes that back when it owns the mutex again. One
// that is locked more than once (recursive) stays locked, and nothing is counted.
int release_glibcs_for_wait(MutexView mutex) {
  const bool recursive = mutex.type() == PTHREAD_MUTEX_RECURSIVE_NP;
  const bool counts = owned_by(mutex, thread_id()) && !(recursive && mutex.count() > 1);
  if (counts) ++mutex.users();
  const int error = unlock_glibcs(mutex);
  if (error != 0 && counts) --mutex.users();
  return error;
}

int reacquire_glibcs_after_wait(MutexView mutex) {
  const bool kept = owned_by(mutex, thread_id());
  const int error = lock_glibcs(mutex, nullptr);
  if (!kept) --mutex.users();  // also when it cannot be had any more, as glibc does
  return error;
}

// ---- off the fast path ----

// What the fast path would have served, were it not recorded.
inline bool recorded_normal(MutexView mutex) {
  return g_runtime.mutex_recorded && mutex.is_normal();
}

__attribute__((noinline)) int note_known(MutexView mutex) {
  note_known_acquisition(recorded(mutex));
  return 0;
}

__attribute__((noinline)) int lock_any(pthread_mutex_t* object, const void* site) {
  MutexView mutex(object);
  if (mutex_is_glibcs(mutex)) return lock_glibcs(mutex, nullptr);
  return lock_ours(mutex, nullptr, 1, site);
}

// The rest of pthread_mutex_lock, which reaches it by a jump: so the return address is the
// program's, and the fast path needs no frame to pass it on.
__attribute__((noinline)) int lock_called(pthread_mutex_t* object) {
  MutexView mutex(object);
  if (recorded_normal(mutex) && likely(take_free(mutex))) {
    set_owner(mutex, thread_id());
    ++mutex.users();
    if (count_acquisition(mutex.record(), mutex.mark())) return note_known(mutex);
    return 0;
  }
  return lock_any(object, __builtin_return_address(0));
}

__attribute__((noinline)) int trylock_any(pthread_mutex_t* object) {
  MutexView mutex(object);
  return mutex_is_glibcs(mutex) ? trylock_glibcs(mutex) : trylock_ours(mutex);
}

__attribute__((noinline)) int unlock_any(pthread_mutex_t* object) {
  MutexView mutex(object);
  if (recorded_normal(mutex)) {
    release_and_report(mutex, 1);
    return 0;
  }
  if (mutex_is_glibcs(mutex)) return unlock_glibcs(mutex);
  if (!mutex_may_unlock(mutex)) return EPERM;
  if (mutex.type() == PTHREAD_MUTEX_RECURSIVE_NP && --mutex.count() != 0) return 0;
  release_and_report(mutex, 1);
  return 0;
}

// The word was ours and simple, and somebody began to wait before we let go. The owner fields are
// cleared already.
__attribute__((noinline)) int unlock_contended(pthread_mutex_t* object) {
  const MutexService service = service_of(MutexView(object));
  service.backend->unlock_slow(MutexView(object), *service.budget);
  return 0;
}

// Of a word that shows an owner and nobody else. The twin of take_simply.
inline int release_simply(pthread_mutex_t* object) {
  MutexView mutex(object);
  set_owner(mutex, 0);
  --mutex.users();
  std::uint32_t expected = kLocked;
  if (likely(mutex.word().compare_exchange(expected, kFree, MemoryOrder::kRelease))) return 0;
  return unlock_contended(object);
}

// The rest of mutex_unlock, which reaches it by a jump. A recorded mutex of which nothing is to be
// told goes without a frame as well.
__attribute__((noinline)) int unlock_called(pthread_mutex_t* object) {
  MutexView mutex(object);
  if (!recorded_normal(mutex) || mutex.word().load(MemoryOrder::kRelaxed) != kLocked ||
      unlikely(release_is_reported(mutex.mark()))) {
    return unlock_any(object);
  }
  return release_simply(object);
}

inline bool on_fast_path(MutexView mutex) {
  return likely(mutex.is_normal()) && likely(!g_runtime.mutex_needs_care);
}

}  // namespace

Deadline deadline_of(const Timeout& timeout) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kMostSeconds = INT64_MAX / kSecond - 1;
  Deadline deadline;
  deadline.realtime = timeout.clock == CLOCK_REALTIME;
  const std::int64_t seconds = timeout.when->tv_sec;
  if (seconds < 0) {
    deadline.ns = -1;
  } else if (seconds > kMostSeconds) {
    deadline.ns = INT64_MAX;
  } else {
    deadline.ns = seconds * kSecond + timeout.when->tv_nsec;
  }
  return deadline;
}

bool mutex_is_glibcs(MutexView mutex) {
  return unlikely(g_runtime.mutex_is_glibcs) || unlikely(mutex.is_glibcs());
}

bool mutex_may_unlock(MutexView mutex) {
  const int type = mutex.type();
  if (type == PTHREAD_MUTEX_RECURSIVE_NP) return owned_by(mutex, thread_id());
  if (type != PTHREAD_MUTEX_ERRORCHECK_NP) return true;
  // Bit 1 too: it may have become glibc's by rule since the caller looked, and 2 is locked there.
  const bool locked = (mutex.word().load(MemoryOrder::kRelaxed) & MutexLayout::kHeld) != 0;
  return locked && owned_by(mutex, thread_id());
}

// The fast path of lock and trylock. It needs no frame: where the thread's id has to be asked for,
// the slow path does it.
inline bool take_simply(pthread_mutex_t* object) {
  MutexView mutex(object);
  if (!on_fast_path(mutex) || !likely(thread_id_is_known()) || !likely(take_free(mutex))) {
    return false;
  }
  set_owner(mutex, known_thread_id());
  ++mutex.users();
  return true;
}

int mutex_lock(pthread_mutex_t* object, const void* site) {
  return likely(take_simply(object)) ? 0 : lock_any(object, site);
}

int mutex_trylock(pthread_mutex_t* object) {
  return likely(take_simply(object)) ? 0 : trylock_any(object);
}

int mutex_unlock(pthread_mutex_t* object) {
  MutexView mutex(object);
  if (!on_fast_path(mutex) || mutex.word().load(MemoryOrder::kRelaxed) != kLocked) {
    return unlock_called(object);
  }
  return release_simply(object);
}

int mutex_lock_until(pthread_mutex_t* object, const Timeout& timeout, const void* site) {
  if (!supported_clock(timeout.clock)) return EINVAL;
  MutexView mutex(object);
  return mutex_is_glibcs(mutex) ? lock_glibcs(mutex, &timeout)
                                : lock_ours(mutex, &timeout, 1, site);
}

int mutex_release_for_wait(pthread_mutex_t* object) {
  MutexView mutex(object);
  if (mutex_is_glibcs(mutex)) return release_glibcs_for_wait(mutex);
  if (mutex.type() == PTHREAD_MUTEX_RECURSIVE_NP && --mutex.count() != 0) return 0;
  release_and_report(mutex, 0);
  return 0;
}

int mutex_reacquire_after_wait(pthread_mutex_t* object, const void* site) {
  MutexView mutex(object);
  if (mutex_is_glibcs(mutex)) return reacquire_glibcs_after_wait(mutex);
  return lock_ours(mutex, nullptr, 0, site);
}

}  // namespace relock

// ---- the symbols ----

using relock::g_runtime;
using relock::MutexView;

RELOCK_EXPORT(int, pthread_mutex_lock, (pthread_mutex_t * mutex)) {
  if (relock::likely(relock::take_simply(mutex))) return 0;
  return relock::lock_called(mutex);
}
RELOCK_EXPORT(int, pthread_mutex_trylock, (pthread_mutex_t * mutex)) {
  return relock::mutex_trylock(mutex);
}
RELOCK_EXPORT(int, pthread_mutex_unlock, (pthread_mutex_t * mutex)) {
  return relock::mutex_unlock(mutex);
}
RELOCK_EXPORT(int, pthread_mutex_timedlock, (pthread_mutex_t * mutex, const timespec* when)) {
  return relock::mutex_lock_until(mutex, {CLOCK_REALTIME, when}, __builtin_return_address(0));
}
RELOCK_EXPORT(int, pthread_mutex_clocklock,
              (pthread_mutex_t * mutex, clockid_t clock, const timespec* when)) {
  return relock::mutex_lock_until(mutex, {clock, when}, __builtin_return_address(0));
}

RELOCK_EXPORT(int, pthread_mutex_init,
              (pthread_mutex_t * mutex, const pthread_mutexattr_t* attributes)) {
  const int error = relock::real().pthread_mutex_init(mutex, attributes);
  if (relock::unlikely(g_runtime.mutexes_ruled) && error == 0) {
    relock::rule_initialised_mutex(MutexView(mutex), __builtin_return_address(0));
  }
  if (relock::unlikely(g_runtime.recording) && error == 0) {
    relock::report_init(mutex, RELOCK_KIND_MUTEX, __builtin_return_address(0));
  }
  return error;
}
RELOCK_EXPORT(int, pthread_mutex_destroy, (pthread_mutex_t * mutex)) {
  if (relock::likely(!g_runtime.recording)) return relock::real().pthread_mutex_destroy(mutex);
  const MutexView view(mutex);
  const std::uint32_t acquisitions = view.recorded_acquisitions();
  const int error = relock::real().pthread_mutex_destroy(mutex);
  if (error == 0) relock::report_destroy(mutex, RELOCK_KIND_MUTEX, acquisitions);
  return error;
}
RELOCK_EXPORT(int, pthread_mutex_consistent, (pthread_mutex_t * mutex)) {
  return relock::real().pthread_mutex_consistent(mutex);
}
RELOCK_EXPORT(int, pthread_mutex_getprioceiling, (const pthread_mutex_t* mutex, int* ceiling)) {
  return relock::real().pthread_mutex_getprioceiling(mutex, ceiling);
}
RELOCK_EXPORT(int, pthread_mutex_setprioceiling, (pthread_mutex_t * mutex, int ceiling, int* old)) {
  return relock::real().pthread_mutex_setprioceiling(mutex, ceiling, old);
}

RELOCK_EXPORT_ALIAS(pthread_mutex_consistent_np, pthread_mutex_consistent);
RELOCK_EXPORT_ALIAS(__pthread_mutex_init, pthread_mutex_init);
RELOCK_EXPORT_ALIAS(__pthread_mutex_destroy, pthread_mutex_destroy);
RELOCK_EXPORT_ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
RELOCK_EXPORT_ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
RELOCK_EXPORT_ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);
