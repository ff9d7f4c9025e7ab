// Mixing of 64-bit values into state keys.
#pragma once

#include <cstdint>

namespace relock::explore {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
  x ^= x >> 32;
  x *= 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 29);
}

}  // namespace relock::explore
