// Which waits get stacks. README.md states the estimator.
#pragma once

#include "interpose/profile/process_state.h"

namespace relock::profile {

// A thread need not ask about each of its waits for one lock: it is told how many of the next ones
// are not drawn.
struct Draw {
  bool again;             // given: no wait for another lock came since the last question
  std::uint32_t passed;   // given: waits since then that were known not to be drawn
  std::uint32_t undrawn;  // answered: so many waits of this thread for this lock are not drawn
  std::uint32_t chance;   // answered: that this wait and those had, of kCertain
};
inline constexpr std::uint32_t kCertain = 0xffffffff;
inline constexpr std::uint32_t kMostUndrawn = 32;

// Decides about a wait that is expected to last predicted_ns. Returns its weight, the inverse of
// the probability with which it was drawn, in units of 1/kWeightOne; 0 when it was not drawn.
std::uint32_t draw_sample(Header* header, std::uint64_t predicted_ns, std::uint64_t now_ns,
                          Draw& draw);

// Decides about a wait of which more is known than when it began: that it will sleep, or how long
// it was. *chance: with which it was drawn until now, and with this draw. *drawn: whether it was,
// and whether it is. Returns its weight, the inverse of its chance.
std::uint32_t draw_again(Header* header, std::uint64_t wait_ns, std::uint64_t now_ns,
                         std::uint32_t* chance, bool* drawn);

// The wait to expect of a waiter for the lock that is about to sleep: their mean so far.
std::uint64_t predicted_sleep_ns(const LockRow& lock);

// The wait to expect of a lock: its mean so far.
std::uint64_t predicted_wait_ns(const LockRow& lock);

}  // namespace relock::profile
