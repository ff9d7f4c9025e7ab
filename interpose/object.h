// The C library's objects as this library sees them: which bytes keep glibc's meaning, which are
// ours, and who serves an object.
//
// pthread_mutex_t (40 bytes on x86-64, 48 on aarch64):
//   0  __lock    the lock word (locks/word.h)
//   4  __count   recursion depth                      glibc's meaning
//   8  __owner   tid of the owner                     glibc's meaning
//  12  __nusers  who counts on the object             glibc's meaning
//  16  __kind    type and protocol bits               glibc's meaning; bits 10-18, which it does
//     not look at, say who serves the object where rules do (rules.h)
//  20  ours      gate: sequence number that passive waiters sleep on
//  24  ours      epoch: of the last contention; bit 31 under repair, bit 30 last release an offer
//  28  ours      tuning: bits 0-15 learned spin allowance
//  32  ours      record: acquisitions and the owner's node, while profiling (recording.h)
//  36  ours      mark: ticket of a recorded waiter; who releases the lock reports itself
// With RELOCK_LOCK=glibc only 32 and 36 are used, and never on a robust mutex, whose list link is
// there.
//
// pthread_cond_t (48 bytes):
//   0 lock  4 epoch of the list  8 head  16 tail  24 unconfirmed   ours
//  36 __wrefs: bit 0 process-shared, bit 1 CLOCK_MONOTONIC   glibc's meaning, and the only word
//     that tells whose the object is
//
// pthread_rwlock_t (56 bytes), where it is not glibc's:
//   0 state, 8 bytes (locks/rwsem.h): the readers where glibc has them
//   8 queue gate  12 queue epoch  16 tuning  20 readers' gate  32 head's gate  36 queue word
//  52 queue owner   ours
//  24 __cur_writer  tid of the writer        glibc's meaning
//  28 __shared      process-shared           glibc's meaning
//  48 __flags       preference               glibc's meaning
//  40 mark, 44 record (reads, writes, node), while profiling: ours, with glibc's lock as well
#pragma once

#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "locks/condvar.h"
#include "locks/linux_platform.h"
#include "locks/rw_preference.h"

namespace relock {

class MutexView {
 public:
  using Atomic32 = LinuxAtomic32;

  explicit MutexView(pthread_mutex_t* mutex) : bytes_(reinterpret_cast<char*>(mutex)) {}

  Atomic32& word() const { return cell(0); }
  Atomic32& owner() const { return cell(8); }
  Atomic32& gate() const { return cell(kGate); }
  Atomic32& epoch() const { return cell(kEpoch); }
  Atomic32& tuning() const { return cell(kTuning); }
  Atomic32& record() const { return cell(kRecord); }
  Atomic32& mark() const { return cell(kMark); }
  Atomic32& kind_cell() const { return cell(16); }

  // Plain: only the owner writes these while others may wait.
  std::uint32_t& count() const { return *reinterpret_cast<std::uint32_t*>(bytes_ + 4); }
  std::uint32_t& users() const { return *reinterpret_cast<std::uint32_t*>(bytes_ + 12); }
  int kind() const { return *reinterpret_cast<const int*>(bytes_ + 16); }

  // Normal, as static initialisers and most programs have it; elision and rule bits do not matter.
  bool is_normal() const { return (kind() & ~kIgnoredBits) == PTHREAD_MUTEX_TIMED_NP; }
  // Robust, priority-inherit, priority-protect, process-shared, glibc's by rule, destroyed (-1) or
  // nonsense: glibc knows what to do with it.
  bool is_glibcs() const { return (kind() & ~(kIgnoredBits | kTypeMask)) != 0; }
  bool is_robust() const { return (kind() & kRobustBit) != 0; }
  // A robust mutex has its list link where mark and counter are; a process-shared one is touched by
  // processes that know nothing of them.
  bool keeps_records() const { return (kind() & (kRobustBit | kSharedBit)) == 0; }
  std::uint32_t recorded_acquisitions() const {
    return keeps_records() ? record().load(MemoryOrder::kRelaxed) >> 8 : 0;
  }
  int type() const { return kind() & kTypeMask; }

  const void* address() const { return bytes_; }
  pthread_mutex_t* object() const { return reinterpret_cast<pthread_mutex_t*>(bytes_); }

  static constexpr int kTypeMask = 3;
  static constexpr int kRobustBit = 16;
  static constexpr int kSharedBit = 128;
  static constexpr int kElisionBits = 0x300;
  static constexpr int kRuleShift = 10;
  static constexpr std::uint32_t kRuleMask = 0x7fu << kRuleShift;
  static constexpr std::uint32_t kRuleOpen = 1u << 17;
  static constexpr std::uint32_t kRuleBits = kRuleMask | kRuleOpen;
  static constexpr std::uint32_t kGlibcByRule = 1u << 18;  // from bit 19 on: priority ceiling
  static constexpr int kIgnoredBits = kElisionBits | static_cast<int>(kRuleBits);

 private:
  static constexpr std::size_t kGate = 20;
  static constexpr std::size_t kEpoch = 24;
  static constexpr std::size_t kTuning = 28;
  static constexpr std::size_t kRecord = 32;
  static constexpr std::size_t kMark = 36;

  static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0);
  static_assert(offsetof(pthread_mutex_t, __data.__count) == 4);
  static_assert(offsetof(pthread_mutex_t, __data.__owner) == 8);
  static_assert(offsetof(pthread_mutex_t, __data.__nusers) == 12);
  static_assert(offsetof(pthread_mutex_t, __data.__kind) == 16);
  static_assert(sizeof(pthread_mutex_t) >= kMark + 4);

  Atomic32& cell(std::size_t offset) const { return *reinterpret_cast<Atomic32*>(bytes_ + offset); }

  char* bytes_;
};

struct SemaphoreParker;
using CondWaiter = CondNode<LinuxPlatform, SemaphoreParker>;

class CondView {
 public:
  explicit CondView(pthread_cond_t* cond) : bytes_(reinterpret_cast<char*>(cond)) {}

  LinuxAtomic32& lock() const { return *reinterpret_cast<LinuxAtomic32*>(bytes_); }
  LinuxAtomic32& list_epoch() const { return *reinterpret_cast<LinuxAtomic32*>(bytes_ + 4); }
  LinuxAtomic32& unconfirmed() const { return *reinterpret_cast<LinuxAtomic32*>(bytes_ + 24); }
  LinuxAtomicPtr<CondWaiter>& head() const {
    return *reinterpret_cast<LinuxAtomicPtr<CondWaiter>*>(bytes_ + 8);
  }
  LinuxAtomicPtr<CondWaiter>& tail() const {
    return *reinterpret_cast<LinuxAtomicPtr<CondWaiter>*>(bytes_ + 16);
  }

  bool is_shared() const { return (flags() & 1u) != 0; }
  clockid_t clock() const { return (flags() & 2u) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME; }
  const void* address() const { return bytes_; }

 private:
  static_assert(offsetof(pthread_cond_t, __data.__wrefs) == 36);
  unsigned flags() const { return *reinterpret_cast<const unsigned*>(bytes_ + 36); }

  char* bytes_;
};
static_assert(sizeof(pthread_cond_t) == 48);

// The small mutex by which waiting writers elect one of them, inside a readers-writer lock.
class RwlockQueueView {
 public:
  explicit RwlockQueueView(char* bytes) : bytes_(bytes) {}
  LinuxAtomic32& word() const { return cell(36); }
  LinuxAtomic32& gate() const { return cell(8); }
  LinuxAtomic32& epoch() const { return cell(12); }
  LinuxAtomic32& tuning() const { return cell(16); }
  LinuxAtomic32& owner() const { return cell(52); }

 private:
  LinuxAtomic32& cell(std::size_t offset) const {
    return *reinterpret_cast<LinuxAtomic32*>(bytes_ + offset);
  }
  char* bytes_;
};

class RwlockView {
 public:
  explicit RwlockView(pthread_rwlock_t* rwlock) : bytes_(reinterpret_cast<char*>(rwlock)) {}

  LinuxAtomic64& state() const { return *reinterpret_cast<LinuxAtomic64*>(bytes_); }
  RwlockQueueView queue() const { return RwlockQueueView(bytes_); }
  LinuxAtomic32& tuning() const { return cell(16); }  // the queue has bits 0-15 of it
  LinuxAtomic32& readers_gate() const { return cell(20); }
  LinuxAtomic32& writer() const { return cell(24); }
  LinuxAtomic32& head_gate() const { return cell(32); }
  LinuxAtomic32& mark() const { return cell(40); }
  // Bits 19-31 reads, 7-18 writes, each modulo its range; bits 0-6 node of the latest owner plus 1.
  LinuxAtomic32& record() const { return cell(44); }

  bool is_shared() const { return data().__shared != 0; }
  std::uint32_t recorded_reads() const { return recorded() / kOneRead; }
  std::uint32_t recorded_writes() const {
    return recorded() / kOneWrite & ((1u << kWriteBits) - 1);
  }
  RwPreference preference() const {
    switch (data().__flags) {
      case PTHREAD_RWLOCK_PREFER_READER_NP:
        return RwPreference::kReaders;
      case PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP:
        return RwPreference::kWritersAlone;
      default:
        return RwPreference::kWriters;  // glibc asks for the two others only
    }
  }
  pthread_rwlock_t* object() const { return reinterpret_cast<pthread_rwlock_t*>(bytes_); }

  static constexpr unsigned kReadBits = 13;
  static constexpr unsigned kWriteBits = 12;
  static constexpr std::uint32_t kOneWrite = 1u << 7;
  static constexpr std::uint32_t kOneRead = kOneWrite << kWriteBits;
  static constexpr std::uint32_t kNodeBits = kOneWrite - 1;

 private:
  std::uint32_t recorded() const { return is_shared() ? 0 : record().load(MemoryOrder::kRelaxed); }
  static_assert(offsetof(pthread_rwlock_t, __data.__readers) == 0);
  static_assert(offsetof(pthread_rwlock_t, __data.__cur_writer) == 24);
  static_assert(offsetof(pthread_rwlock_t, __data.__shared) == 28);
  static_assert(offsetof(pthread_rwlock_t, __data.__flags) == 48);
  static_assert(sizeof(pthread_rwlock_t) == 56);

  const decltype(pthread_rwlock_t::__data)& data() const { return object()->__data; }
  LinuxAtomic32& cell(std::size_t offset) const {
    return *reinterpret_cast<LinuxAtomic32*>(bytes_ + offset);
  }
  char* bytes_;
};

}  // namespace relock
