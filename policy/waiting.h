// The limits that waiters obey, from the settings and the machine.
#pragma once

#include "locks/budget.h"
#include "policy/options.h"
#include "policy/topology.h"

namespace relock {

// The budget of a lock whose waiters wait in this mode. A longest nap that is shorter than the
// first one counts as long as it.
Budget budget_for(const Options& options, const Topology& topology, WaitMode mode);

}  // namespace relock
