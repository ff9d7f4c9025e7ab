// Cases of the explorer's test program, and how they are run and reported.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "explorer.h"

namespace relock::explore {

enum class Expect {
  kPass,     // every schedule within the bounds passes
  kFailure,  // a bug is planted: some schedule must fail, with `reason` in its report
};

struct Case {
  std::string name;
  Program program;
  Bounds bounds;
  Expect expect = Expect::kPass;
  std::string reason;
  bool slow = false;   // only with SLOW=1 or RELOCK_EXPLORE_DEEP=1
  bool whole = false;  // never cut off, in make test neither
};

// With SLOW=1 or RELOCK_EXPLORE_DEEP=1 the bounds are wider.
bool deep();

// Each file of cases adds its own.
void add_explorer_cases(std::vector<Case>& cases);
void add_lock_cases(std::vector<Case>& cases);
void add_order_cases(std::vector<Case>& cases);
void add_bound_cases(std::vector<Case>& cases);
void add_weak_cases(std::vector<Case>& cases);
void add_condvar_cases(std::vector<Case>& cases);
void add_rwsem_cases(std::vector<Case>& cases);
void add_planted_lock_cases(std::vector<Case>& cases);
void add_planted_rwsem_cases(std::vector<Case>& cases);
void add_planted_condvar_cases(std::vector<Case>& cases);

}  // namespace relock::explore
