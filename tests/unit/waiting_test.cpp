// policy/waiting: from the settings to the limits that waiters obey.
#include "policy/waiting.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace relock {
namespace {

std::map<std::string, std::string> variables;

Budget budget_with(std::map<std::string, std::string> environment, int cpus = 4) {
  variables = std::move(environment);
  Options options;
  load_options(
      &options,
      [](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      [](const char* line) { FAIL(line); });
  Topology topology;
  find_topology(&topology, options);
  topology.usable_cpus = cpus;
  return budget_for(options, topology, options.wait);
}

TEST_CASE("waiting: the defaults are those of the budget", "[unit]") {
  const Budget budget = budget_with({});
  const Budget plain;
  CHECK(budget.mode == WaitMode::kAdaptive);
  CHECK(budget.spin_pauses == plain.spin_pauses);
  CHECK(budget.promote_ns == plain.promote_ns);
  CHECK(budget.promoted_pauses == plain.promoted_pauses);
  CHECK(budget.courtesy_ns == plain.courtesy_ns);
  CHECK(budget.spin_before_nap_ns == plain.spin_before_nap_ns);
  CHECK(budget.nap_ns == plain.nap_ns);
  CHECK(budget.nap_max_ns == plain.nap_max_ns);
  CHECK(budget.local_hand_offs == plain.local_hand_offs);
  CHECK(budget.lost_rounds == plain.lost_rounds);
}

TEST_CASE("waiting: each variable reaches its limit, in its unit", "[unit]") {
  CHECK(budget_with({{"RELOCK_SPIN_PAUSES", "11"}}).spin_pauses == 11);
  CHECK(budget_with({{"RELOCK_LOOK_PAUSES", "12"}}).look_pauses == 12);
  CHECK(budget_with({{"RELOCK_LOOK_STEP", "13"}}).look_step == 13);
  CHECK(budget_with({{"RELOCK_PROMOTE_US", "14"}}).promote_ns == 14'000);
  CHECK(budget_with({{"RELOCK_PROMOTE_ALONE", "3"}}).promotions_alone == 3);
  CHECK(budget_with({{"RELOCK_ASK_PAUSES", "15"}}).promoted_pauses == 15);
  CHECK(budget_with({{"RELOCK_ASKS_IN_VAIN", "4"}}).asks_in_vain == 4);
  CHECK(budget_with({{"RELOCK_COURTESY_US", "16"}}).courtesy_ns == 16'000);
  CHECK(budget_with({{"RELOCK_SPIN_BEFORE_NAP_US", "17"}}).spin_before_nap_ns == 17'000);
  CHECK(budget_with({{"RELOCK_NAP_US", "18"}}).nap_ns == 18'000);
  CHECK(budget_with({{"RELOCK_NAP_MAX_US", "190"}}).nap_max_ns == 190'000);
  CHECK(budget_with({{"RELOCK_PV_ROUNDS", "20"}}).lost_rounds == 20);
  CHECK(budget_with({{"RELOCK_CNA_LOCAL", "21"}}).local_hand_offs == 21);
}

TEST_CASE("waiting: the longest nap is never shorter than the first", "[unit]") {
  const Budget longer = budget_with({{"RELOCK_NAP_US", "9000"}});
  CHECK(longer.nap_ns == 9'000'000);
  CHECK(longer.nap_max_ns == 9'000'000);
  const Budget shorter = budget_with({{"RELOCK_NAP_MAX_US", "1"}});
  CHECK(shorter.nap_ns == 50'000);
  CHECK(shorter.nap_max_ns == 50'000);
}

TEST_CASE("waiting: the gate's width follows the CPUs unless it is given", "[unit]") {
  CHECK(budget_with({}, 1).admitted_limit == 1);
  CHECK(budget_with({}, 2).admitted_limit == 1);
  CHECK(budget_with({}, 8).admitted_limit == 7);
  CHECK(budget_with({}, 200).admitted_limit == 24);
  CHECK(budget_with({{"RELOCK_ADMITTED", "3"}}, 200).admitted_limit == 3);
}

TEST_CASE("waiting: with one CPU nobody pauses for an owner that cannot run", "[unit]") {
  CHECK(budget_with({}, 1).mode == WaitMode::kPark);
  CHECK(budget_with({}, 1).spin_before_nap_ns == 0);
  CHECK(budget_with({{"RELOCK_WAIT", "spin"}}, 1).mode == WaitMode::kSpin);
}

TEST_CASE("waiting: a virtual machine has the short delays of ticket-backoff", "[unit]") {
  CHECK(budget_with({{"RELOCK_VM", "yes"}}).backoff_units == 16);
  CHECK(budget_with({{"RELOCK_VM", "no"}}).backoff_units == 16000);
  CHECK(budget_with({}).backoff_units == (hypervisor_bit() ? 16u : 16000u));
  CHECK(Budget::kMostBackoffUnits == 16000);
  CHECK(Budget::kMostBackoffUnitsInVm == 16);
}

}  // namespace
}  // namespace relock
