// SlowPath of the plain qspinlock: one queue, in order.
#pragma once

#include "qspin_core.h"

namespace relock {

template <class P, class Layout>
struct QspinNative {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;
  using Queue = QspinQueue<P, Layout>;

  static constexpr bool kUsesPending = true;

  static constexpr bool can_take(std::uint32_t word) {
    return (word & (Layout::kHeld | Queue::kWaiterMask)) == 0;
  }
  static void init_node(Node&) {}
  static void wait_node(Node& node, const Node&, WaitContext<P>& context) {
    Queue::wait_node(node, context);
  }
  static const void* kick(Word&) { return nullptr; }

  static void take_as_head(Word& word, SlotTable<P>& slots, Node& node, WaitContext<P>& context) {
    Queue::wait_head(word, context);
    const std::uint32_t mine = slots.tail_of(&node);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while (Queue::tail(w) == mine) {
      const std::uint32_t last = Queue::without_waiters(w) | Layout::kLocked;
      if (word.compare_exchange(w, last, MemoryOrder::kAcquire)) return;  // P1
    }
    word.fetch_or(Layout::kLocked, MemoryOrder::kAcquire);  // P1: nobody else may set it now
    Queue::grant(Queue::linked_successor(node, context));
  }
};

template <class P, class Layout>
using Qspinlock = QspinCore<P, Layout, QspinNative>;

}  // namespace relock
