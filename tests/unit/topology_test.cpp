// policy/topology: RELOCK_TOPOLOGY's grammar, nodes read from trees made up here.

#include "policy/topology.h"
#include "policy/auto_lock.h"

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace {

using relock::Options;
using relock::Topology;
using relock::VmMode;

// A directory like /sys/devices/system/node, gone at the end of its scope.
class FakeTree {
 public:
  explicit FakeTree(const std::map<std::string, std::string>& files) {
    char name[] = "/tmp/relock-topology.XXXXXX";
    root_ = mkdtemp(name);
    for (const auto& [path, text] : files) {
      const std::filesystem::path file = std::filesystem::path(root_) / path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file) << text;
    }
  }
  ~FakeTree() { std::filesystem::remove_all(root_); }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const char* root() const { return root_.c_str(); }

 private:
  std::string root_;
};

Topology with_nodes(const std::map<std::string, std::string>& files) {
  FakeTree tree(files);
  Topology topology;
  relock::find_nodes(&topology, tree.root());
  return topology;
}

TEST_CASE("topology: one comma part is one node", "[unit]") {
  Topology topology;
  REQUIRE(relock::parse_topology("0-3,4-7", &topology) == nullptr);
  CHECK(topology.nodes == 2);
  CHECK(topology.nodes_known);
  CHECK_FALSE(topology.by_thread);
  CHECK(topology.node_of(0) == 0);
  CHECK(topology.node_of(3) == 0);
  CHECK(topology.node_of(4) == 1);
  CHECK(topology.node_of(7) == 1);
  CHECK(topology.node_of(8) == 0);
  CHECK(topology.node_of(-1) == 0);
  CHECK(topology.node_of(1 << 20) == 0);
}

TEST_CASE("topology: plus joins ranges of one node", "[unit]") {
  Topology topology;
  REQUIRE(relock::parse_topology("0-1+4-5,2+3,6", &topology) == nullptr);
  CHECK(topology.nodes == 3);
  const int expected[] = {0, 0, 1, 1, 0, 0, 2};
  for (int cpu = 0; cpu < 7; ++cpu) {
    INFO("cpu " << cpu);
    CHECK(topology.node_of(cpu) == expected[cpu]);
  }
}

TEST_CASE("topology: threads can be dealt over nodes", "[unit]") {
  Topology topology;
  REQUIRE(relock::parse_topology("threads:4", &topology) == nullptr);
  CHECK(topology.by_thread);
  CHECK(topology.nodes == 4);
}

TEST_CASE("auto: cna on several nodes of bare metal, else tas", "[unit]") {
  Topology topology;
  CHECK(relock::choose_auto_lock(topology).kind == relock::LockKind::kTas);
  REQUIRE(relock::parse_topology("0-3,4-7", &topology) == nullptr);
  CHECK(relock::choose_auto_lock(topology).kind == relock::LockKind::kCna);
  topology.virtual_machine = true;
  CHECK(relock::choose_auto_lock(topology).kind == relock::LockKind::kTas);
  CHECK(std::string(relock::choose_auto_lock(topology).reason) == "a virtual machine");
}

TEST_CASE("topology: auto leaves the nodes to be found", "[unit]") {
  Topology topology;
  REQUIRE(relock::parse_topology("auto", &topology) == nullptr);
  CHECK_FALSE(topology.nodes_known);
}

TEST_CASE("topology: bad texts are refused and change nothing", "[unit]") {
  for (const char* text : {"",
                           ",",
                           "0,",
                           ",0",
                           "0-",
                           "-3",
                           "3-0",
                           "0-3,3-5",
                           "0,0",
                           "0+0",
                           "0+",
                           "a",
                           "0-3;4-7",
                           "0 ,1",
                           "threads:",
                           "threads:0",
                           "threads:65",
                           "threads:2x",
                           "threads",
                           "thread:2",
                           "Auto",
                           "1024",
                           "0-99999999999",
                           "auto,0"}) {
    INFO(text);
    Topology topology;
    CHECK(relock::check_topology(text) != nullptr);
    CHECK(relock::parse_topology(text, &topology) != nullptr);
    CHECK(topology.nodes == 1);
    CHECK_FALSE(topology.nodes_known);
  }
}

TEST_CASE("topology: the number of nodes is bounded", "[unit]") {
  std::string text = "0";
  for (int cpu = 1; cpu < relock::kMaxNodes; ++cpu) text += "," + std::to_string(cpu);
  Topology topology;
  REQUIRE(relock::parse_topology(text.c_str(), &topology) == nullptr);
  CHECK(topology.nodes == relock::kMaxNodes);
  CHECK(topology.node_of(63) == 63);
  CHECK(relock::check_topology((text + ",64").c_str()) != nullptr);
}

TEST_CASE("topology: nodes come from sysfs", "[unit]") {
  const Topology topology = with_nodes({{"online", "0-1\n"},
                                        {"has_cpu", "0-1\n"},
                                        {"node0/cpulist", "0-1,4-5\n"},
                                        {"node1/cpulist", "2-3,6-7\n"}});
  CHECK(topology.nodes == 2);
  CHECK(topology.node_of(1) == 0);
  CHECK(topology.node_of(4) == 0);
  CHECK(topology.node_of(2) == 1);
  CHECK(topology.node_of(7) == 1);
}

TEST_CASE("topology: gaps and nodes of memory alone do not count", "[unit]") {
  const Topology topology = with_nodes({{"online", "0,2-4\n"},
                                        {"node0/cpulist", "0\n"},
                                        {"node2/cpulist", "\n"},
                                        {"node3/cpulist", "1-2\n"},
                                        {"node4/cpulist", "\n"}});
  CHECK(topology.nodes == 2);
  CHECK(topology.node_of(0) == 0);
  CHECK(topology.node_of(1) == 1);
  CHECK(topology.node_of(2) == 1);
}

TEST_CASE("topology: a missing, empty or strange tree is one node", "[unit]") {
  Topology nowhere;
  relock::find_nodes(&nowhere, "/nonexistent/tree");
  CHECK(nowhere.nodes == 1);
  CHECK(with_nodes({{"online", ""}}).nodes == 1);
  CHECK(with_nodes({{"online", "what\n"}}).nodes == 1);
  CHECK(with_nodes({{"online", "0-1\n"}}).nodes == 1);
  CHECK(with_nodes({{"online", "0\n"}, {"node0/cpulist", "0-5000\n"}}).node_of(1023) == 0);
}

TEST_CASE("topology: a layout given by hand is not overwritten by the machine's", "[unit]") {
  FakeTree tree({{"online", "0\n"}, {"node0/cpulist", "0-7\n"}});
  Topology topology;
  REQUIRE(relock::parse_topology("0,1", &topology) == nullptr);
  relock::find_nodes(&topology, tree.root());
  CHECK(topology.nodes == 2);
  CHECK(topology.node_of(1) == 1);
}

TEST_CASE("topology: usable CPUs follow the affinity mask", "[unit]") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  Topology topology;
  relock::find_topology(&topology, Options{});
  CHECK(topology.usable_cpus == CPU_COUNT(&before));
  CHECK(topology.online_cpus == sysconf(_SC_NPROCESSORS_ONLN));
  CHECK_FALSE(topology.nodes_known);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  relock::find_topology(&topology, Options{});
  CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(topology.usable_cpus == 1);
}

TEST_CASE("topology: RELOCK_VM overrules what CPUID says", "[unit]") {
  Topology topology;
  Options options;
  options.vm = VmMode::kYes;
  relock::find_topology(&topology, options);
  CHECK(topology.virtual_machine);
  options.vm = VmMode::kNo;
  relock::find_topology(&topology, options);
  CHECK_FALSE(topology.virtual_machine);
  options.vm = VmMode::kAuto;
  relock::find_topology(&topology, options);
  CHECK(topology.virtual_machine == relock::hypervisor_bit());
}

#if defined(__x86_64__)
TEST_CASE("topology: the hypervisor bit agrees with the kernel's view of the CPU", "[unit]") {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  bool flagged = false;
  bool seen = false;
  while (std::getline(cpuinfo, line)) {
    if (line.rfind("flags", 0) != 0) continue;
    seen = true;
    flagged = line.find(" hypervisor") != std::string::npos;
  }
  if (seen) CHECK(relock::hypervisor_bit() == flagged);
}
#endif

}  // namespace
