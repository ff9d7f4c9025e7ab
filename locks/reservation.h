// How a waiter that has been let in, but takes no ticket or node, gets the lock: it asks for the
// next release, which then offers the lock to it and to nobody else.
//
// Two kinds of waiters do so. A timed waiter, or one for whom no ticket or node was left, sleeps
// meanwhile (reserve). One that has let itself in where order is not kept asks awake and goes back
// to the gate if no release comes (ask_awake).
//
// Transitions: see gate.h (R, O). Memory order: G1 and G3 of gate.h; R is asked for as a sleeper is
// counted, on a word that shows an owner or one about to be, and giving it up (relaxed) publishes
// nothing.
#pragma once

#include "wait.h"
#include "word.h"

namespace relock {

template <class P, class Algorithm>
struct Reservation {
  using Layout = MutexLayout;
  using Word = typename P::Atomic32;

  // Where newcomers may take a lock that others compete for, one that has let itself in would be no
  // better off than before. So it asks for the next release, while it pauses; if none comes, it
  // goes back to the gate. It never sleeps meanwhile: the lock must not be offered to a thread that
  // some handler has taken out of its sleep for good.
  static Joined ask_awake(Word& word, WaitContext<P>& context) {
    Spinner<P> spinner(context, context.budget->promoted_pauses);
    bool asked = false;
    std::uint32_t w = word.load(MemoryOrder::kAcquire);  // G3
    for (;;) {
      std::uint32_t next = 0;
      if (asked && (w & Layout::kOffered) != 0) {
        next = (w & ~Layout::kOffered) | Layout::kLocked;
        if (word.compare_exchange(w, next, MemoryOrder::kAcquire)) return Joined::kAcquired;  // G3
      } else if (!asked && Algorithm::can_take(w)) {
        next = Algorithm::taken(w);
        if (word.compare_exchange(w, next, MemoryOrder::kAcquire)) return Joined::kAcquired;  // P1
      } else if (!asked && (w & (Layout::kReserved | Layout::kOffered)) == 0) {
        asked = word.compare_exchange(w, w | Layout::kReserved, MemoryOrder::kAcqRel);  // G1
        if (asked) w |= Layout::kReserved;
      } else if (spinner.spin(word, w)) {
        w = word.load(MemoryOrder::kAcquire);  // G3
      } else if ((w & Layout::kLocked) == 0 || (w & Layout::kPassiveMask) == Layout::kPassiveMask) {
        spinner.nap(word, w);                  // offered to somebody else, or no room at the gate
        w = word.load(MemoryOrder::kAcquire);  // G3
      } else {
        next = (asked ? w & ~Layout::kReserved : w) + Layout::kPassiveOne;
        if (!word.compare_exchange(w, next, MemoryOrder::kAcqRel)) continue;  // G1
        if (asked) ++context.asked_in_vain;
        return Joined::kAtTheGate;
      }
    }
  }

  // Asks for the lock, takes what it is offered, or gives up at its deadline.
  static Acquire reserve(Word& word, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    bool reserved = false;
    std::uint32_t w = word.load(MemoryOrder::kAcquire);  // G3
    for (;;) {
      if (reserved && (w & Layout::kOffered) != 0) {
        const std::uint32_t mine = (w & ~Layout::kOffered) | Layout::kLocked;
        if (word.compare_exchange(w, mine, MemoryOrder::kAcquire)) return Acquire::kAcquired;  // G3
      } else if (!reserved && Algorithm::can_take(w)) {
        if (word.compare_exchange(w, Algorithm::taken(w), MemoryOrder::kAcquire)) {  // P1
          return Acquire::kAcquired;
        }
      } else if (context.deadline != nullptr && P::expired(*context.deadline)) {
        if (!reserved || word.compare_exchange(w, w & ~Layout::kReserved, MemoryOrder::kRelaxed)) {
          return Acquire::kTimedOut;  // seen in the same step: somebody owns it or is about to
        }
      } else if (!reserved && (w & (Layout::kReserved | Layout::kOffered)) == 0) {
        if (context.deadline != nullptr) context.going_to_sleep();
        reserved = word.compare_exchange(w, w | Layout::kReserved, MemoryOrder::kAcqRel);  // G1
        if (reserved) w |= Layout::kReserved;
      } else {
        wait_for_offer(word, w, reserved, context, spinner);
        w = word.load(MemoryOrder::kAcquire);  // G3
      }
    }
  }

 private:
  static void wait_for_offer(Word& word, std::uint32_t w, bool reserved, WaitContext<P>& context,
                             Spinner<P>& spinner) {
    if (spinner.spin(word, w)) return;
    if (reserved) {
      context.going_to_sleep();
      (void)P::futex_wait(word, w, wake_bit::kReserved, context.deadline);
    } else {
      spinner.nap(word, w);  // R is somebody else's; it will be free soon
    }
  }
};

}  // namespace relock
