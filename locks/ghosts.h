// What is left in a mutex's word by threads that do not exist in this process, and the cell that
// tells.
//
// A forked child has only the thread that forked, but the words it inherits still name waiters of
// the parent. An object carries the fork epoch in which it was last contended; a slow path that
// finds another one repairs the word before it believes it (gate.h, G4).
//
// Memory order: G4 of gate.h. The word itself is repaired with relaxed accesses, between the claim
// and the publication of the cell.
//
// The cell: bit 31 being repaired, bit 30 the last release was an offer, bit 29 a sleeper starves
// (courtesy.h), bits 16-28 admitted waiters (gate.h), bits 0-15 P::epoch() at the last contention,
// modulo 65536.
#pragma once

#include <cstdint>

#include "platform.h"
#include "wait.h"
#include "word.h"

namespace relock {

template <class P, class Object>
class MutexGhosts {
 public:
  using Layout = MutexLayout;

  static constexpr std::uint32_t kRepairing = 1u << 31;
  static constexpr std::uint32_t kOfferedLast = 1u << 30;
  static constexpr std::uint32_t kStarving = 1u << 29;
  static constexpr std::uint32_t kAdmittedOne = 1u << 16;
  static constexpr std::uint32_t kAdmittedMask = kStarving - kAdmittedOne;
  static constexpr std::uint32_t kEpochMask = kAdmittedOne - 1;

  enum Stays { kOwnerStays, kNobodyStays };

  static bool may_be_in(std::uint32_t word) { return (word & kGhosts) != 0; }

  static bool stale(Object object) {
    const std::uint32_t seen = object.epoch().load(MemoryOrder::kAcquire);  // G4
    return (seen & (kRepairing | kEpochMask)) != (P::epoch() & kEpochMask);
  }

  // No ghosts, the last release was no offer, and no sleeper starves.
  static bool settled(Object object) {
    const std::uint32_t cell = object.epoch().load(MemoryOrder::kAcquire);  // G4
    return (cell & ~kAdmittedMask) == (P::epoch() & kEpochMask);
  }

  // In a forked child: the word still names waiters of the parent. None of them exists here. Every
  // slow path comes by first, so none of ours is in the word either; the fast path works on words
  // without waiters only, and that of a crowded mutex looks here first. What the owner field says
  // stands: an owner from before the fork keeps the lock; a lock on its way to a ghost is free.
  static void repair(Object object, Stays stays = kOwnerStays) {
    const std::uint32_t now = P::epoch() & kEpochMask;
    std::uint32_t seen = object.epoch().load(MemoryOrder::kAcquire);  // G4
    for (;;) {
      if ((seen & (kRepairing | kEpochMask)) == now) return;
      if ((seen & (kRepairing | kEpochMask)) ==
          (now | kRepairing)) {  // another thread of this process is at it
        wait_for_repair(object, seen);
        seen = object.epoch().load(MemoryOrder::kAcquire);  // G4
        continue;
      }
      if (object.epoch().compare_exchange(seen, now | kRepairing, MemoryOrder::kAcquire)) {  // G4
        break;
      }
    }
    std::uint32_t w = object.word().load(MemoryOrder::kRelaxed);
    while ((w & kGhosts) != 0 || (stays == kNobodyStays && w != Layout::kFree)) {
      const bool owned = stays == kOwnerStays && (w & Layout::kLocked) != 0 &&
                         object.owner().load(MemoryOrder::kRelaxed) != 0;
      const std::uint32_t mended = owned ? Layout::kLocked : Layout::kFree;
      if (object.word().compare_exchange(w, mended, MemoryOrder::kRelaxed)) break;
    }
    object.epoch().store(now, MemoryOrder::kRelease);  // G4
  }

 private:
  static constexpr std::uint32_t kGhosts = ~(Layout::kFree | Layout::kLocked);

  // A few instructions of another thread, which may have lost its CPU.
  static void wait_for_repair(Object object, std::uint32_t seen) {
    constexpr int kPauses = 1000;
    constexpr std::uint64_t kNapNs = 50'000;
    for (int i = 0; i < kPauses; ++i) {
      P::pause();
      if (object.epoch().load(MemoryOrder::kRelaxed) != seen) return;
    }
    const Deadline until = P::after_ns(kNapNs);
    (void)P::futex_wait(object.epoch(), seen, wake_bit::kNap, &until);
  }
};

}  // namespace relock
