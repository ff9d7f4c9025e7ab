#include "interpose/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace relock {

TickRate g_tick_rate;

#if defined(__x86_64__)

namespace {

constexpr std::int64_t kMeasuredNs = 1'000'000;

struct Reading {
  std::int64_t ns;
  std::uint64_t tsc;
  std::uint64_t width;  // in ticks: within which the two were read
};

// The narrowest of a few: a thread that loses its CPU in between reads wide.
Reading read_both() {
  Reading best{0, 0, ~std::uint64_t{0}};
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t before = __builtin_ia32_rdtsc();
    const std::int64_t ns = LinuxPlatform::now_ns();
    const std::uint64_t after = __builtin_ia32_rdtsc();
    if (after - before < best.width) best = {ns, before + (after - before) / 2, after - before};
  }
  return best;
}

// The same rate whatever the CPU's frequency and sleep states.
bool is_invariant() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

}  // namespace

// Whether the counters of all CPUs agree only the kernel knows. It has answered that if its own
// clock reads the counter without a system call, which is told by how quick it is.
void measure_tick_rate() {
  constexpr std::uint64_t kQuickNs = 100;
  if (!is_invariant()) return;
  const Reading first = read_both();
  Reading last = read_both();
  while (last.ns - first.ns < kMeasuredNs) last = read_both();
  if (last.tsc <= first.tsc) return;
  __extension__ using Wide = unsigned __int128;
  const auto passed_ns = static_cast<std::uint64_t>(last.ns - first.ns);
  const auto rate = static_cast<std::uint64_t>((Wide{passed_ns} << 32) / (last.tsc - first.tsc));
  if (static_cast<std::uint64_t>(Wide{first.width} * rate >> 32) > kQuickNs) return;
  g_tick_rate.ns_per_tick = rate;
}

#else

void measure_tick_rate() {}

#endif

}  // namespace relock
