// What a run of cases has seen, summed over the processes that share the work.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "case.h"

namespace relock::explore {

// Lies in memory that all workers share.
struct Totals {
  std::atomic<std::uint32_t> next_case;
  std::atomic<std::uint32_t> ran;
  std::atomic<std::uint32_t> failed;
  std::atomic<std::uint32_t> unfinished;
  std::atomic<std::uint64_t> executions;
  std::atomic<std::uint64_t> states;
};

// One line about everything that was explored.
std::string describe(const Totals& totals, double seconds, int workers);

// Planted bugs for each lock of the family and the condition variable, e.g. "tas 12, ticket 13".
// Empty `missing`: there are enough of them, and no lock is without.
struct PlantedCount {
  int all = 0;
  std::string by_lock;
  std::string missing;
};
PlantedCount count_planted(const std::vector<Case>& cases);

}  // namespace relock::explore
