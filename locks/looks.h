// How a newcomer looks at a lock that is held, before anybody knows of it.
//
// The idea: while sections are short a held lock is free again soon. A newcomer that neither queues
// nor marks the word leaves the lock's cache line with its owner, who then releases by the fast
// path and may take the lock many times in a row. So it looks a few times, after longer and longer
// pauses, and only then joins the waiters.
//
// A thread that loses a lock and wants it back at once would by this win it back at its first look,
// and two such threads hand the line to each other for each operation, which costs several times
// the operation. A thread that has met this a few times in a row therefore makes its first look
// later, for the next kSlowLooks acquisitions, and then tries whether it is still so.
//
// The thread's memory of one lock is a hint: a signal handler may overwrite it at any point.
#pragma once

#include <cstdint>

#include "look_memory.h"
#include "wait.h"

namespace relock {

template <class P>
class Looks {
 public:
  Looks(const void* lock, const WaitContext<P>& context) : lock_(lock), budget_(*context.budget) {
    if (budget_.mode != WaitMode::kAdaptive || budget_.look_pauses == 0) return;
    left_ = budget_.look_pauses;
    memory_ = P::look_memory();
    if (memory_ != nullptr && remembers_haste()) first_ = budget_.look_step;
  }

  // Pauses before the next look. False: it has looked for long enough.
  bool again() {
    if (left_ == 0) return false;
    const std::uint32_t wanted = first_ != 0 ? first_ : next_;
    if (first_ == 0) next_ = 2 * next_ < budget_.look_step ? 2 * next_ : budget_.look_step;
    first_ = 0;
    const std::uint32_t pauses = wanted < left_ ? wanted : left_;
    left_ -= pauses;
    for (std::uint32_t i = 0; i < pauses; ++i) P::pause();
    return true;
  }

  void acquired() const {
    if (memory_ == nullptr) return;
    memory_->lock = lock_;
    memory_->acquired_at = P::ticks();
  }

 private:
  // A thread that comes back sooner than this after it has won the lock cannot have done much else.
  static constexpr std::uint64_t kHasteTicks = 800;
  static constexpr std::uint8_t kEnoughInARow = 6;
  static constexpr std::uint8_t kSlowLooks = 32;

  bool remembers_haste() const {
    if (memory_->lock != lock_) {
      memory_->in_a_row = 0;
      memory_->slow_left = 0;
      return false;
    }
    if (memory_->slow_left > 0) {
      --memory_->slow_left;
      return true;
    }
    if (P::ticks() - memory_->acquired_at < kHasteTicks) {
      memory_->in_a_row += 2;
    } else if (memory_->in_a_row > 0) {
      --memory_->in_a_row;
    }
    if (memory_->in_a_row < kEnoughInARow) return false;
    memory_->in_a_row = kEnoughInARow - 2;
    memory_->slow_left = kSlowLooks - 1;
    return true;
  }

  const void* const lock_;
  const Budget& budget_;
  LookMemory* memory_ = nullptr;
  std::uint32_t left_ = 0;
  std::uint32_t first_ = 0;  // a late first look; 0: none
  std::uint32_t next_ = 1;
};

}  // namespace relock
