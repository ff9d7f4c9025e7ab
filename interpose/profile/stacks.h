// Call stacks of the calling thread, by libunwind's reading of the unwind tables.
#pragma once

#include <cstddef>

#include "interpose/profile/frame_rules.h"
#include "interpose/profile/process_state.h"

namespace relock::profile {

// Opens libunwind. Called once, before any thread records. Returns false when it is not there: then
// profiles have no stacks. `caller`: an address in the library that calls the recorder, whose
// frames are left out of stacks.
bool set_up_stacks(const void* caller);

// Where the walk begins: the function that this is expanded in.
[[gnu::always_inline]] inline void capture_registers(Registers* registers) {
  __asm__ volatile(
      "leaq 0(%%rip), %%rax\n\t"
      "movq %%rax, 0(%0)\n\tmovq %%rsp, 8(%0)\n\tmovq %%rbp, 16(%0)\n\tmovq %%rbx, 24(%0)\n\t"
      "movq %%r12, 32(%0)\n\tmovq %%r13, 40(%0)\n\tmovq %%r14, 48(%0)\n\tmovq %%r15, 56(%0)"
      :
      : "r"(registers)
      : "rax", "memory");
  static_assert(offsetof(Registers, r15) == 56);
}

// Fills `frames` with addresses inside the calling instructions, innermost first, beginning with
// the first frame outside relock. Returns how many, at most `capacity`; *busy is set when the stack
// was cut short because another thread was inside the unwinder. Needs kilobytes of stack.
std::uint32_t take_stack(const Registers& start, std::uint64_t* frames, std::uint32_t capacity,
                         bool* busy);

// The same where every frame has a rule that is known: needs a kilobyte of stack, and no other
// thread. False: take_stack must do it.
bool take_known_stack(const Registers& start, std::uint64_t* frames, std::uint32_t capacity,
                      std::uint32_t* count);

}  // namespace relock::profile
