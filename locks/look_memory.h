// What a thread remembers of its last contended acquisition (looks.h).
#pragma once

#include <cstdint>

namespace relock {

// All zero is a valid, empty one.
struct LookMemory {
  const void* lock = nullptr;
  std::uint64_t acquired_at = 0;  // P::ticks()
  std::uint8_t in_a_row = 0;      // times that it was back at once
  std::uint8_t slow_left = 0;     // acquisitions whose first look comes late
};

}  // namespace relock
