// pthread_spin_*. An object whose word does not carry our marker was initialised by somebody else
// (by hand, before we were there, or process-shared): it is glibc's, and stays so.
#include <cerrno>

#include <pthread.h>

#include "interpose/export.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/rules.h"
#include "interpose/runtime.h"

namespace relock {
namespace {

using Layout = SpinLayout;

constexpr std::uint32_t kFree = Layout::kFree;
constexpr std::uint32_t kLocked = Layout::kFree | Layout::kLocked;

inline LinuxAtomic32& word_of(pthread_spinlock_t* lock) {
  return *reinterpret_cast<LinuxAtomic32*>(const_cast<int*>(lock));
}

// P1: acquire here, release in unlock.
inline bool take_free(LinuxAtomic32& word) {
  std::uint32_t expected = kFree;
  return word.compare_exchange(expected, kLocked, MemoryOrder::kAcquire);
}

inline SpinService service_of(const LinuxAtomic32& word) {
  if (likely(!g_runtime.spins_ruled)) return {&spin_backend(), &g_runtime.budget};
  return ruled_spin(&word);
}

RecordedObject recorded(const void* address, TableRecord* spin) {
  return {address, RELOCK_KIND_SPIN, spin == nullptr ? nullptr : &spin->mark,
          spin == nullptr ? nullptr : &spin->record};
}

int lock_recorded(pthread_spinlock_t* lock, bool ours) {
  const auto address = const_cast<const int*>(lock);
  const RecordedObject object = recorded(address, table_record(address));
  const bool free = ours ? take_free(word_of(lock)) : real().pthread_spin_trylock(lock) == 0;
  if (!free) {
    RecordedWait wait(object, false);
    if (ours) {
      const SpinService service = service_of(word_of(lock));
      WaitContext<LinuxPlatform> context{service.budget};
      context.observer = &wait;
      service.backend->lock_slow(word_of(lock), context);
    } else {
      (void)real().pthread_spin_lock(lock);
    }
    wait.end(RELOCK_WAIT_ACQUIRED);
  }
  if (object.record != nullptr) note_acquisition(object);
  return 0;
}

__attribute__((noinline)) int lock_any(pthread_spinlock_t* lock) {
  LinuxAtomic32& word = word_of(lock);
  const bool ours = Layout::is_ours(word.load(MemoryOrder::kRelaxed));
  if (unlikely(g_runtime.recording)) return lock_recorded(lock, ours);
  if (!ours) return real().pthread_spin_lock(lock);
  const SpinService service = service_of(word);
  WaitContext<LinuxPlatform> context{service.budget};
  service.backend->lock_slow(word, context);
  return 0;
}

__attribute__((noinline)) int trylock_any(pthread_spinlock_t* lock) {
  LinuxAtomic32& word = word_of(lock);
  const bool ours = Layout::is_ours(word.load(MemoryOrder::kRelaxed));
  const bool taken =
      ours ? service_of(word).backend->try_lock(word) : real().pthread_spin_trylock(lock) == 0;
  if (unlikely(g_runtime.recording)) {
    const auto address = const_cast<const int*>(lock);
    TableRecord* const spin = table_record(address);
    if (!taken) {
      report_try_failed(address, RELOCK_KIND_SPIN);
    } else if (spin != nullptr) {
      note_acquisition(recorded(address, spin));
    }
  }
  return taken ? 0 : EBUSY;
}

int unlock_word(pthread_spinlock_t* lock) {
  LinuxAtomic32& word = word_of(lock);
  if (!Layout::is_ours(word.load(MemoryOrder::kRelaxed))) return real().pthread_spin_unlock(lock);
  service_of(word).backend->unlock(word);
  return 0;
}

__attribute__((noinline)) int unlock_any(pthread_spinlock_t* lock) {
  if (likely(!g_runtime.recording)) return unlock_word(lock);
  const auto address = const_cast<const int*>(lock);
  TableRecord* const spin = table_record(address);
  if (spin == nullptr || likely(!release_is_reported(spin->mark))) return unlock_word(lock);
  const ReportedRelease told(address, &spin->mark, &spin->record);
  const int error = unlock_word(lock);
  told.report();
  return error;
}

}  // namespace
}  // namespace relock

using relock::g_runtime;

RELOCK_EXPORT(int, pthread_spin_lock, (pthread_spinlock_t * lock)) {
  if (relock::likely(!g_runtime.recording) &&
      relock::likely(relock::take_free(relock::word_of(lock)))) {
    return 0;
  }
  return relock::lock_any(lock);
}

RELOCK_EXPORT(int, pthread_spin_trylock, (pthread_spinlock_t * lock)) {
  if (relock::likely(!g_runtime.recording) &&
      relock::likely(relock::take_free(relock::word_of(lock)))) {
    return 0;
  }
  return relock::trylock_any(lock);
}

// Where the algorithm allows it (all but those with a ticket in the low byte) the release is a
// plain store: it clears the locked bit and leaves waiters and marker alone. Elsewhere it is one
// compare-exchange while nobody waits.
RELOCK_EXPORT(int, pthread_spin_unlock, (pthread_spinlock_t * lock)) {
  relock::LinuxAtomic32& word = relock::word_of(lock);
  if (relock::unlikely(g_runtime.recording)) return relock::unlock_any(lock);
  std::uint32_t seen = word.load(relock::MemoryOrder::kRelaxed);
  if (relock::likely(g_runtime.spin_plain_release) &&
      relock::likely(relock::SpinLayout::is_ours(seen))) {
    word.store_low_byte(0, relock::MemoryOrder::kRelease);  // P1
    return 0;
  }
  if (seen == relock::kLocked &&
      word.compare_exchange(seen, relock::kFree, relock::MemoryOrder::kRelease)) {  // P1
    return 0;
  }
  return relock::unlock_any(lock);
}

RELOCK_EXPORT(int, pthread_spin_init, (pthread_spinlock_t * lock, int shared)) {
  if (relock::unlikely(g_runtime.recording)) {
    const auto address = const_cast<const int*>(lock);
    (void)relock::forget_table_record(address);
    relock::report_init(address, RELOCK_KIND_SPIN, __builtin_return_address(0));
  }
  const bool glibcs = relock::likely(!g_runtime.spins_ruled)
                          ? g_runtime.spin_is_glibcs
                          : relock::rule_makes_spin_glibcs(const_cast<const int*>(lock));
  if (shared == PTHREAD_PROCESS_SHARED || glibcs) {
    return relock::real().pthread_spin_init(lock, shared);
  }
  relock::word_of(lock).store(relock::kFree, relock::MemoryOrder::kRelaxed);
  return 0;
}

RELOCK_EXPORT(int, pthread_spin_destroy, (pthread_spinlock_t * lock)) {
  if (relock::unlikely(g_runtime.recording)) {
    const auto address = const_cast<const int*>(lock);
    relock::report_destroy(address, RELOCK_KIND_SPIN,
                           relock::acquisitions_in(relock::forget_table_record(address)));
  }
  return relock::real().pthread_spin_destroy(lock);
}
