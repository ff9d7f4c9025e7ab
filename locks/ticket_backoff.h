// ticket-backoff: a ticket lock whose waiters look the less often the further back they stand.
//
// The idea: who has n tickets ahead of it gains nothing from a look before n hand-overs, and takes
// the word's cache line away with each. The next in line looks all the time, the others pause for n
// times a delay that tunes itself (backoff.h). The delay is spent in pauses, so it counts against
// the waiter's spin allowance, and a waiter whose allowance ends while it pauses goes to sleep.
//
// Word, transitions: those of ticket.h, which has the diagram; nothing is added to the word. Beside
// it each thread has a table (64 entries, by the lock's address):
//    31        22 21            8 7         0
//   +------------+---------------+-----------+
//   | tag of the |     delay per ticket      |   delay: pauses with 8 bits of fraction
//   |   lock     |     ahead     | fraction  |
//   +------------+---------------+-----------+
//   delay d -> d + 1/7                a look found others still ahead
//   delay d -> d - max(d/32, 1)       our turn had come already (d of at least 2)
//   1 <= d <= Budget::backoff_units   16000 on bare metal, 16 in a virtual machine
//
// Memory order: P1 and P2 of ticket.h: each look is TicketCore's load (acquire, P1), whatever came
// before it. The table is its thread's own and orders nothing.
//
// Source: as backoff.h says. Ours: a table per thread instead of one per CPU.
#pragma once

#include "backoff.h"
#include "ticket.h"

namespace relock {

template <class P, class Layout>
class TicketWithBackoff : public NoTicketQueue<P> {
 public:
  using Word = typename P::Atomic32;

  TicketWithBackoff(Word& word, const WaitContext<P>& context)
      : lock_(&word),
        table_(P::backoff_table()),
        delay_(table_ == nullptr ? 0 : table_->delay_of(lock_), context.budget->backoff_units) {}

  bool spin(Word& word, std::uint32_t w, std::uint32_t, std::uint32_t ahead, Spinner<P>& spinner) {
    if (delayed_) delay_.came_early();
    delayed_ = ahead > 0;
    return ahead == 0 ? spinner.spin(word, w) : spinner.spin_for(delay_.pauses(ahead), word, w);
  }

  // The wait is over.
  void served() {
    if (delayed_) delay_.came_late();
    if (table_ != nullptr) table_->learn(lock_, delay_.fixed());
  }

 private:
  const void* lock_;
  BackoffTable* table_;
  BackoffDelay delay_;
  bool delayed_ = false;  // the last thing done was a delay
};

template <class P, class Layout>
using TicketBackoff = TicketCore<P, Layout, TicketWithBackoff>;

}  // namespace relock
