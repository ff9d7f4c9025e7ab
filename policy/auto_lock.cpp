#include "policy/auto_lock.h"

namespace relock {

AutoChoice choose_auto_lock(const Topology& topology) {
  if (topology.nodes <= 1) return {LockKind::kTas, "one NUMA node"};
  // The host moves virtual CPUs about: a node that a thread saw a moment ago says little, and a
  // queue behind a virtual CPU that is not running stands still.
  if (topology.virtual_machine) return {LockKind::kTas, "a virtual machine"};
  return {LockKind::kCna, "several NUMA nodes"};
}

}  // namespace relock
