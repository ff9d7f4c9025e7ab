// What RELOCK_LOCK=auto means on this machine.
#pragma once

#include "policy/options.h"
#include "policy/topology.h"

namespace relock {

struct AutoChoice {
  LockKind kind;
  const char* reason;  // a few words, for RELOCK_VERBOSE
};

// `tas` behind the gate, which falls back to what the C library does when spinning does not pay,
// and which survives waiters that vanish; with several NUMA nodes and the CPUs to itself, `cna`.
// Everything else is tuned per lock while the program runs (locks/allowance.h, locks/gate.h).
// `topology` must know its nodes, unless it is a virtual machine's.
AutoChoice choose_auto_lock(const Topology& topology);

}  // namespace relock
