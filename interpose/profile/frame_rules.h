// How to step out of a frame, by program counter: what libunwind reads in the unwind tables, kept
// in a form that a walk can apply at once.
#pragma once

#include <cstdint>

namespace relock::profile {

enum class FrameKind : std::uint8_t {
  kUnknown,    // nothing is known about this address
  kFromStack,  // the caller's frame begins at stack pointer + offset
  kFromBase,   // the caller's frame begins at base pointer + offset
  kSignal,     // the kernel called this one: the interrupted registers lie on the stack
  kOutermost,  // nobody called this one
  kComplex     // libunwind must walk
};

struct FrameRule {
  FrameKind kind = FrameKind::kUnknown;
  bool base_saved = false;
  std::int32_t frame_offset = 0;
  std::int32_t base_offset = 0;  // of the saved base pointer from the caller's frame
};

// Opens libunwind's interface for other address spaces and closes what it leaves open.
bool open_unwinder();

// The rule for an address inside a function. *busy: it is not known yet, and another thread is in
// the unwinder.
FrameRule frame_rule(std::uint64_t address, bool* busy);

// The same without asking libunwind. False: it is not known yet.
bool known_frame_rule(std::uint64_t address, FrameRule* rule);

// Registers that a function must give back as it found them, and where it was.
struct Registers {
  std::uint64_t rip, rsp, rbp, rbx, r12, r13, r14, r15;
};

// Walks frame by frame inside libunwind, for stacks with frames that no rule fits. `visit` gets the
// address of each frame as take_stack wants it and says whether to go on.
class StackReader;
void walk_with_unwinder(const Registers& start, StackReader* reader,
                        bool (*visit)(void* context, std::uint64_t address), void* context,
                        bool* busy);

}  // namespace relock::profile
