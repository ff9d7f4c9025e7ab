// SlowPath of the plain qspinlock: one queue, in order.
//
// A queued waiter pauses on its own node; when its allowance is used up it marks the node halted
// and sleeps on it. The predecessor's grant is an exchange, so it learns of the sleeper (P4).
#pragma once

#include "qspin_core.h"

namespace relock {

template <class P, class Layout>
struct QspinNative {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;

  static constexpr bool kUsesPending = true;

  static void init_node(Node&) {}
  static void becoming_head(Node&) {}
  static constexpr bool may_end_queue(const Node&) { return true; }

  static void wait_node(Node& node, const Node&, WaitContext& context) {
    Spinner<P> spinner(context);
    for (;;) {
      std::uint32_t state = node.state.load(MemoryOrder::kAcquire);  // P4
      if (state == Node::kGranted) return;
      if (spinner.spin(node.state, state)) continue;
      if (state == Node::kWaiting &&
          !node.state.compare_exchange(state, Node::kHalted, MemoryOrder::kAcqRel)) {
        continue;  // granted meanwhile
      }
      context.going_to_sleep();
      (void)P::futex_wait(node.state, Node::kHalted, kAnyBit, nullptr);
    }
  }

  static void hand_off(Word&, SlotTable<P>&, Node& node, std::uint32_t, WaitContext& context) {
    grant<P>(*linked_successor<P>(node, context));
  }
};

template <class P, class Layout>
using Qspinlock = QspinCore<P, Layout, QspinNative>;

}  // namespace relock
