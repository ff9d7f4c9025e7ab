// What the machine looks like: CPUs, NUMA nodes, virtual or not; found, or stated by hand.
//
// Finding out costs start-up time, so it is done in parts: the counts and the virtual machine bit
// take one or two system calls, the nodes read one file of sysfs each and are only looked up when
// somebody asks for them (find_nodes). Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/options.h"

namespace relock {

inline constexpr int kMaxCpus = 1024;
inline constexpr int kMaxNodes = 64;

struct Topology {
  int usable_cpus = 1;  // this process may run on them
  int online_cpus = 1;
  int nodes = 1;
  bool virtual_machine = false;
  // RELOCK_TOPOLOGY=threads:N: a thread's node is its number modulo `nodes`, not its CPU's.
  bool by_thread = false;
  bool nodes_known = false;  // node_of_cpu is filled in: by find_nodes or by hand
  std::uint8_t node_of_cpu[kMaxCpus] = {};

  // The node of a CPU; 0 for one that nobody has heard of.
  int node_of(int cpu) const { return cpu >= 0 && cpu < kMaxCpus ? node_of_cpu[cpu] : 0; }
};

// What is wrong with a RELOCK_TOPOLOGY text, or null.
const char* check_topology(const char* text);

// Reads RELOCK_TOPOLOGY's text into `nodes`, `node_of_cpu` and `by_thread`; "auto" leaves the nodes
// to find_nodes. Returns null, or what is wrong with it (*topology is unchanged then).
const char* parse_topology(const char* text, Topology* topology);

// Counts CPUs, tells whether this is a virtual machine, applies RELOCK_TOPOLOGY and RELOCK_VM.
void find_topology(Topology* topology, const Options& options);

// Reads the nodes from sysfs, unless they are known already. `root` replaces
// /sys/devices/system/node in tests. Without such a tree there is one node.
void find_nodes(Topology* topology, const char* root = nullptr);

// The CPUID bit that a hypervisor sets; false where there is no such instruction.
bool hypervisor_bit();

}  // namespace relock
