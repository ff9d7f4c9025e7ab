// The loaded objects: which one an address lies in, and their rows in the profile.
#pragma once

#include "interpose/profile/process_state.h"

namespace relock::profile {

struct LoadedObject {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t load_bias;
  const char* name;          // as the loader knows it; "" for the program itself
  const void* unwind_table;  // PT_GNU_EH_FRAME, or null
};

// Without a lock and without allocating: the C library keeps a table for unwinders that may be read
// at any time. The answer holds while the caller knows that the object stays, as it does for
// addresses on the caller's own stack.
bool find_object(std::uint64_t address, LoadedObject* object);

// Makes sure that the object around `address` has its row. Called for addresses in use by the
// calling thread.
void note_module(Header* header, std::uint64_t address);

// The same for all addresses of a stack. Returns false when one of the objects has taken another
// one's place since it was last looked at: the stack was then read by the old one's tables.
bool note_modules(Header* header, const std::uint64_t* frames, std::uint32_t count);

// Bumped when an object has taken the place of another one; what was learned by address is void.
// Whether note_modules would find nothing new.
bool modules_are_known(const std::uint64_t* frames, std::uint32_t count);
// Adds every object that is loaded now. Not while another thread may open or close libraries.
void note_all_modules(Header* header);

std::uint32_t module_epoch();

}  // namespace relock::profile
