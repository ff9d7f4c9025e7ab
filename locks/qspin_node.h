// Queue nodes of the qspinlock family, and the table they are borrowed from.
//
// A waiter borrows a node for one queued wait and gives it back when it owns the lock. A signal
// handler that waits for another lock while its thread is queued simply borrows another node, so
// there is no nesting limit, and no thread has to be watched for its exit. The table lies in memory
// that fork wipes: a child finds it empty, which is how a tail left by the parent's threads is
// recognised as a ghost's.
//
// Memory order:
//   N1  giving a node back (release) -> borrowing it (acquire): the last borrower's accesses come
//       before the next one's, on any machine. That is all: a node's fields are published by the
//       tail (P2 of qspin_core.h).
#pragma once

#include <cstdint>

#include "platform.h"

namespace relock {

template <class P>
struct alignas(64) QueueNode {
  enum State : std::uint32_t {
    kWaiting = 0,
    kHalted = 1,   // sleeps on `state`; the predecessor wakes it
    kGranted = 2,  // is the head of the queue now
    kHashed = 3,   // is the head and asleep; the release of the lock wakes it (pv)
  };

  typename P::template AtomicPtr<QueueNode> next;
  typename P::Atomic32 state;
  typename P::Atomic32 borrowed;
  // Read and written only by the owner of the MCS role (CNA).
  QueueNode* secondary_tail;
  QueueNode* secondary_head;
  std::int32_t numa_node;
  std::uint32_t local_hand_offs;
};

template <class P>
class SlotTable {
 public:
  using Node = QueueNode<P>;

  // Nodes a table may have: tails are 12 bits in a mutex (word.h), and 0 means "no queue".
  static constexpr std::uint32_t kMaxSlots = 0xfff;

  constexpr SlotTable() = default;
  SlotTable(Node* nodes, std::uint32_t count) : nodes_(nodes), count_(count) {}

  // A free node, or null when none is found near the caller's usual place.
  Node* borrow(std::uint32_t hint) {
    constexpr std::uint32_t kProbes = 64;
    if (count_ == 0) return nullptr;
    std::uint32_t index = hint % count_;
    for (std::uint32_t probe = 0; probe < kProbes && probe < count_; ++probe) {
      Node& node = nodes_[index];
      std::uint32_t free = 0;
      if (node.borrowed.load(MemoryOrder::kRelaxed) == 0 &&
          node.borrowed.compare_exchange(free, 1, MemoryOrder::kAcquire)) {  // N1
        return &node;
      }
      if (++index == count_) index = 0;
    }
    return nullptr;
  }

  void give_back(Node* node) { node->borrowed.store(0, MemoryOrder::kRelease); }  // N1

  // Tail codec: the slot's number plus one.
  std::uint32_t tail_of(const Node* node) const {
    return static_cast<std::uint32_t>(node - nodes_) + 1;
  }
  // Null for a tail that no thread of this process can have put there.
  Node* node_of(std::uint32_t tail) {
    if (tail == 0 || tail > count_) return nullptr;
    return &nodes_[tail - 1];
  }

 private:
  Node* nodes_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace relock
