// Call stacks of the calling thread, by libunwind's reading of the unwind tables.
#pragma once

#include "interpose/profile/process_state.h"

namespace relock::profile {

// Opens libunwind. Called once, before any thread records. Returns false when it is not there: then
// profiles have no stacks. `caller`: an address in the library that calls the recorder, whose
// frames are left out of stacks.
bool set_up_stacks(const void* caller);

// Fills `frames` with addresses inside the calling instructions, innermost first, beginning with
// the first frame outside relock. Returns how many, at most `capacity`; *busy is set when the stack
// was cut short because another thread was inside the unwinder.
std::uint32_t take_stack(std::uint64_t* frames, std::uint32_t capacity, bool* busy);

}  // namespace relock::profile
