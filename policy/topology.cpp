#include "policy/topology.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace relock {

namespace {

// Lists like "0-3,8" as sysfs and RELOCK_TOPOLOGY write them, read one piece at a time.
class ListReader {
 public:
  explicit ListReader(const char* text) : at_(text) {}

  bool number(int* value) {
    if (*at_ < '0' || *at_ > '9') return false;
    int sum = 0;
    for (; *at_ >= '0' && *at_ <= '9'; ++at_) {
      if (sum < 1'000'000) sum = sum * 10 + (*at_ - '0');
    }
    *value = sum;
    return true;
  }

  bool range(int* first, int* last) {
    if (!number(first)) return false;
    *last = *first;
    return !skip('-') || (number(last) && *last >= *first);
  }

  bool skip(char c) {
    if (*at_ != c) return false;
    ++at_;
    return true;
  }

  bool at_end() const { return *at_ == '\0' || *at_ == '\n'; }

 private:
  const char* at_;
};

struct CpuSet {
  bool claim(int cpu) {
    std::uint64_t& word = words[cpu / 64];
    const std::uint64_t bit = std::uint64_t{1} << (cpu % 64);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }
  std::uint64_t words[kMaxCpus / 64] = {};
};

// Walks a node list such as 0-1+4-5,2-3. With `topology` null it is only checked.
const char* read_node_list(const char* text, Topology* topology) {
  ListReader list(text);
  CpuSet claimed;
  int node = 0;
  do {
    if (node == kMaxNodes) return "more than 64 nodes";
    do {
      int first = 0;
      int last = 0;
      if (!list.range(&first, &last)) return "not a list of CPUs by node";
      if (last >= kMaxCpus) return "a CPU number above 1023";
      for (int cpu = first; cpu <= last; ++cpu) {
        if (!claimed.claim(cpu)) return "a CPU in two nodes";
        if (topology != nullptr) topology->node_of_cpu[cpu] = static_cast<std::uint8_t>(node);
      }
    } while (list.skip('+'));
    ++node;
  } while (list.skip(','));
  if (!list.at_end()) return "not a list of CPUs by node";
  if (topology != nullptr) topology->nodes = node;
  return nullptr;
}

constexpr char kThreadsPrefix[] = "threads:";

const char* read_thread_count(const char* text, int* nodes) {
  ListReader list(text);
  if (!list.number(nodes) || !list.at_end()) return "threads: without a number of nodes";
  if (*nodes < 1 || *nodes > kMaxNodes) return "threads: takes 1 to 64 nodes";
  return nullptr;
}

// The first line of root/name, or false. Raw system calls: this runs before main.
bool read_line(const char* root, const char* name, char* line, std::size_t size) {
  LineBuffer path;
  path.add(root);
  path.add("/");
  path.add(name);
  const int file = open(path.data, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, line, size - 1);
  close(file);
  if (got <= 0) return false;
  line[got] = '\0';
  return true;
}

// Puts the CPUs of root/node<id>/cpulist on node `index`. False when it has none or is unreadable.
bool read_node(const char* root, int id, int index, Topology* topology) {
  LineBuffer name;
  name.add("node");
  name.add_number(static_cast<std::uint64_t>(id));
  name.add("/cpulist");
  char line[1024];
  if (!read_line(root, name.data, line, sizeof line)) return false;
  ListReader list(line);
  bool any = false;
  int first = 0;
  int last = 0;
  while (!list.at_end() && list.range(&first, &last)) {
    for (int cpu = first; cpu <= last && cpu < kMaxCpus; ++cpu) {
      topology->node_of_cpu[cpu] = static_cast<std::uint8_t>(index);
      any = true;
    }
    list.skip(',');
  }
  return any;
}

}  // namespace

const char* check_topology(const char* text) {
  int nodes = 0;
  if (strcmp(text, "auto") == 0) return nullptr;
  if (strncmp(text, kThreadsPrefix, sizeof kThreadsPrefix - 1) == 0) {
    return read_thread_count(text + sizeof kThreadsPrefix - 1, &nodes);
  }
  return read_node_list(text, nullptr);
}

const char* parse_topology(const char* text, Topology* topology) {
  const char* wrong = check_topology(text);
  if (wrong != nullptr || strcmp(text, "auto") == 0) return wrong;
  topology->by_thread = strncmp(text, kThreadsPrefix, sizeof kThreadsPrefix - 1) == 0;
  topology->nodes_known = true;
  memset(topology->node_of_cpu, 0, sizeof topology->node_of_cpu);
  if (topology->by_thread) {
    return read_thread_count(text + sizeof kThreadsPrefix - 1, &topology->nodes);
  }
  return read_node_list(text, topology);
}

bool hypervisor_bit() {
#if defined(__x86_64__) || defined(__i386__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 31) != 0;
#else
  return false;
#endif
}

void find_topology(Topology* topology, const Options& options) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  topology->online_cpus = online > 0 ? static_cast<int>(online) : 1;
  // Fails only on machines with more CPUs than a cpu_set_t holds; then all of them count.
  const bool known = sched_getaffinity(0, sizeof usable, &usable) == 0;
  topology->usable_cpus = known ? CPU_COUNT(&usable) : topology->online_cpus;
  topology->virtual_machine =
      options.vm == VmMode::kAuto ? hypervisor_bit() : options.vm == VmMode::kYes;
  parse_topology(options.topology.c_str(), topology);
}

void find_nodes(Topology* topology, const char* root) {
  if (topology->nodes_known) return;
  topology->nodes_known = true;
  if (root == nullptr) root = "/sys/devices/system/node";
  char line[256];
  if (!read_line(root, "has_cpu", line, sizeof line) &&
      !read_line(root, "online", line, sizeof line)) {
    return;
  }
  // Node numbers may have gaps and memory without CPUs: ours count nodes with CPUs from 0.
  ListReader list(line);
  int found = 0;
  int first = 0;
  int last = 0;
  while (!list.at_end() && list.range(&first, &last)) {
    for (int id = first; id <= last && found < kMaxNodes; ++id) {
      if (read_node(root, id, found, topology)) ++found;
    }
    list.skip(',');
  }
  topology->nodes = found > 0 ? found : 1;
}

}  // namespace relock
