// The production templates with the objects they need, behind one face for all scripts.
#pragma once

#include <cstring>

#include "explore_platform.h"
#include "explorer.h"
#include "tests/support/lock_drivers.h"

namespace relock::explore {

using P = ExplorePlatform;

// Nobody is promoted by time within an execution: a lost wakeup stays lost.
inline constexpr std::uint64_t kNeverNs = 1'000'000'000'000'000;

// How a case's waiters behave, and what they have.
struct Setting {
  WaitMode mode = WaitMode::kPark;
  std::uint32_t admitted_limit = 1;
  std::uint32_t spin_pauses = 1;
  std::uint32_t look_pauses = 0;
  bool cpus_are_shared = false;
  std::uint64_t promote_ns = kNeverNs;
  std::uint32_t slots = kMaxThreads;
  std::uint32_t ticket_queues = 1;
  std::uint32_t local_hand_offs = 1;
  std::uint32_t lost_rounds = 1;
  int numa_nodes = 1;             // threads are dealt over them,
  const char* node_of = nullptr;  // or as a digit for each thread says
  Mutation* bug = nullptr;
};

inline Budget budget_of(const Setting& setting) {
  Budget budget;
  budget.mode = setting.mode;
  budget.admitted_limit = setting.admitted_limit;
  budget.spin_pauses = setting.mode == WaitMode::kPark ? 0 : setting.spin_pauses;
  budget.look_pauses = setting.look_pauses;
  budget.look_step = 1;
  budget.promoted_pauses = 1;
  budget.asks_in_vain = 1;
  budget.promotions_alone = 1;
  budget.promote_ns = setting.promote_ns;
  budget.local_hand_offs = setting.local_hand_offs;
  budget.lost_rounds = setting.lost_rounds;
  return budget;
}

// The world outside of a lock, as new.
class Surroundings {
 public:
  static void reset(const Setting& setting) {
    static SlotTable<P> table;
    wipe();
    table = SlotTable<P>(nodes, setting.slots);
    P::slot_table = setting.slots == 0 ? nullptr : &table;
    static TicketQueueTable<P> queue_table;
    queue_table = TicketQueueTable<P>(queues, setting.ticket_queues);
    P::queue_table = setting.ticket_queues == 0 ? nullptr : &queue_table;
    P::gate_of_spinlocks = &gate;
    std::memset(static_cast<void*>(P::backoff_tables), 0, sizeof P::backoff_tables);
    std::memset(static_cast<void*>(P::look_memories), 0, sizeof P::look_memories);
    machine = Machine{};
    machine.cpus_are_shared = setting.cpus_are_shared;
    for (int i = 0; i < kMaxThreads; ++i) machine.node[i] = i % setting.numa_nodes;
    for (int i = 0; setting.node_of != nullptr && setting.node_of[i] != '\0'; ++i) {
      machine.node[i] = setting.node_of[i] - '0';
    }
    mutation = setting.bug;
    budget = budget_of(setting);
    for (int i = 0; i < kMaxThreads; ++i) {
      name_memory(&nodes[i].next, 8, "node" + std::to_string(i) + ".next");
      name_memory(&nodes[i].state, 4, "node" + std::to_string(i) + ".state");
      name_memory(&nodes[i].borrowed, 4, "node" + std::to_string(i) + ".borrowed");
      if (setting.numa_nodes > 1 || setting.node_of != nullptr) {  // the fields of cna
        watch(&nodes[i].secondary_tail, sizeof nodes[i] - offsetof(QueueNode<P>, secondary_tail));
      }
    }
    for (int i = 0; i < 2; ++i) {
      name_memory(&queues[i], sizeof queues[i], "queue" + std::to_string(i));
    }
    name_memory(&gate.competing, 4, "spin_gate.competing");
    name_memory(&gate.outside, 4, "spin_gate.outside");
  }

  // What the kernel does to this memory in a forked child.
  static void wipe() {
    std::memset(static_cast<void*>(nodes), 0, sizeof nodes);
    std::memset(static_cast<void*>(queues), 0, sizeof queues);
    std::memset(static_cast<void*>(&gate), 0, sizeof gate);
  }

  static bool is_node_state(const void* address) {
    for (const QueueNode<P>& node : nodes) {
      if (address == &node.state) return true;
    }
    return false;
  }
  static bool is_node_borrowed(const void* address) {
    for (const QueueNode<P>& node : nodes) {
      if (address == &node.borrowed) return true;
    }
    return false;
  }

  static inline Budget budget;
  static inline QueueNode<P> nodes[kMaxThreads];
  static inline TicketQueue<P> queues[2];
  static inline SpinGate<P> gate;
};

// A planted bug, one object for all executions.
template <class Bug>
Mutation* planted() {
  static Bug bug;
  return &bug;
}
struct ChildKeepsGhosts : Mutation {
  bool hides_fork() override { return true; }
};

// What the drivers ask of their surroundings.
struct Host {
  static const Budget& budget() { return Surroundings::budget; }
  static std::uint32_t thread_id() { return static_cast<std::uint32_t>(this_thread()) + 1; }
};

template <template <class, class> class Algorithm>
class MutexUnderTest : public testing::MutexDriver<P, Algorithm, Host> {
 public:
  using Base = testing::MutexDriver<P, Algorithm, Host>;
  using typename Base::Layout;
  using typename Base::Word;

  void reset(const char* name = "mutex") {
    std::memset(static_cast<void*>(&cells_), 0, sizeof cells_);
    const std::string prefix = name;
    name_memory(&cells_.word, 4, prefix + ".word");
    name_memory(&cells_.gate, 4, prefix + ".gate");
    name_memory(&cells_.epoch, 4, prefix + ".epoch");
    name_memory(&cells_.tuning, 4, prefix + ".tuning");
    name_memory(&cells_.owner, 4, prefix + ".owner");
  }

  void destroy() { poison(&cells_, sizeof cells_); }
  // As a sleeper does that has asked for the lock in vain (courtesy.h).
  void starve() { Base::Gated::Courtesy::ask(Base::view()); }
  void begin_with(std::uint32_t word) { cells_.word.store(word, MemoryOrder::kRelaxed); }
  void overwrite(std::uint32_t word) { (void)cells_.word.exchange(word, MemoryOrder::kRelease); }
  bool is_held() const { return (cells_.word.load(MemoryOrder::kRelaxed) & Layout::kHeld) != 0; }
  const P::Atomic32& word() const { return cells_.word; }
  const P::Atomic32& gate() const { return cells_.gate; }
  const P::Atomic32& tuning() const { return cells_.tuning; }

  // The invariants that word.h states for every moment.
  static void check_word(std::uint32_t word) {
    const bool held = (word & Layout::kHeld) != 0;
    if ((word & Layout::kHeld) == Layout::kHeld) fail("W1: both locked and offered");
    const bool coming = Word::has_waiters(word) || (word & Layout::kAdmitting) != 0;
    if ((word & Layout::kPassiveMask) != 0 && !held && !coming) {
      fail("W3: threads sleep at the gate and no release will see them");
    }
    if ((word & Layout::kReserved) != 0 && !held && !Word::has_waiters(word)) {
      fail("W4: a reservation that no release will see");
    }
  }

  // When all is over the word must be free, with nothing left behind in it.
  void check_free() const {
    const std::uint32_t word = cells_.word.load(MemoryOrder::kRelaxed);
    if ((word & Layout::kHeld) != 0) fail("the lock is left locked");
    if (word != Layout::kFree) fail("something is left in the free word: " + std::to_string(word));
  }

 private:
  using Base::cells_;
};

template <template <class, class> class Algorithm>
class SpinUnderTest : public testing::SpinDriver<P, Algorithm, Host> {
 public:
  using Base = testing::SpinDriver<P, Algorithm, Host>;
  using typename Base::Layout;
  using typename Base::Word;

  void reset(const char* name = "spinlock") {
    Base::init();
    name_memory(&word_, 4, name);
  }

  void destroy() { poison(&word_, sizeof word_); }
  static void check_word(std::uint32_t word) {
    if (!Layout::is_ours(word)) fail("the marker is damaged");
  }
  void begin_with(std::uint32_t word) { word_.store(word, MemoryOrder::kRelaxed); }
  bool is_held() const { return (word_.load(MemoryOrder::kRelaxed) & Layout::kLocked) != 0; }
  const P::Atomic32& word() const { return word_; }
  void check_free() const {
    const std::uint32_t word = word_.load(MemoryOrder::kRelaxed);
    if (word != Layout::kFree) fail("something is left in the free word: " + std::to_string(word));
  }

 private:
  using Base::word_;
};

}  // namespace relock::explore
