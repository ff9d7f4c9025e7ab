// ticket-backoff: a ticket lock whose waiters look the less often the further back they stand.
//
// Word, transitions and memory order are those of ticket.h; backoff.h has the delay and its source.
// The next in line looks all the time. The delay is spent in pauses, so it counts against the
// waiter's spin allowance and a waiter whose allowance ends while it pauses goes to sleep.
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
