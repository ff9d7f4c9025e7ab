#include "policy/waiting.h"

namespace relock {

namespace {

constexpr std::uint64_t kNsPerUs = 1000;

// One waiter beside the owner for each CPU, unless RELOCK_ADMITTED says otherwise.
std::uint32_t admitted_limit(const Options& options, const Topology& topology) {
  constexpr int kMost = 24;  // a ticket lock has 31 tickets
  if (options.admitted != 0) return options.admitted;
  const int by_cpus = topology.usable_cpus - 1;
  if (by_cpus < 1) return 1;
  return static_cast<std::uint32_t>(by_cpus > kMost ? kMost : by_cpus);
}

}  // namespace

Budget budget_for(const Options& options, const Topology& topology, WaitMode mode) {
  Budget budget;
  budget.mode = mode;
  budget.spin_pauses = options.spin_pauses;
  budget.look_pauses = options.look_pauses;
  budget.look_step = options.look_step;
  budget.promote_ns = options.promote_us * kNsPerUs;
  budget.promotions_alone = options.promote_alone;
  budget.promoted_pauses = options.ask_pauses;
  budget.asks_in_vain = options.asks_in_vain;
  budget.courtesy_ns = options.courtesy_us * kNsPerUs;
  budget.spin_before_nap_ns = static_cast<std::int64_t>(options.spin_before_nap_us * kNsPerUs);
  budget.nap_ns = options.nap_us * kNsPerUs;
  budget.nap_max_ns = options.nap_max_us * kNsPerUs;
  if (budget.nap_max_ns < budget.nap_ns) budget.nap_max_ns = budget.nap_ns;
  budget.lost_rounds = options.pv_rounds;
  budget.local_hand_offs = options.cna_local;
  budget.admitted_limit = admitted_limit(options, topology);
  budget.backoff_units =
      topology.virtual_machine ? Budget::kMostBackoffUnitsInVm : Budget::kMostBackoffUnits;
  // With one CPU the owner cannot run while a waiter pauses.
  if (topology.usable_cpus == 1) {
    if (budget.mode == WaitMode::kAdaptive) budget.mode = WaitMode::kPark;
    budget.spin_before_nap_ns = 0;
  }
  return budget;
}

}  // namespace relock
