// SlowPath of the plain qspinlock: one queue, in order.
//
// The idea: waiters stand in one MCS queue, each looks at its own node, and only the head of the
// queue looks at the word. It takes the lock when owner and pending waiter are gone, then makes its
// successor the head.
//
// Word: qspin_core.h, which has the diagram: tail (t), P pending (p), L locked (l). A node:
//   next   null, or the successor once it has linked itself (P3)
//   state  kWaiting -> kHalted (asleep on it) -> kGranted, or kWaiting -> kGranted (P4, P6)
//
// Transitions (t,p,l) of the queue head, whose own tail is n:
//   (n,0,0) -> (0,0,1)   it is the last one: takes the lock and ends the queue
//   (t,0,0) -> (t,0,1)   others are behind it: it takes the lock, then grants its successor
//   a newcomer may take the lock only in (0,0,0): nobody is passed over
//
// Memory order: P1 to P6 of qspin_core.h. Both ways to set L acquire (P1); the grant comes after
// them and carries nothing but the role (P4).
//
// Source: the Linux kernel's qspinlock.c (Waiman Long, Peter Zijlstra). Ours: a head whose
// allowance is used up sleeps on the word (S, P5), a waiter on its node.
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
