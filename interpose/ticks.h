// A clock for durations, cheaper than CLOCK_MONOTONIC where the processor's counter can be used.
#pragma once

#include <cstdint>

#include "locks/linux_platform.h"

namespace relock {

struct TickRate {
  std::uint64_t ns_per_tick = 0;  // 32 fractional bits; 0: ticks are nanoseconds of the clock
};
extern TickRate g_tick_rate;

// Takes about a millisecond.
void measure_tick_rate();

// Later minus earlier, given to ticks_to_ns, is the time between.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  if (__builtin_expect(g_tick_rate.ns_per_tick != 0, true)) return __builtin_ia32_rdtsc();
#endif
  return static_cast<std::uint64_t>(LinuxPlatform::now_ns());
}

inline std::uint64_t ticks_to_ns(std::uint64_t earlier, std::uint64_t later) {
  if (later <= earlier) return 0;
  const std::uint64_t passed = later - earlier;
  if (g_tick_rate.ns_per_tick == 0) return passed;
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{passed} * g_tick_rate.ns_per_tick >> 32);
}

}  // namespace relock
