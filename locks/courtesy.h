// How newcomers let a sleeper go first that has waited in vain under long holds.
//
// The idea: where order is not kept, an owner that wants its lock back takes it before the sleeper
// it has just woken gets a CPU. Who sleeps asks for the next release, awake (reservation.h), but
// not for longer than some fifty microseconds, so a lock that is held for longer never hears it.
// Such a sleeper marks the lock. A newcomer that finds a marked lock free, with a sleeper on its
// way, then sleeps for a moment instead of taking it, once, and takes the mark away. The lock is
// promised to nobody: if the sleeper does not come, anybody takes it a moment later.
//
// The mark is a bit of the epoch cell (ghosts.h): it also closes the short paths of a crowded
// mutex. It is a hint, so all accesses to it are relaxed: seen late, a sleeper waits for one hold
// more; seen for nothing, a newcomer loses a moment.
//
// Source: none known; Go's sync.Mutex hands over to a waiter that has starved for a millisecond.
#pragma once

#include <cstdint>

#include "ghosts.h"
#include "wait.h"
#include "word.h"

namespace relock {

template <class P, class Object>
struct Courtesy {
  using Layout = MutexLayout;
  using Ghosts = MutexGhosts<P, Object>;

  static void ask(Object object) {
    object.epoch().fetch_or(Ghosts::kStarving, MemoryOrder::kRelaxed);
  }

  static bool asked(Object object) {
    return (object.epoch().load(MemoryOrder::kRelaxed) & Ghosts::kStarving) != 0;
  }

  static void end(Object object) {
    object.epoch().fetch_and(~Ghosts::kStarving, MemoryOrder::kRelaxed);
  }

  // A newcomer, which nobody knows of yet.
  static void show(Object object, WaitContext<P>& context) {
    const std::uint32_t w = object.word().load(MemoryOrder::kRelaxed);
    if ((w & Layout::kHeld) != 0 || (w & Layout::kAdmitting) == 0) return;
    context.going_to_sleep();
    Deadline until = P::after_ns(context.budget->courtesy_ns);
    if (context.deadline != nullptr && !ends_before<P>(until, *context.deadline)) {
      until = *context.deadline;
    }
    (void)P::futex_wait(object.word(), w, wake_bit::kNap, &until);
    end(object);
  }
};

}  // namespace relock
