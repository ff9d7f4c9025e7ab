// How many pauses a waiter of one lock may spend before it sleeps: learned from what they were
// worth.
//
// Sixteen bits of a cell of the object hold the allowance plus one; 0 means that nothing has been
// learned yet. The cell is a hint: a lost update costs nothing, so all accesses are relaxed.
#pragma once

#include <cstdint>

#include "wait.h"

namespace relock {

// `kShift`: 0 or 16, where in the cell.
template <class P, int kShift>
struct SpinAllowance {
  using Cell = typename P::Atomic32;

  static std::uint32_t of(const Cell& cell, const Budget& budget) {
    if (budget.mode == WaitMode::kPark) return 0;
    const std::uint32_t learned = (cell.load(MemoryOrder::kRelaxed) >> kShift) & kMask;
    return learned == 0 ? budget.spin_pauses : learned - 1;
  }

  // Spinning that ended in sleep was wasted: halve. Spinning that succeeded may grow back. When it
  // has come down to nothing, one acquisition in 64 tries again.
  static void learn(Cell& cell, const WaitContext<P>& context) {
    if (context.budget->mode != WaitMode::kAdaptive) return;
    const std::uint32_t most = context.budget->spin_pauses;
    std::uint32_t next = context.spin_pauses;
    if (context.spinning_failed) {
      next /= 2;
    } else if (context.pauses > 0) {
      next += next / 4 + 1;
    } else {
      return;  // no admitted wait: nothing to learn
    }
    if (next == 0 && P::choose(64) == 0) next = most;
    if (next > most) next = most;
    if (next > kMask - 1) next = kMask - 1;
    std::uint32_t seen = cell.load(MemoryOrder::kRelaxed);
    const std::uint32_t updated = (seen & ~(kMask << kShift)) | ((next + 1) << kShift);
    if (updated != seen) (void)cell.compare_exchange(seen, updated, MemoryOrder::kRelaxed);
  }

 private:
  static constexpr std::uint32_t kMask = 0xffff;
};

}  // namespace relock
