// The log of the hottest locks: at the end, and at intervals by a thread that is about to sleep.
#pragma once

#include <cstdint>

#include "interpose/profile/profile_format.h"

namespace relock::profile {

// Makes the logger, so that nothing has to be allocated later.
void set_up_log();

bool interval_log_is_due(Header* header, std::uint64_t now_ns);

// If the interval has passed and no other thread is at it.
void write_interval_log(Header* header, std::uint64_t now_ns);

void write_final_log(Header* header);

}  // namespace relock::profile
