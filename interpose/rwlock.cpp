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

RecordedObject recorded(RwlockView rwlock, RelockObjectKind kind) {
  return {rwlock.object(), kind, rwlock.is_shared() ? nullptr : &rwlock.mark(), nullptr};
}

// By the new owner; a process-shared lock gets no records. Readers count side by side, a writer is
// alone. Returns the record as it was before and, in *count, the acquisitions of this side.
template <const Side& kSide>
std::uint32_t count_acquisition(RwlockView rwlock, std::uint32_t* count) {
  constexpr bool kReads = kSide.kind == RELOCK_KIND_RWLOCK_READ;
  constexpr std::uint32_t kWrites = (1u << RwlockView::kWriteBits) - 1;
  const bool nodes = g_runtime.topology.nodes > 1;
  if (kReads && likely(!nodes)) {  // what overflows falls off the word's end
    const std::uint32_t before =
        rwlock.record().fetch_add(RwlockView::kOneRead, MemoryOrder::kRelaxed);
    *count = (before / RwlockView::kOneRead + 1) & ((1u << RwlockView::kReadBits) - 1);
    return before;
  }
  const std::uint32_t node = nodes ? own_node() & RwlockView::kNodeBits : 0;
  std::uint32_t seen = rwlock.record().load(MemoryOrder::kRelaxed);  // a count orders nothing
  std::uint32_t next;
  do {
    const std::uint32_t reads = seen / RwlockView::kOneRead + (kReads ? 1 : 0);
    const std::uint32_t writes = (seen / RwlockView::kOneWrite + (kReads ? 0 : 1)) & kWrites;
    next = reads * RwlockView::kOneRead | writes * RwlockView::kOneWrite |
           (nodes ? node : seen & RwlockView::kNodeBits);
    *count = kReads ? reads & ((1u << RwlockView::kReadBits) - 1) : writes;
  } while (!rwlock.record().compare_exchange(seen, next, MemoryOrder::kRelaxed));
  return seen;
}

template <const Side& kSide>
void note_acquisition_of(RwlockView rwlock, std::uint32_t count) {
  constexpr unsigned kBits =
      kSide.kind == RELOCK_KIND_RWLOCK_READ ? RwlockView::kReadBits : RwlockView::kWriteBits;
  if (unlikely(is_due(count, kBits))) report_count(rwlock.object(), kSide.kind, count);
  if (likely((rwlock.mark().load(MemoryOrder::kRelaxed) & kKnown) == 0)) return;  // a hint
  draw_hold(rwlock.object(), kSide.kind, count, 0);
}

// Tries first (once the arguments are known to be right), so that only a real wait is timed.
template <const Side& kSide>
int lock_recorded(RwlockView rwlock, const Timeout* timeout) {
  if (timeout != nullptr &&
      (!supported_clock(timeout->clock) || !valid_nanoseconds(*timeout->when))) {
    return EINVAL;
  }
  std::uint32_t count = 0;
  int error = try_lock<kSide>(rwlock);
  if (error != 0) {
    RecordedWait wait(recorded(rwlock, kSide.kind), is_glibcs(rwlock));
    error = lock<kSide>(rwlock, timeout, &wait);
    if (error != 0) {
      wait.end(error == ETIMEDOUT ? RELOCK_WAIT_TIMED_OUT : RELOCK_WAIT_CANCELLED);
      return error;
    }
    if (rwlock.is_shared()) return wait.end(RELOCK_WAIT_ACQUIRED), 0;
    const std::uint32_t before = count_acquisition<kSide>(rwlock, &count);
    wait.end(RELOCK_WAIT_ACQUIRED, count, hand_off_from(before & RwlockView::kNodeBits));
  } else if (!rwlock.is_shared()) {
    count_acquisition<kSide>(rwlock, &count);
  }
  if (!rwlock.is_shared()) note_acquisition_of<kSide>(rwlock, count);
  return 0;
}

__attribute__((noinline)) int unlock_recorded(pthread_rwlock_t* object) {
  const RwlockView rwlock(object);
  if (rwlock.is_shared() || !release_is_reported(rwlock.mark())) return unlock_any(rwlock);
  const ReportedRelease told(object, &rwlock.mark(), nullptr);
  const int error = unlock_any(rwlock);
  told.report();
  return error;
}

template <const Side& kSide>
int try_any(pthread_rwlock_t* object) {
  RwlockView rwlock(object);
  const int error = try_lock<kSide>(rwlock);
  if (likely(!g_runtime.recording)) return error;
  if (error == EBUSY) report_try_failed(object, kSide.kind);
  if (error == 0 && !rwlock.is_shared()) {
    std::uint32_t count = 0;
    count_acquisition<kSide>(rwlock, &count);
    note_acquisition_of<kSide>(rwlock, count);
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
  if (relock::unlikely(g_runtime.recording)) return relock::unlock_recorded(rwlock);
  return relock::unlock_any(relock::RwlockView(rwlock));
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
    const relock::RwlockView view(rwlock);
    relock::report_destroy(rwlock, RELOCK_KIND_RWLOCK_READ, view.recorded_reads());
    relock::report_destroy(rwlock, RELOCK_KIND_RWLOCK_WRITE, view.recorded_writes());
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
