// The Platform (locks/platform.h) under the explorer: every operation is a step of the model.
//
// Mutations are how bugs are planted without copying a lock: a mutation changes what some operation
// does, and the scenarios must notice.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "explorer.h"
#include "locks/backoff.h"
#include "locks/look_memory.h"
#include "locks/platform.h"
#include "world.h"

namespace relock {
template <class P>
class SlotTable;
template <class P>
struct SpinGate;
template <class P>
class TicketQueueTable;
}  // namespace relock

namespace relock::explore {

// What a model thread may be told about its machine, set up per scenario.
struct Machine {
  int cpu[kMaxThreads] = {0, 1, 2, 3, 4, 5};
  int node[kMaxThreads] = {};
  std::uint32_t slot_hint[kMaxThreads] = {0, 1, 2, 3, 4, 5};
  bool cpus_are_shared = false;  // an owner may have been seen on its waiter's CPU
  // The thread that may get a signal while it waits, and what its handler does.
  int interrupted = -1;
  std::function<void()> handler;
};
inline Machine machine;

// A planted bug: overrides the operations that it gets wrong. Set by a program's setup.
class Mutation {
 public:
  virtual ~Mutation() = default;
  virtual bool drops_wake(const void* /*address*/, std::uint32_t /*bits*/) { return false; }
  virtual bool drops_update(const void* /*cell*/, Update) { return false; }
  // Does the read-modify-write in two steps, a load and a store.
  virtual bool splits_exchange(const void* /*cell*/) { return false; }
  virtual bool splits_compare_exchange(const void*, std::uint64_t /*old*/, std::uint64_t /*now*/) {
    return false;
  }
  virtual std::uint64_t desired(const void*, std::uint64_t /*old*/, std::uint64_t now) {
    return now;
  }
  virtual std::uint64_t loaded(const void* /*cell*/, std::uint64_t value) { return value; }
  // Runs before a read-modify-write, as if what comes after it had come first.
  virtual void before_change(const void* /*cell*/) {}
  // A weaker order than the lock asks for.
  virtual MemoryOrder order(const void* /*cell*/, MemoryOrder asked) { return asked; }
  virtual bool widens_byte_store(const void* /*cell*/) { return false; }
  virtual bool drops_pointer_store(const void* /*cell*/, const void* /*value*/) { return false; }
  virtual bool hides_fork() { return false; }
  // Sleeps whatever the cell holds.
  virtual bool ignores_value(const void* /*cell*/) { return false; }
  // Sleeps for ever.
  virtual bool drops_deadline(const void* /*cell*/, std::uint32_t /*bits*/) { return false; }
};
inline Mutation* mutation = nullptr;

// What all atomic cells share: the operations, with what a planted bug makes of them.
struct MutableCell {
  static std::uint64_t load(const void* cell, int bytes, MemoryOrder order);
  static void store(void* cell, int bytes, std::uint64_t value, bool low_byte, MemoryOrder order);
  static std::uint64_t update(void* cell, int bytes, Update how, std::uint64_t operand,
                              MemoryOrder order);
  static bool compare_exchange(void* cell, int bytes, std::uint64_t& expected,
                               std::uint64_t desired, MemoryOrder order);
};

class ExploreAtomic32 {
 public:
  std::uint32_t load(MemoryOrder order) const { return narrow(MutableCell::load(this, 4, order)); }
  void store(std::uint32_t value, MemoryOrder order) {
    MutableCell::store(this, 4, value, false, order);
  }
  void store_low_byte(std::uint8_t value, MemoryOrder order) {
    if (mutation != nullptr && mutation->widens_byte_store(this)) {
      return store((load(MemoryOrder::kRelaxed) & kWidened) | value, order);
    }
    MutableCell::store(this, 4, value, true, order);
  }
  std::uint32_t exchange(std::uint32_t value, MemoryOrder order) {
    return update(Update::kExchange, value, order);
  }
  bool compare_exchange(std::uint32_t& expected, std::uint32_t desired, MemoryOrder order) {
    std::uint64_t wide = expected;
    const bool same = MutableCell::compare_exchange(this, 4, wide, desired, order);
    expected = narrow(wide);
    return same;
  }
  std::uint32_t fetch_add(std::uint32_t operand, MemoryOrder order) {
    return update(Update::kAdd, operand, order);
  }
  std::uint32_t fetch_sub(std::uint32_t operand, MemoryOrder order) {
    return update(Update::kSub, operand, order);
  }
  std::uint32_t fetch_or(std::uint32_t operand, MemoryOrder order) {
    return update(Update::kOr, operand, order);
  }
  std::uint32_t fetch_and(std::uint32_t operand, MemoryOrder order) {
    return update(Update::kAnd, operand, order);
  }

 private:
  static std::uint32_t narrow(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  std::uint32_t update(Update how, std::uint32_t operand, MemoryOrder order) {
    return narrow(MutableCell::update(this, 4, how, operand, order));
  }

  static constexpr std::uint32_t kWidened = 0xe000;  // a spinlock's marker
  std::uint32_t value_;
};

class ExploreAtomic64 {
 public:
  std::uint64_t load(MemoryOrder order) const { return MutableCell::load(this, 8, order); }
  bool compare_exchange(std::uint64_t& expected, std::uint64_t desired, MemoryOrder order) {
    return MutableCell::compare_exchange(this, 8, expected, desired, order);
  }

 private:
  std::uint64_t value_;
};

template <class T>
class ExploreAtomicPtr {
 public:
  T* load(MemoryOrder order) const { return pointer(MutableCell::load(this, 8, order)); }
  void store(T* value, MemoryOrder order) {
    if (mutation != nullptr && mutation->drops_pointer_store(this, value)) return;
    MutableCell::store(this, 8, number(value), false, order);
  }
  T* exchange(T* value, MemoryOrder order) {
    return pointer(MutableCell::update(this, 8, Update::kExchange, number(value), order));
  }
  bool compare_exchange(T*& expected, T* desired, MemoryOrder order) {
    std::uint64_t wide = number(expected);
    const bool same = MutableCell::compare_exchange(this, 8, wide, number(desired), order);
    expected = pointer(wide);
    return same;
  }

 private:
  static T* pointer(std::uint64_t value) { return reinterpret_cast<T*>(value); }
  static std::uint64_t number(const T* value) { return reinterpret_cast<std::uint64_t>(value); }

  T* value_;
};

struct ExplorePlatform {
  using Atomic32 = ExploreAtomic32;
  using Atomic64 = ExploreAtomic64;
  template <class T>
  using AtomicPtr = ExploreAtomicPtr<T>;

  static void pause() {
    interrupt();
    World::active->pause();
  }
  static WaitResult futex_wait(Atomic32& cell, std::uint32_t expected, std::uint32_t bitset,
                               const Deadline* deadline) {
    interrupt();
    if (mutation != nullptr && mutation->ignores_value(&cell)) {
      expected = cell.load(MemoryOrder::kRelaxed);
    }
    if (mutation != nullptr && mutation->drops_deadline(&cell, bitset)) deadline = nullptr;
    return World::active->futex_wait(&cell, expected, bitset, deadline);
  }
  static int futex_wake(const void* address, int count, std::uint32_t bitset) {
    if (mutation != nullptr && mutation->drops_wake(address, bitset)) return 0;
    return World::active->futex_wake(address, count, bitset);
  }
  static std::int64_t now_ns() { return World::active->now_ns(); }
  static Deadline after_ns(std::uint64_t delta) {
    return Deadline{now_ns() + static_cast<std::int64_t>(delta), false};
  }
  static bool expired(const Deadline& deadline) { return World::active->expired(deadline); }
  static std::int64_t remaining_ns(const Deadline& deadline) { return deadline.ns - now_ns(); }
  static int cpu() { return machine.cpu[this_thread()]; }
  static int node() { return machine.node[this_thread()]; }
  static std::uint32_t choose(std::uint32_t n) { return World::active->choose(n); }
  static std::uint32_t epoch() {
    return mutation != nullptr && mutation->hides_fork() ? 0 : World::active->epoch();
  }
  static std::uint32_t slot_hint() { return machine.slot_hint[this_thread()]; }
  static SlotTable<ExplorePlatform>* slots() { return slot_table; }
  static TicketQueueTable<ExplorePlatform>* ticket_queues() { return queue_table; }
  static std::uint64_t ticks() { return static_cast<std::uint64_t>(now_ns()); }
  static LookMemory* look_memory() { return &look_memories[this_thread()]; }
  static void note_cpu() {}
  // A hint may be wrong either way.
  static bool was_here(std::uint32_t owner) {
    return machine.cpus_are_shared && owner != 0 && pick(2) == 1;
  }
  static BackoffTable* backoff_table() { return &backoff_tables[this_thread()]; }
  static SpinGate<ExplorePlatform>* spin_gate(const void*) { return gate_of_spinlocks; }

  static inline LookMemory look_memories[kMaxThreads];
  static inline BackoffTable backoff_tables[kMaxThreads];
  static inline SlotTable<ExplorePlatform>* slot_table = nullptr;
  static inline TicketQueueTable<ExplorePlatform>* queue_table = nullptr;
  static inline SpinGate<ExplorePlatform>* gate_of_spinlocks = nullptr;

 private:
  // A signal handler runs while its thread waits, at most once.
  static void interrupt() {
    if (machine.interrupted != this_thread() || pick(2) == 0) return;
    machine.interrupted = -1;
    machine.handler();
  }
};

static_assert(sizeof(ExploreAtomic32) == 4);
static_assert(std::is_trivially_default_constructible_v<ExploreAtomic32>);

}  // namespace relock::explore
