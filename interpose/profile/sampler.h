// Which waits get stacks. README.md states the estimator.
#pragma once

#include "interpose/profile/process_state.h"

namespace relock::profile {

// Decides about one wait that is expected to last predicted_ns. Returns its weight, the inverse of
// the probability with which it was drawn, in units of 1/kWeightOne; 0 when it was not drawn.
std::uint32_t draw_sample(Header* header, std::uint64_t predicted_ns, std::uint64_t now_ns);

// The wait to expect of a lock: its mean so far.
std::uint64_t predicted_wait_ns(const LockRow& lock);

}  // namespace relock::profile
