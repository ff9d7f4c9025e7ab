// The platform's parts that need memory of this library's own: fork epoch, queue nodes, spin gates.
#include "interpose/runtime.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/memory.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/rules.h"
#include "locks/auto_ticket.h"
#include "locks/qspin_node.h"
#include "locks/spin.h"

namespace relock {

Runtime g_runtime;
LinuxAtomic32* g_epoch;

namespace {

constexpr std::uint32_t kSlots = SlotTable<LinuxPlatform>::kMaxSlots;
constexpr std::uint32_t kSpinGates = 256;
constexpr std::uint32_t kTicketQueues = 64;

// Everything here is zero again in a forked child: the kernel wipes the pages (MADV_WIPEONFORK).
struct ForkWiped {
  LinuxAtomic32 epoch;  // this process's epoch plus one; 0: not set yet
  QueueNode<LinuxPlatform> nodes[kSlots];
  SpinGate<LinuxPlatform> gates[kSpinGates];
  TicketQueue<LinuxPlatform> queues[kTicketQueues];
};

// Where threads were when they last waited for a lock: thread in the upper bits, CPU + 1 in the
// lower. Threads that hash alike overwrite each other: a hint is lost, and none is made up.
constexpr std::uint32_t kCpuNotes = 1024;
constexpr std::uint32_t kCpuBits = 12;
LinuxAtomic32 g_cpu_notes[kCpuNotes];

LinuxAtomic32& cpu_note(std::uint32_t tid) { return g_cpu_notes[tid * 0x9e3779b9u >> 22]; }
std::uint32_t note_of(std::uint32_t tid, int cpu) {
  constexpr std::uint32_t kMask = (1u << kCpuBits) - 1;
  return tid << kCpuBits | (static_cast<std::uint32_t>(cpu + 1) & kMask);
}
static_assert(kCpuNotes == 1u << (32 - 22));

ForkWiped* g_wiped;
std::ptrdiff_t g_rseq_offset;  // from the thread pointer; 0: no rseq area
LinuxAtomic32 g_kept_epoch;    // as in ForkWiped, but kept over fork: the child's is the next
SlotTable<LinuxPlatform> g_slots;
TicketQueueTable<LinuxPlatform> g_ticket_queues;

}  // namespace

// First slow path in a child: the page is blank. Any number of threads may do this at once, also in
// a signal handler: one compare-exchange decides, and the kept copy only ever gets that value.
std::uint32_t count_epoch() {
  std::uint32_t blank = 0;
  const std::uint32_t next = g_kept_epoch.load(MemoryOrder::kAcquire) + 1;
  (void)g_wiped->epoch.compare_exchange(blank, next, MemoryOrder::kAcqRel);
  const std::uint32_t now = g_wiped->epoch.load(MemoryOrder::kAcquire);
  g_kept_epoch.store(now, MemoryOrder::kRelease);
  return now - 1;
}

void map_fork_wiped_memory() {
  void* pages = mmap(nullptr, sizeof(ForkWiped), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return;  // no nodes, no gates: locks compete for their words
  (void)madvise(pages, sizeof(ForkWiped), MADV_WIPEONFORK);
  auto* wiped = static_cast<ForkWiped*>(pages);
  wiped->epoch.store(1, MemoryOrder::kRelaxed);
  g_kept_epoch.store(1, MemoryOrder::kRelaxed);
  g_slots = SlotTable<LinuxPlatform>(wiped->nodes, kSlots);
  g_ticket_queues = TicketQueueTable<LinuxPlatform>(wiped->queues, kTicketQueues);
  g_epoch = &wiped->epoch;
  __atomic_store_n(&g_wiped, wiped, __ATOMIC_RELEASE);
}

// Also covers kernels that cannot wipe: what can be told from outside is reset by hand. Runs with
// one thread only.
void after_fork_in_child() {
  if (g_runtime.mutexes_ruled) rules_after_fork();
  if (g_wiped == nullptr) return;
  if (g_wiped->epoch.load(MemoryOrder::kRelaxed) != 0) {
    for (auto& node : g_wiped->nodes) {
      if (node.borrowed.load(MemoryOrder::kRelaxed) != 0) {
        node.borrowed.store(0, MemoryOrder::kRelaxed);
      }
    }
    for (auto& gate : g_wiped->gates) {
      gate.competing.store(0, MemoryOrder::kRelaxed);
      gate.outside.store(0, MemoryOrder::kRelaxed);
    }
    for (auto& queue : g_wiped->queues) queue.lock.store(nullptr, MemoryOrder::kRelaxed);
    g_wiped->epoch.store(0, MemoryOrder::kRelaxed);
  }
  (void)LinuxPlatform::epoch();
  if (!g_runtime.recording) return;
  forget_thread_record();
  g_runtime.profiler.fork_child();
}

SlotTable<LinuxPlatform>* LinuxPlatform::slots() { return g_wiped == nullptr ? nullptr : &g_slots; }

TicketQueueTable<LinuxPlatform>* LinuxPlatform::ticket_queues() {
  return g_wiped == nullptr ? nullptr : &g_ticket_queues;
}

SpinGate<LinuxPlatform>* LinuxPlatform::spin_gate(const void* address) {
  if (g_wiped == nullptr) return nullptr;
  const auto number = reinterpret_cast<std::uintptr_t>(address) >> 2;
  return &g_wiped->gates[(number * 0x9e3779b97f4a7c15u >> 32) % kSpinGates];
}

LookMemory* LinuxPlatform::look_memory() {
  static thread_local LookMemory memory;
  return &memory;
}

BackoffTable* LinuxPlatform::backoff_table() {
  static thread_local BackoffTable table;
  return &table;
}

// The rseq area, kept by the C library: -1 where it is off or missing.
int LinuxPlatform::cpu() {
  if (g_rseq_offset == 0) return -1;
  const auto* area = reinterpret_cast<const volatile struct rseq*>(
      static_cast<const char*>(__builtin_thread_pointer()) + g_rseq_offset);
  return static_cast<int>(area->cpu_id);
}

void LinuxPlatform::note_cpu() {
  const std::uint32_t tid = thread_id();
  LinuxAtomic32& note = cpu_note(tid);
  const std::uint32_t now = note_of(tid, cpu());
  // Relaxed, as the reader: a hint that orders nothing. Mostly the same as before: no store.
  if (note.load(MemoryOrder::kRelaxed) != now) note.store(now, MemoryOrder::kRelaxed);
}

bool LinuxPlatform::was_here(std::uint32_t tid) {
  const int here = cpu();
  if (tid == 0 || here < 0) return false;
  return cpu_note(tid).load(MemoryOrder::kRelaxed) == note_of(tid, here);
}

int LinuxPlatform::node() {
  const Topology& topology = g_runtime.topology;
  if (topology.nodes <= 1) return 0;
  if (topology.by_thread)
    return static_cast<int>(slot_hint() % static_cast<unsigned>(topology.nodes));
  return topology.node_of(cpu());
}

std::uint32_t LinuxPlatform::choose(std::uint32_t n) {
  static thread_local std::uint32_t state;
  if (state == 0) state = slot_hint() | 1u;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(state) * n) >> 32);
}

// Before the offset is known, or where it cannot be: ask the kernel.
std::uint32_t thread_id_slow() {
#if defined(__x86_64__)
  long tid;
  __asm__ volatile("syscall" : "=a"(tid) : "a"(SYS_gettid) : "rcx", "r11", "memory");
  return static_cast<std::uint32_t>(tid);
#else
  return static_cast<std::uint32_t>(gettid());
#endif
}

// Looked up rather than linked to: they belong to the dynamic linker, which must not become a
// dependency of its own.
void find_rseq() {
  const auto* offset = static_cast<const std::ptrdiff_t*>(dlsym(RTLD_NEXT, "__rseq_offset"));
  const auto* size = static_cast<const unsigned*>(dlsym(RTLD_NEXT, "__rseq_size"));
  if (offset != nullptr && size != nullptr && *size != 0) g_rseq_offset = *offset;
}

// glibc describes its thread descriptor to debuggers: {bits, count, offset} of the field `tid`.
// Believed only if it holds what the kernel says.
void find_thread_id() {
#if defined(__x86_64__)
  const auto* field = static_cast<const std::uint32_t*>(dlsym(RTLD_NEXT, "_thread_db_pthread_tid"));
  if (field == nullptr || field[0] != 32 || field[2] == 0) return;
  std::uint32_t tid;
  __asm__("movl %%fs:(%1), %0" : "=r"(tid) : "r"(static_cast<std::uint64_t>(field[2])));
  if (tid == thread_id_slow()) g_runtime.tid_offset = field[2];
#endif
}

}  // namespace relock
