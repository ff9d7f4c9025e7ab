// Limits that the waiting code obeys. A plain struct: policy/ fills it, locks/ reads it.
#pragma once

#include <cstdint>

namespace relock {

// How a waiter that cannot have the lock yet spends its time.
enum class WaitMode : std::uint8_t {
  kSpin,      // pause only; after a millisecond short timed naps
  kPark,      // sleep in the kernel at once
  kAdaptive,  // pause for a learned budget, then sleep
};

struct Budget {
  WaitMode mode = WaitMode::kAdaptive;
  // Pauses an admitted waiter spends before it sleeps, when nothing has been learned yet.
  std::uint32_t spin_pauses = 200;
  // Pauses a newcomer spends looking before it joins the waiters, and the most between two looks.
  std::uint32_t look_pauses = 0;
  std::uint32_t look_step = 48;
  // Waiters that may compete for one lock word at a time; the rest sleep at the gate. At least 1.
  std::uint32_t admitted_limit = 1;
  // A thread sleeping at the gate lets itself in after this long times its place in line.
  std::uint64_t promote_ns = 500'000;
  // In place of its place in line, for one that is alone there: the next release wakes it anyway,
  // and where timers are set by a hypervisor, one that is set late costs several microseconds less.
  std::uint32_t promotions_alone = 16;
  // Pauses that one of them spends, where order is not kept, on asking for the next release.
  std::uint32_t promoted_pauses = 2500;
  // How often it does so in vain before newcomers are asked to let it go first, and how long one
  // of them then leaves a free lock alone.
  std::uint32_t asks_in_vain = 2;
  std::uint64_t courtesy_ns = 200'000;
  // How long a waiter that nobody will wake pauses before it naps; 0 where the owner cannot run
  // meanwhile.
  std::int64_t spin_before_nap_ns = 1'000'000;
  // First nap of a waiter that nobody will wake (spinlocks, spin mode), and the longest one.
  std::uint64_t nap_ns = 50'000;
  std::uint64_t nap_max_ns = 4'000'000;
  // cna: consecutive hand-offs inside a NUMA node before waiters of other nodes are served.
  std::uint32_t local_hand_offs = 65536;
  // pv-qspinlock: how often a halted queue head may find the lock stolen before nobody passes it.
  std::uint32_t lost_rounds = 8;
  // ticket-backoff: the longest delay for each ticket ahead, in pauses (backoff.h says why).
  static constexpr std::uint32_t kMostBackoffUnits = 16000;   // on bare metal
  static constexpr std::uint32_t kMostBackoffUnitsInVm = 16;  // in a virtual machine
  std::uint32_t backoff_units = kMostBackoffUnits;
};

}  // namespace relock
