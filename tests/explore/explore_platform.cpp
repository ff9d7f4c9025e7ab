#include "explore_platform.h"

namespace relock::explore {

namespace {

World& world() { return *World::active; }

}  // namespace

std::uint64_t MutableCell::load(const void* cell, int bytes, MemoryOrder order) {
  if (mutation == nullptr) return world().load(cell, bytes, order);
  return mutation->loaded(cell, world().load(cell, bytes, mutation->order(cell, order)));
}

void MutableCell::store(void* cell, int bytes, std::uint64_t value, bool low_byte,
                        MemoryOrder order) {
  if (mutation != nullptr) order = mutation->order(cell, order);
  world().store(cell, bytes, value, low_byte, order);
}

std::uint64_t MutableCell::update(void* cell, int bytes, Update how, std::uint64_t operand,
                                  MemoryOrder order) {
  if (mutation != nullptr) {
    mutation->before_change(cell);
    order = mutation->order(cell, order);
    if (mutation->drops_update(cell, how)) return world().load(cell, bytes, order);
    if (how == Update::kExchange && mutation->splits_exchange(cell)) {
      const std::uint64_t old = world().load(cell, bytes, order);
      world().store(cell, bytes, operand, false, order);
      return old;
    }
  }
  return world().update(cell, bytes, how, operand, order);
}

bool MutableCell::compare_exchange(void* cell, int bytes, std::uint64_t& expected,
                                   std::uint64_t desired, MemoryOrder order) {
  if (mutation != nullptr) {
    mutation->before_change(cell);
    order = mutation->order(cell, order);
    desired = mutation->desired(cell, expected, desired);
    if (mutation->splits_compare_exchange(cell, expected, desired)) {
      const std::uint64_t old = world().load(cell, bytes, order);
      const bool same = old == expected;
      if (same) world().store(cell, bytes, desired, false, order);
      expected = old;
      return same;
    }
  }
  return world().compare_exchange(cell, bytes, expected, desired, order);
}

}  // namespace relock::explore
