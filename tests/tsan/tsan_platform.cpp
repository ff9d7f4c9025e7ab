// The parts of the production platform that its user supplies (interpose/runtime.cpp in
// production), without forks and with small tables, so that they are used up at times.
#include <ctime>

#include "locks/auto_ticket.h"
#include "locks/linux_platform.h"
#include "locks/qspin_node.h"
#include "locks/spin.h"

namespace relock {

namespace {

constexpr std::uint32_t kSlots = 6;
QueueNode<LinuxPlatform> g_nodes[kSlots];
SlotTable<LinuxPlatform> g_slots(g_nodes, kSlots);
TicketQueue<LinuxPlatform> g_queues[2];
TicketQueueTable<LinuxPlatform> g_ticket_queues(g_queues, 2);
SpinGate<LinuxPlatform> g_gates[4];

}  // namespace

int LinuxPlatform::cpu() { return -1; }
int LinuxPlatform::node() { return static_cast<int>(slot_hint() % 2); }

std::uint32_t LinuxPlatform::choose(std::uint32_t n) {
  static thread_local std::uint32_t state = slot_hint() | 1u;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % n;
}

std::uint32_t LinuxPlatform::epoch() { return 0; }
void LinuxPlatform::note_cpu() {}
bool LinuxPlatform::was_here(std::uint32_t) { return false; }

LookMemory* LinuxPlatform::look_memory() {
  static thread_local LookMemory memory;
  return &memory;
}

BackoffTable* LinuxPlatform::backoff_table() {
  static thread_local BackoffTable table;
  return &table;
}
SlotTable<LinuxPlatform>* LinuxPlatform::slots() { return &g_slots; }
TicketQueueTable<LinuxPlatform>* LinuxPlatform::ticket_queues() { return &g_ticket_queues; }
SpinGate<LinuxPlatform>* LinuxPlatform::spin_gate(const void* address) {
  return &g_gates[(reinterpret_cast<std::uintptr_t>(address) >> 6) % 4];
}

}  // namespace relock
