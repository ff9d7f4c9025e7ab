// The gate in front of a mutex's lock algorithm, and everything about a mutex that does not depend
// on the algorithm: timed waiters, sleeping and waking, ghosts after a fork.
//
// The idea: a lock that hands over in order needs a context switch per hand-off once threads
// outnumber CPUs, so no tuning of spin times can save it. So only a few threads (Budget::
// admitted_limit) compete for the lock word. The others register as passive in the word and sleep
// in the kernel. While the admitted ones keep the lock busy nobody is woken; a release that finds
// no admitted waiter admits one sleeper, and a sleeper lets itself in after promote_ns times its
// place in line, so nobody starves.
// (Dice and Kogan, "Avoiding scalability collapse by restricting concurrency", Euro-Par 2019; Dice,
// "Malthusian locks", EuroSys 2017; the admission bit resembles mutexWoken of Go's sync.Mutex.)
//
// Sleepers wait in the kernel's own futex queue of the object's `gate` cell, a sequence number.
// There is no list in user space and no lock around one, so a signal handler may use other mutexes
// at any point, a vanished thread leaves nothing behind, and the kernel keeps the order.
//
// Transitions beyond the algorithm's (word.h has the bits):
//   held or waited for    -> passive+1     a thread finds the gate full
//   A, passive p          -> passive p-1   a sleeper claims the admission (one wins) and joins
//   free, passive p       -> L, passive p-1    a sleeper that happens to look takes the free lock
//   L, a place free, !A, passive > 0 -> L|A, then gate+1, then free|A, then wake(gate)   release
//   held or waited for    -> R             a timed waiter, let in, asks for the next release
//   L|R                   -> O             release: the lock is the reserved waiter's to take
//   O                     -> L             it takes it     R -> (clear)   or it gives up in time
//
// A timed waiter never holds a ticket or queue node, so giving up leaves the queue intact; and
// since a release offers it the lock, it is not starved by a lock that is never free. Two offers in
// a row happen only if nobody else waits (`offered last` in the epoch cell).
//
// Memory order (P1 of each algorithm is the critical section; here is who sees whom):
//   G1  passive+1 is a compare-exchange on a word that shows an owner, an offer, an admitted waiter
//       or A. Whoever releases next does so by compare-exchange on the same word: it sees the
//       count.
//   G2  a sleeper reads `gate` (acquire) before it looks at the word; a release sets A, then
//       advances `gate` (release), then lets go. If the sleeper read the new sequence it sees A;
//       if the old one, futex_wait refuses or the wake finds it. (The kernel compares `gate` and
//       queues the sleeper in one step, and both calls are full barriers.)
//   G3  O is set by the release (release) and turned into L by the offered waiter (acquire): P1.
//   G4  an epoch cell is claimed by compare-exchange, repaired, and published (release); every slow
//       path loads it (acquire) before it believes the word.
#pragma once

#include <cstdint>

#include "allowance.h"
#include "courtesy.h"
#include "ghosts.h"
#include "looks.h"
#include "reservation.h"
#include "wait.h"
#include "word.h"

namespace relock {

// `Object` gives access to one mutex: word(), gate(), epoch(), tuning(), owner(), each a
// P::Atomic32&. epoch: bit 31 being repaired, bit 30 the last release was an offer, bit 29 a
// sleeper starves (courtesy.h), bits 16-28 admitted waiters (kept where the word does not tell and
// more than one is allowed), bits 0-15 P::epoch() at the last contention, modulo 65536. tuning:
// bits 0-15 learned spin allowance + 1 (0: none yet), bits 16-31 the algorithm's (pv: slot of a
// halted queue head, for the release to kick).
template <class P, template <class, class> class AlgorithmOf, class Object>
class GatedMutex {
 public:
  using Layout = MutexLayout;
  using Algorithm = AlgorithmOf<P, Layout>;
  using Word = typename P::Atomic32;
  using Allowance = SpinAllowance<P, 0>;
  using Ghosts = MutexGhosts<P, Object>;
  using Courtesy = relock::Courtesy<P, Object>;
  using Reserving = Reservation<P, Algorithm>;

  // A try that copes with every state of the word. Never waits.
  static bool try_lock(Object object) {
    std::uint32_t w = object.word().load(MemoryOrder::kRelaxed);
    // A word with ghosts must not be taken: who repairs it would find no owner yet and free it
    // (G4).
    if (Ghosts::may_be_in(w) && Ghosts::stale(object)) {
      Ghosts::repair(object);
    }
    return take_if_free(object);
  }

  static Acquire lock_slow(Object object, WaitContext<P>& context) {
    if (Ghosts::stale(object)) Ghosts::repair(object);
    if (!Algorithm::kOrdered && Courtesy::asked(object)) Courtesy::show(object, context);
    if (take_if_free(object)) return Acquire::kAcquired;
    P::note_cpu();
    const bool runs = !P::was_here(object.owner().load(MemoryOrder::kRelaxed));
    Looks<P> looks(&object.word(), context);
    while (runs && looks.again()) {
      if (take_at_once(object)) {
        looks.acquired();
        return Acquire::kAcquired;
      }
    }
    context.spin_pauses = runs ? Allowance::of(object.tuning(), *context.budget) : 0;
    context.aux = &object.tuning();
    const Acquire result = acquire(object, context);
    if (result != Acquire::kAcquired) return result;
    looks.acquired();
    if (!Algorithm::kOrdered && context.slept && Courtesy::asked(object)) Courtesy::end(object);
    if (runs && !context.promoted) Allowance::learn(object.tuning(), context);
    return result;
  }

  // A mutex that nobody holds or waits for as an admitted waiter, while others sleep at the gate,
  // is as good as free: the same for every algorithm (W2).
  static bool lock_crowded(Object object) {
    std::uint32_t w = object.word().load(MemoryOrder::kRelaxed);
    if ((w & ~kCrowd) != Layout::kFree || !Ghosts::settled(object)) return false;
    return object.word().compare_exchange(w, w | Layout::kLocked, MemoryOrder::kAcquire);  // P1
  }

  // Whether the owner of a mutex with this word may release it by release_crowded(): one of the
  // sleepers has been let in and is on its way, so nobody is to be woken.
  static bool is_crowded(Object object, std::uint32_t w) {
    return (w & ~Layout::kPassiveMask) == (Layout::kFree | Layout::kLocked | Layout::kAdmitting) &&
           Ghosts::settled(object);
  }
  static bool release_crowded(Object object, std::uint32_t w) {
    return object.word().compare_exchange(w, w & ~Layout::kLocked, MemoryOrder::kRelease);  // P1
  }

  // Before the owner fields are cleared: drops ghosts while the owner is still known (G4).
  static void prepare_unlock(Object object) {
    if (Ghosts::stale(object)) Ghosts::repair(object);
  }

  // For a mutex that a thread only ever takes after this call: in a forked child, whatever the word
  // says the first time is about threads that are not here, its owner included (G4).
  static void forget_parent(Object object) {
    if (Ghosts::stale(object)) Ghosts::repair(object, Ghosts::kNobodyStays);
  }

  // The caller owns the lock, or the word shows that nobody does (then nothing happens).
  // The releasing compare-exchange is the last access to the object; wakes use addresses only.
  static void unlock_slow(Object object, const Budget& budget) {
    Word& word = object.word();
    const void* const word_address = &word;
    const void* const gate_address = &object.gate();
    const bool may_offer = !offered_last(object);
    ReleaseNote<P> note;
    bool admitted = false;
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while ((w & Layout::kLocked) != 0) {
      const bool waiters = Algorithm::has_waiters(w);
      if ((w & Layout::kReserved) != 0 && (!waiters || may_offer)) {
        const bool unclaimed = admitted && (w & Layout::kAdmitting) != 0;
        if (offer(object, word, w, waiters)) {
          wake(word_address, 1, wake_bit::kReserved);
          note.carry_out();
          if (unclaimed) wake(gate_address, 1, kAnyBit);
          return;
        }
      } else if ((w & Layout::kPassiveMask) != 0 && (w & Layout::kAdmitting) == 0 &&
                 (!waiters || has_free_place(object, w, budget))) {
        if (word.compare_exchange(w, w | Layout::kAdmitting, MemoryOrder::kAcqRel)) {  // G2
          object.gate().fetch_add(1, MemoryOrder::kRelease);                           // G2
          admitted = true;
          w |= Layout::kAdmitting;
        }
      } else {
        if (!may_offer) object.epoch().fetch_and(~Ghosts::kOfferedLast, MemoryOrder::kRelaxed);
        const Release release = Algorithm::release(w);
        // A sleeper that a failed round has taken charge of stays in our charge.
        if (note.wake == nullptr) note = Algorithm::note(word, &object.tuning(), w);
        const bool unclaimed = admitted && (w & Layout::kAdmitting) != 0;
        if (word.compare_exchange(w, release.word, MemoryOrder::kRelease)) {  // P1; last touch
          if (release.wake_bits != 0) wake(word_address, kEverybody, release.wake_bits);
          note.carry_out();
          if (unclaimed) wake(gate_address, 1, kAnyBit);
          return;
        }
      }
    }
    // Unlocked by somebody else meanwhile, as normal mutexes may be: what this release has taken
    // charge of is still its own.
    note.carry_out();
    if (admitted) wake(gate_address, 1, kAnyBit);
  }

 private:
  static constexpr std::uint32_t kCrowd = Layout::kPassiveMask | Layout::kAdmitting;
  static constexpr int kEverybody = 0x7fffffff;

  enum class Entry { kJoin, kRetry, kAcquired, kTimedOut };

  static bool take_if_free(Object object) {
    Word& word = object.word();
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while (Algorithm::can_take(w)) {
      if (word.compare_exchange(w, Algorithm::taken(w), MemoryOrder::kAcquire)) return true;  // P1
    }
    return false;
  }

  // The same without a look beforehand: between the look and the try a busy owner would have the
  // cache line back, and the lock.
  static bool take_at_once(Object object) {
    std::uint32_t expected = Layout::kFree;
    const std::uint32_t mine = Layout::kFree | Layout::kLocked;
    if (object.word().compare_exchange(expected, mine, MemoryOrder::kAcquire)) return true;  // P1
    return Algorithm::can_take(expected) && take_if_free(object);
  }

  static void wake(const void* address, int count, std::uint32_t bits) {
    P::futex_wake(address, count, bits);
  }
  static bool offered_last(Object object) {  // written by owners only
    return (object.epoch().load(MemoryOrder::kRelaxed) & Ghosts::kOfferedLast) != 0;
  }

  // L|R -> O. The Ghosts::kOfferedLast flag goes first: after the offer the object is not ours to
  // touch.
  static bool offer(Object object, Word& word, std::uint32_t& w, bool waiters) {
    if (waiters) object.epoch().fetch_or(Ghosts::kOfferedLast, MemoryOrder::kRelaxed);
    const std::uint32_t offered = (w & ~(Layout::kLocked | Layout::kReserved)) | Layout::kOffered;
    return word.compare_exchange(w, offered, MemoryOrder::kRelease);  // G3; last touch
  }

  // Admitted waiters, one of whom will own the lock next, leave a place for another.
  static bool has_free_place(Object object, std::uint32_t w, const Budget& budget) {
    const WaitContext<P> context{&budget};
    return budget.admitted_limit > 1 && admitted(object, w, context) < budget.admitted_limit;
  }

  // Whether the number of admitted waiters must be counted beside the word.
  static bool counts_admitted(const WaitContext<P>& context) {
    return !Algorithm::kCountsWaiters && context.budget->admitted_limit > 1 &&
           !context.spins_only();
  }
  static std::uint32_t admitted(Object object, std::uint32_t w, const WaitContext<P>& context) {
    if (!counts_admitted(context)) return Algorithm::waiters(w);
    const std::uint32_t cell = object.epoch().load(MemoryOrder::kRelaxed);  // a hint
    return (cell & Ghosts::kAdmittedMask) / Ghosts::kAdmittedOne;
  }

  // A timed waiter will have to reserve; while another has done so it sleeps at the gate.
  static bool may_reserve(std::uint32_t w, const WaitContext<P>& context) {
    return context.deadline == nullptr || (w & (Layout::kReserved | Layout::kOffered)) == 0;
  }

  static bool gate_open(Object object, std::uint32_t w, const WaitContext<P>& context) {
    if (context.spins_only()) return true;
    if (!may_reserve(w, context)) return false;
    std::uint32_t on_its_way = (w & Layout::kAdmitting) != 0 ? 1 : 0;
    // Handed over to a waiter that has not woken up yet: it still takes up its place. Without this,
    // two threads hand the lock to each other asleep, with a context switch each time.
    if (Algorithm::kHandsOver && (w & Layout::kLocked) != 0 &&
        object.owner().load(MemoryOrder::kRelaxed) == 0) {
      ++on_its_way;
    }
    return admitted(object, w, context) + on_its_way < context.budget->admitted_limit;
  }

  // A waiter whose sleep has reached its bound may come in, one beyond the limit: if more did, a
  // lock that is held for long would gather them all. Without ticket or node it needs R to be free.
  static bool may_be_promoted(Object object, std::uint32_t w, const WaitContext<P>& context) {
    const bool reserves = context.deadline != nullptr || !Algorithm::kOrdered;
    if (reserves && (w & (Layout::kReserved | Layout::kOffered)) != 0) return false;
    return admitted(object, w, context) <= context.budget->admitted_limit;
  }

  static Joined join(Object object, WaitContext<P>& context) {
    if (!counts_admitted(context)) return Algorithm::join(object.word(), context);
    object.epoch().fetch_add(Ghosts::kAdmittedOne, MemoryOrder::kRelaxed);
    const Joined joined = Algorithm::join(object.word(), context);
    object.epoch().fetch_sub(Ghosts::kAdmittedOne,
                             MemoryOrder::kRelaxed);  // still owner, or still waiting
    return joined;
  }

  static Acquire acquire(Object object, WaitContext<P>& context) {
    bool registered = false;
    for (;;) {
      const Entry entry = enter(object, context, registered);
      registered = false;
      if (entry == Entry::kAcquired) return Acquire::kAcquired;
      if (entry == Entry::kTimedOut) return Acquire::kTimedOut;
      if (entry == Entry::kRetry) continue;
      if (context.deadline != nullptr) return Reserving::reserve(object.word(), context);
      switch (context.promoted ? Reserving::ask_awake(object.word(), context)
                               : join(object, context)) {
        case Joined::kAcquired:
          return Acquire::kAcquired;
        case Joined::kAtTheGate:
          registered = true;
          if (context.asked_in_vain >= (context.alone ? 1 : context.budget->asks_in_vain)) {
            Courtesy::ask(object);
          }
          break;
        case Joined::kNoRoom:
          return Reserving::reserve(object.word(), context);
      }
    }
  }

  // Takes the lock if it is free, passes the gate if it is open, else sleeps until one is so.
  static Entry enter(Object object, WaitContext<P>& context, bool registered) {
    Word& word = object.word();
    std::uint32_t sequence = object.gate().load(MemoryOrder::kAcquire);  // G2
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    bool admission_is_for_others = false;
    while (!registered) {
      if (Algorithm::can_take(w)) {
        if (word.compare_exchange(w, Algorithm::taken(w), MemoryOrder::kAcquire)) {
          return Entry::kAcquired;  // P1
        }
      } else if (gate_open(object, w, context)) {
        return Entry::kJoin;
      } else if ((w & Layout::kPassiveMask) == Layout::kPassiveMask) {
        return wait_unregistered(object, context, sequence);
      } else {
        context.going_to_sleep();
        admission_is_for_others = (w & Layout::kAdmitting) != 0;
        registered = word.compare_exchange(w, w + Layout::kPassiveOne, MemoryOrder::kAcqRel);  // G1
      }
    }
    return sleep_at_gate(object, context, sequence, admission_is_for_others);
  }

  // The counter is full: sleep without being counted, for a while that somebody always ends.
  // The wake of an admission may reach it in place of a counted sleeper, so it may claim one.
  static Entry wait_unregistered(Object object, WaitContext<P>& context, std::uint32_t sequence) {
    context.going_to_sleep();
    constexpr std::uint64_t kPlaces = Layout::kPassiveMask / Layout::kPassiveOne;
    const Deadline bound =
        P::after_ns(context.budget->promote_ns / 16 * (kPlaces + P::choose(kPlaces)));
    const bool own = context.deadline != nullptr && !ends_before<P>(bound, *context.deadline);
    (void)P::futex_wait(object.gate(), sequence, kAnyBit, own ? context.deadline : &bound);
    const bool late = context.deadline != nullptr && P::expired(*context.deadline);
    Word& word = object.word();
    std::uint32_t w = word.load(MemoryOrder::kAcquire);
    for (;;) {
      const std::uint32_t claimed = w & ~Layout::kAdmitting;
      if (Algorithm::can_take(w)) {
        if (word.compare_exchange(w, Algorithm::taken(claimed), MemoryOrder::kAcquire)) {
          return Entry::kAcquired;  // P1
        }
      } else if (claimed == w) {
        return late ? Entry::kTimedOut : Entry::kRetry;
      } else if (word.compare_exchange(w, claimed, MemoryOrder::kAcqRel)) {
        return late ? Entry::kTimedOut : Entry::kJoin;
      }
    }
  }

  // A registered waiter's life. `skip_claim`: A was set when we registered, so it belongs to one
  // who was there before; that one will come and claim it.
  static Entry sleep_at_gate(Object object, WaitContext<P>& context, std::uint32_t sequence,
                             bool skip_claim) {
    Deadline promotion = promotion_of(object, context);
    bool promoted = false;
    for (;;) {
      Entry entry = leave_gate(object, context, skip_claim, promoted);
      if (entry != Entry::kRetry) return entry;
      skip_claim = false;
      if (promoted) promotion = promotion_of(object, context);
      context.going_to_sleep();
      const Deadline* until = &promotion;
      if (context.deadline != nullptr && !ends_before<P>(promotion, *context.deadline)) {
        until = context.deadline;
      }
      const WaitResult result = P::futex_wait(object.gate(), sequence, kAnyBit, until);
      promoted = result == WaitResult::kTimedOut;
      if (promoted) context.bound_reached(object.owner().load(MemoryOrder::kRelaxed));
      sequence = object.gate().load(MemoryOrder::kAcquire);  // G2
      // While it looks, A stays: nobody else is woken, and the owner's releases stay quick.
      for (Looks<P> looks(&object.word(), context); !promoted && looks.again();) {
        entry = leave_gate(object, context, /*skip_claim=*/true, false);
        if (entry != Entry::kRetry) return entry;
      }
    }
  }

  // When a sleeper lets itself in: after its bound times its place in line, doubled each second
  // time that the same owner holds the lock, so that one held for long does not keep its waiters
  // awake.
  static Deadline promotion_of(Object object, WaitContext<P>& context) {
    context.owner_seen = object.owner().load(MemoryOrder::kRelaxed);  // a hint
    const std::uint32_t w = object.word().load(MemoryOrder::kRelaxed);
    const std::uint32_t counted = (w & Layout::kPassiveMask) / Layout::kPassiveOne;
    const std::uint64_t place = counted == 0 ? 1 : counted;  // a child has forgotten us (repair)
    context.alone = place == 1 && (w & Layout::kAdmitting) == 0 && !Algorithm::has_waiters(w);
    const std::uint64_t times = context.alone ? context.budget->promotions_alone : place;
    return P::after_ns((context.budget->promote_ns * times) << (context.promotions / 2));
  }

  // One look of a registered waiter. kRetry: there is nothing for us yet. `out_of_time`: the sleep
  // has reached its bound or the deadline.
  static Entry leave_gate(Object object, WaitContext<P>& context, bool skip_claim,
                          bool out_of_time) {
    Word& word = object.word();
    const bool late = out_of_time && context.deadline != nullptr && P::expired(*context.deadline);
    std::uint32_t w = word.load(MemoryOrder::kAcquire);
    for (;;) {
      const std::uint32_t counted = (w & Layout::kPassiveMask) != 0 ? Layout::kPassiveOne : 0;
      const std::uint32_t without_us = w - counted;  // a child may have forgotten us (repair)
      const bool admission = (w & Layout::kAdmitting) != 0 && !skip_claim;
      if (Algorithm::can_take(w)) {
        // Clearing A may disappoint one on its way; it sleeps again and our release sees it.
        const std::uint32_t mine = Algorithm::taken(without_us & ~Layout::kAdmitting);
        if (word.compare_exchange(w, mine, MemoryOrder::kAcquire)) return Entry::kAcquired;  // P1
      } else if (admission || late || (out_of_time && may_be_promoted(object, w, context))) {
        // Whoever leaves claims an admission that is under way: the wake may have been for us, and
        // then nobody else would come for it. The lock is held or about to be: the next release
        // admits another.
        if (word.compare_exchange(w, without_us & ~Layout::kAdmitting, MemoryOrder::kAcqRel)) {
          context.promoted = !admission && !late && !Algorithm::kOrdered;
          return late ? Entry::kTimedOut : Entry::kJoin;
        }
      } else {
        return Entry::kRetry;
      }
    }
  }
};

}  // namespace relock
