// ticket: waiters are served in the order in which they took a ticket.
//
// The idea: a waiter takes the next ticket from the tail and waits until the head has passed it.
// The owner passes the lock on by advancing the head; the locked bit stays set meanwhile, so nobody
// can slip in between. A release with nobody waiting clears head and tail, so that a free word is
// always the same and the fast path is shared with every other lock.
//
// Word (word.h has the gate's and the epoch's bits, here dots):
//    31     26 25     20 19         4 3 2 1 0
//   +---------+---------+---------+--+-----+-+
//   |  tail   |  head   | . . . . |S |. . O|L|   mutex: 6 bits each, modulo 64
//   +---------+---------+---------+--+-----+-+
//    31   24 23      16 15       9 8      1 0
//   +-------+----------+----------+--------+-+
//   | . . . |   tail   |  . . . . |  head  |L|   spinlock: 8 bits each, modulo 256
//   +-------+----------+----------+--------+-+
//   tail the next ticket to be taken   head the next to be served   S a waiter sleeps on the word
// At most half as many tickets are out at a time, so that a served ticket can be told from one
// that is still to come; whoever finds none competes without one.
//
// Transitions:
//   free                        -> L                 no ticket is needed
//   L, head h, tail t           -> L, tail t+1       a waiter takes ticket t
//   L, head h, tail t (h != t)  -> L, head h+1       release: the waiter with ticket h owns it now
//   L, head h, tail h           -> free              release: head and tail start again at 0
//   L, S clear                  -> S                 a waiter is about to sleep on the word
//
// A release of a free lock changes nothing (the locked bit says so): the head never passes the
// tail, so a double unlock, which glibc's mutex survives, is survived here too. One that happens
// with waiters serves two of them at once, as glibc would wake two; a waiter whose ticket has been
// passed in this way owns the lock, and one that finds the lock free competes for it.
//
// Memory order:
//   P1  the releasing compare-exchange (release) that advances the head, or clears L, publishes the
//       critical section to the load (acquire) that sees its ticket served, or to the
//       compare-exchange (acquire) that takes the free lock.
//   P2  S is set by a compare-exchange on the very word that says "not yet served", so the release
//       that serves the sleeper finds S and wakes it.
//   Taking a ticket is relaxed: it publishes nothing, and the place in line is the order of the
//   word's own changes.
//
// Source: Mellor-Crummey and Scott 1991; Reed and Kanodia 1979. Ours: the locked bit, the reset.
#pragma once

#include "wait.h"
#include "word.h"

namespace relock {

// `Local` is one waiter's way to pause: TicketOnWord here, TicketQueued in auto_ticket.h,
// TicketWithBackoff in ticket_backoff.h.
template <class P, class Layout, template <class, class> class LocalOf>
struct TicketCore {
  using Word = typename P::Atomic32;
  using Local = LocalOf<P, Layout>;

  static constexpr bool kCountsWaiters = true;  // waiters() is exact
  static constexpr bool kOrdered =
      true;  // whoever waits as an admitted waiter comes before a newcomer
  static constexpr bool kHandsOver = true;  // a release makes a waiter the owner
  // In a spinlock, storing 0 in the word's low byte releases the lock: no, the head is there.
  static constexpr bool kPlainRelease = false;

  static constexpr std::uint32_t kMask = (1u << Layout::kTicketBits) - 1;
  static constexpr std::uint32_t kMostTickets = kMask / 2;
  static constexpr std::uint32_t kBothMask =
      (kMask << Layout::kTicketHeadShift) | (kMask << Layout::kTicketTailShift);

  static constexpr std::uint32_t head(std::uint32_t word) {
    return (word >> Layout::kTicketHeadShift) & kMask;
  }
  static constexpr std::uint32_t tail(std::uint32_t word) {
    return (word >> Layout::kTicketTailShift) & kMask;
  }
  static constexpr std::uint32_t waiters(std::uint32_t word) {
    return (tail(word) - head(word)) & kMask;
  }
  static constexpr bool has_waiters(std::uint32_t word) { return waiters(word) != 0; }
  static constexpr bool can_take(std::uint32_t word) {
    return (word & Layout::kHeld) == 0 && !has_waiters(word);
  }
  static constexpr std::uint32_t taken(std::uint32_t word) { return word | Layout::kLocked; }

  static constexpr std::uint32_t kAnyTicket = 0xffff;
  static constexpr std::uint32_t sleep_bit(std::uint32_t ticket) { return 1u << (ticket & 15); }

  static constexpr Release release(std::uint32_t word) {
    if (!has_waiters(word)) {
      const std::uint32_t used = kBothMask | Layout::kLocked | Layout::kSleeper | Layout::kQueued;
      // S without a ticket out: a sleeper whose ticket a double unlock has passed.
      const std::uint32_t lost = (word & Layout::kSleeper) != 0 ? kAnyTicket : 0;
      return {Layout::with_epoch(word & ~used, 0), lost};
    }
    const std::uint32_t served = head(word);
    std::uint32_t next = with_head(word, served + 1);
    std::uint32_t wake = 0;
    if ((word & Layout::kSleeper) != 0) {
      wake = sleep_bit(served);
      if (!has_waiters(next)) next &= ~Layout::kSleeper;
    }
    return {next, wake};
  }
  static ReleaseNote<P> note(Word& word, Word*, std::uint32_t w) {
    return has_waiters(w) ? Local::note_serving(word, w, head(w)) : Local::note_free(word, w);
  }

  static Joined join(Word& word, WaitContext<P>& context) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    for (;;) {
      if (can_take(w)) {
        if (word.compare_exchange(w, taken(w), MemoryOrder::kAcquire)) {  // P1
          return Joined::kAcquired;
        }
        continue;
      }
      if (waiters(w) == kMostTickets) return Joined::kNoRoom;
      const std::uint32_t with_mine = with_tail(Layout::with_epoch(w, P::epoch()), tail(w) + 1);
      if (word.compare_exchange(w, with_mine, MemoryOrder::kRelaxed)) break;
    }
    wait_turn(word, tail(w), context);
    return Joined::kAcquired;
  }

 private:
  static constexpr std::uint32_t with_head(std::uint32_t word, std::uint32_t value) {
    return (word & ~(kMask << Layout::kTicketHeadShift)) |
           ((value & kMask) << Layout::kTicketHeadShift);
  }
  static constexpr std::uint32_t with_tail(std::uint32_t word, std::uint32_t value) {
    return (word & ~(kMask << Layout::kTicketTailShift)) |
           ((value & kMask) << Layout::kTicketTailShift);
  }

  static void wait_turn(Word& word, std::uint32_t mine, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    Local local(word, context);
    for (;;) {
      std::uint32_t w = word.load(MemoryOrder::kAcquire);                         // P1
      if (((head(w) - mine - 1) & kMask) <= kMostTickets) return local.served();  // or passed
      if (can_take(w)) {  // only after a double unlock: our ticket is gone
        if (word.compare_exchange(w, taken(w), MemoryOrder::kAcquire)) return;  // P1
        continue;
      }
      const std::uint32_t ahead = (mine - head(w)) & kMask;
      if (local.spin(word, w, mine, ahead, spinner)) continue;
      if constexpr (Layout::kCanSleep) {
        context.going_to_sleep();  // before we can be served: nobody else shall pay for it
        if ((w & Layout::kSleeper) == 0) {
          if (!word.compare_exchange(w, w | Layout::kSleeper, MemoryOrder::kAcqRel)) {  // P2
            continue;
          }
          w |= Layout::kSleeper;
        }
        (void)P::futex_wait(word, w, sleep_bit(mine), nullptr);
      } else {
        spinner.nap(word, w);
      }
    }
  }
};

// For waiters that look at the lock word: a release has nobody else to tell.
template <class P>
struct NoTicketQueue {
  static ReleaseNote<P> note_serving(typename P::Atomic32&, std::uint32_t, std::uint32_t) {
    return {};
  }
  static ReleaseNote<P> note_free(typename P::Atomic32&, std::uint32_t) { return {}; }
};

// Every waiter looks at the lock word all the time.
template <class P, class Layout>
struct TicketOnWord : NoTicketQueue<P> {
  using Word = typename P::Atomic32;

  TicketOnWord(Word&, const WaitContext<P>&) {}
  bool spin(Word& word, std::uint32_t w, std::uint32_t, std::uint32_t, Spinner<P>& spinner) {
    return spinner.spin(word, w);
  }
  void served() {}
};

template <class P, class Layout>
using Ticket = TicketCore<P, Layout, TicketOnWord>;

}  // namespace relock
