// How long a waiter of a queue pauses before it looks at the lock again, learned per lock and
// thread.
//
// The idea: a waiter with n tickets ahead of it gains nothing from a look before n hand-overs have
// happened, and each look moves the lock's cache line away from those who need it. So it pauses
// n times a delay, which tunes itself: a look that comes too early lengthens it a little, a look
// that finds our turn already there (we may have overslept) shortens it. In a virtual machine the
// delay stays small, since there the host takes the CPU away from a guest that pauses (Pause Loop
// Exiting, Pause Filter), and two backoffs on top of each other give wild delays.
//
// An entry of the table: bits 0-21 the delay in pauses, 8 of them fraction; bits 22-31 a tag of the
// lock's address. An entry whose tag is another lock's starts again. Only its own thread and signal
// handlers on it touch a table: an update that a handler's lock loses costs nothing.
//
// Source: van Riel, x86 spinlocks: proportional backoff with auto tuning, v3, and the follow-up
// for virtual machines (2013). The figures (1/7, 1/32, 16000, 16) are theirs.
#pragma once

#include <cstdint>

#include "budget.h"

namespace relock {

// A delay per ticket ahead. All quantities in units of one pause.
class BackoffDelay {
 public:
  static constexpr int kFractionBits = 8;
  static constexpr std::uint32_t kUnit = 1u << kFractionBits;

  // `fixed` as fixed() gave it, 0 for a new one. `most_units` from 1 to Budget::kMostBackoffUnits.
  constexpr BackoffDelay(std::uint32_t fixed, std::uint32_t most_units)
      : most_(most_units << kFractionBits), fixed_(clamp(fixed)) {}

  constexpr std::uint32_t fixed() const { return fixed_; }
  constexpr std::uint32_t pauses(std::uint32_t tickets_ahead) const {
    const std::uint64_t all = std::uint64_t{fixed_} * tickets_ahead >> kFractionBits;
    return all < kMostPauses ? static_cast<std::uint32_t>(all) : kMostPauses;
  }

  // The look found that others are still ahead.
  constexpr void came_early() { fixed_ = clamp(fixed_ + kUnit / 7); }
  // The look found that it was our turn already.
  constexpr void came_late() {
    if (fixed_ < 2 * kUnit) return;
    const std::uint32_t step = fixed_ / 32 > kUnit ? fixed_ / 32 : kUnit;
    fixed_ = clamp(fixed_ - step);
  }

 private:
  static constexpr std::uint32_t kMostPauses = 1u << 20;

  constexpr std::uint32_t clamp(std::uint32_t fixed) const {
    return fixed < kUnit ? kUnit : fixed > most_ ? most_ : fixed;
  }

  std::uint32_t most_;
  std::uint32_t fixed_;
};

// One thread's delays. All zero is a valid, empty table.
class BackoffTable {
 public:
  static constexpr std::uint32_t kEntries = 64;

  std::uint32_t delay_of(const void* lock) const {  // 0: nothing learned yet
    const std::uint32_t hash = hash_of(lock);
    const std::uint32_t entry = entries_[hash % kEntries];
    return entry >> kDelayBits == tag_of(hash) ? entry & kDelayMask : 0;
  }
  void learn(const void* lock, std::uint32_t fixed) {
    const std::uint32_t hash = hash_of(lock);
    entries_[hash % kEntries] = tag_of(hash) << kDelayBits | (fixed & kDelayMask);
  }

 private:
  static constexpr int kDelayBits = 22;
  static constexpr std::uint32_t kDelayMask = (1u << kDelayBits) - 1;
  static_assert((Budget::kMostBackoffUnits << BackoffDelay::kFractionBits) <= kDelayMask);

  static std::uint32_t hash_of(const void* lock) {
    const auto number = reinterpret_cast<std::uintptr_t>(lock) >> 2;
    return static_cast<std::uint32_t>(number * 0x9e3779b97f4a7c15u >> 32);
  }
  static std::uint32_t tag_of(std::uint32_t hash) { return hash >> kDelayBits; }

  volatile std::uint32_t entries_[kEntries];  // volatile: handlers on this thread come in between
};

}  // namespace relock
