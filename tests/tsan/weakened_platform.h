// The production platform with every release on a 32-bit cell taken away: a bug on purpose, which
// the sanitizer must report.
#pragma once

#include "locks/linux_platform.h"
#include "locks/qspin_node.h"
#include "locks/spin.h"

namespace relock {

class WeakenedAtomic32 : public LinuxAtomic32 {
 public:
  void store(std::uint32_t value, MemoryOrder order) {
    LinuxAtomic32::store(value, weakened(order));
  }
  std::uint32_t exchange(std::uint32_t value, MemoryOrder order) {
    return LinuxAtomic32::exchange(value, weakened(order));
  }
  bool compare_exchange(std::uint32_t& expected, std::uint32_t desired, MemoryOrder success) {
    return LinuxAtomic32::compare_exchange(expected, desired, weakened(success));
  }
  std::uint32_t fetch_add(std::uint32_t operand, MemoryOrder order) {
    return LinuxAtomic32::fetch_add(operand, weakened(order));
  }
  std::uint32_t fetch_sub(std::uint32_t operand, MemoryOrder order) {
    return LinuxAtomic32::fetch_sub(operand, weakened(order));
  }
  std::uint32_t fetch_or(std::uint32_t operand, MemoryOrder order) {
    return LinuxAtomic32::fetch_or(operand, weakened(order));
  }
  std::uint32_t fetch_and(std::uint32_t operand, MemoryOrder order) {
    return LinuxAtomic32::fetch_and(operand, weakened(order));
  }
  void store_low_byte(std::uint8_t value, MemoryOrder order) {
    LinuxAtomic32::store_low_byte(value, weakened(order));
  }

 private:
  static MemoryOrder weakened(MemoryOrder order) {
    if (order == MemoryOrder::kRelease) return MemoryOrder::kRelaxed;
    return order == MemoryOrder::kAcqRel ? MemoryOrder::kAcquire : order;
  }
};

struct WeakenedPlatform : LinuxPlatform {
  using Atomic32 = WeakenedAtomic32;

  static SlotTable<WeakenedPlatform>* slots() {
    static QueueNode<WeakenedPlatform> nodes[6];
    static SlotTable<WeakenedPlatform> table(nodes, 6);
    return &table;
  }
  static SpinGate<WeakenedPlatform>* spin_gate(const void*) { return nullptr; }
};

}  // namespace relock
