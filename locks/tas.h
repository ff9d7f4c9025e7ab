// tas: test-and-test-and-set.
//
// The idea: look until the lock is free, then try to set the locked bit; pause between looks.
// A waiter near the last owner always wins and a remote one can starve: the baseline of the
// published powerpc qspinlock numbers, and the fastest lock where fairness is not asked for.
//
// Word (word.h has the gate's and the epoch's bits, here dots):
//    31     20 19    6  5  4 3 2 1 0              31                9 8 7         0
//   +---------+-------+--+--+-----+-+            +-------------------+-+-----------+
//   | unused  |. . . .|Q |. |. . O|L|  mutex     |  . . . . . . . .  |0|     L     |  spinlock
//   +---------+-------+--+--+-----+-+            +-------------------+-+-----------+
//   Q somebody spins, so a release wakes nobody; a spinlock's release never does and needs no Q
//
// Transitions (free = neither L nor O):
//   free            -> L              any thread that finds it free; barging is allowed
//   L               -> L|Q            a waiter marks that it spins
//   L|Q             -> L, passive+1   its allowance is used up: back to the gate (mutex)
//   free [Q]        -> L              the spinner takes it and takes its mark away
//   L [Q]           -> free [Q]       release
//
// Memory order:
//   P1  the releasing compare-exchange or store (release) publishes the critical section to the
//       compare-exchange (acquire) that next sets L. All other accesses only steer who tries.
//   P2  a waiter goes back to the gate by a compare-exchange on the word that still shows L, so the
//       release, which works on the same word, sees it counted: G1 of gate.h.
//
// Source: textbook; test-and-test-and-set is due to Rudolph and Segall (1984).
#pragma once

#include "wait.h"
#include "word.h"

namespace relock {

template <class P, class Layout>
struct Tas {
  using Word = typename P::Atomic32;

  static constexpr bool kCountsWaiters = false;  // waiters() is a lower bound
  static constexpr bool kOrdered =
      false;  // whoever waits as an admitted waiter comes before a newcomer
  static constexpr bool kHandsOver = false;  // a release makes a waiter the owner
  // In a spinlock, storing 0 in the word's low byte releases the lock.
  static constexpr bool kPlainRelease = true;

  static constexpr bool can_take(std::uint32_t word) { return (word & Layout::kHeld) == 0; }
  static constexpr bool has_waiters(std::uint32_t word) { return (word & Layout::kPending) != 0; }
  static constexpr std::uint32_t waiters(std::uint32_t word) { return has_waiters(word) ? 1 : 0; }
  // The word after a thread that did not spin takes the free lock.
  static constexpr std::uint32_t taken(std::uint32_t word) { return word | Layout::kLocked; }
  static constexpr Release release(std::uint32_t word) { return {word & ~Layout::kLocked, 0}; }

  static ReleaseNote<P> note(Word&, Word*, std::uint32_t) { return {}; }

  static Joined join(Word& word, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);  // a hint; P1 acquires
    for (;;) {
      if (can_take(w)) {
        const std::uint32_t mine = (w & ~Layout::kPending) | Layout::kLocked;
        if (word.compare_exchange(w, mine, MemoryOrder::kAcquire)) return Joined::kAcquired;  // P1
        continue;
      }
      if constexpr (Layout::kCanSleep) {
        if ((w & Layout::kPending) == 0) {  // relaxed: a release that misses it wakes one too many
          if (!word.compare_exchange(w, w | Layout::kPending, MemoryOrder::kRelaxed)) continue;
          w |= Layout::kPending;
        }
      }
      if (!spinner.spin(word, w)) {
        if constexpr (Layout::kCanSleep) {
          if (back_to_gate(word, w)) return Joined::kAtTheGate;
          continue;
        } else {
          spinner.nap(word, w);
        }
      }
      w = word.load(MemoryOrder::kRelaxed);
    }
  }

 private:
  // L|Q -> L, passive+1: in one step with having seen the lock held, so the release sees us.
  static bool back_to_gate(Word& word, std::uint32_t& w) {
    if (can_take(w)) return false;
    if ((w & Layout::kPassiveMask) == Layout::kPassiveMask) {
      P::pause();
      w = word.load(MemoryOrder::kRelaxed);
      return false;
    }
    const std::uint32_t passive = (w & ~Layout::kPending) + Layout::kPassiveOne;
    return word.compare_exchange(w, passive, MemoryOrder::kAcqRel);  // P2
  }
};

}  // namespace relock
