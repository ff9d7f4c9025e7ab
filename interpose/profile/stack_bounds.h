// Which memory a walk over the calling thread's stack may read.
#pragma once

#include <cstdint>

namespace relock::profile {

// Reads words of the stack that holds `stack_pointer`, and of no other memory. Pages that are not
// known to be mapped are probed first, by a system call that touches no descriptor.
class StackReader {
 public:
  explicit StackReader(std::uint64_t stack_pointer) { move_to(stack_pointer); }

  // The walk goes on elsewhere: a signal handler on its own stack was left.
  void move_to(std::uint64_t stack_pointer);
  bool read_word(std::uint64_t address, std::uint64_t* value);

 private:
  std::uint64_t stack_pointer_ = 0;
  std::uint64_t low_ = 0;  // known to be mapped, or empty
  std::uint64_t high_ = 0;
  std::uint64_t probed_page_ = 0;
};

// Whether the calling thread is on its own stack and at least `bytes` more of it can be used.
// Probes at most once per thread and depth.
bool has_room_below(std::uint64_t stack_pointer, std::uint64_t bytes);

}  // namespace relock::profile
