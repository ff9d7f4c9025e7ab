// The MCS queue that the qspinlock family shares: the steps from which slow paths are built.
//
// The order argument (P1 to P6) is in qspin_core.h.
#pragma once

#include "qspin_node.h"
#include "wait.h"
#include "word.h"

namespace relock {

template <class P, class Layout>
struct QspinQueue {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;

  static constexpr std::uint32_t kWaiterMask = Layout::kTailMask | Layout::kPending;

  static constexpr std::uint32_t tail(std::uint32_t word) { return word >> Layout::kTailShift; }
  static constexpr std::uint32_t with_tail(std::uint32_t word, std::uint32_t value) {
    return (word & ~Layout::kTailMask) | (value << Layout::kTailShift);
  }
  // The word after the last waiter has taken the lock: no epoch without waiters (word.h).
  static constexpr std::uint32_t without_waiters(std::uint32_t word) {
    return Layout::with_epoch(word & ~kWaiterMask, 0);
  }

  static std::uint32_t exchange_tail(Word& word, std::uint32_t mine) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    for (;;) {
      const std::uint32_t with_mine = with_tail(Layout::with_epoch(w, P::epoch()), mine);
      if (word.compare_exchange(w, with_mine, MemoryOrder::kAcqRel)) return tail(w);  // P2
    }
  }

  // Sleeps while the word is `w`, which shows the lock not yet ours. False: w changed first.
  static bool sleep_on(Word& word, std::uint32_t& w, std::uint32_t bit, WaitContext<P>& context,
                       Spinner<P>& spinner) {
    if constexpr (Layout::kCanSleep) {
      context.going_to_sleep();  // before we can be served: nobody else shall pay for it
      if ((w & Layout::kSleeper) == 0) {
        if (!word.compare_exchange(w, w | Layout::kSleeper, MemoryOrder::kAcqRel)) {  // P5
          return false;
        }
        w |= Layout::kSleeper;
      }
      (void)P::futex_wait(word, w, bit, nullptr);
    } else {
      spinner.nap(word, w);
    }
    return true;
  }

  // The queue head waits until neither an owner nor a pending waiter is before it.
  static void wait_head(Word& word, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while ((w & (Layout::kHeld | Layout::kPending)) != 0) {
      if (!spinner.spin(word, w) && !sleep_on(word, w, wake_bit::kQueueHead, context, spinner)) {
        continue;
      }
      w = word.load(MemoryOrder::kRelaxed);
    }
  }

  // A waiter behind others pauses on its node, then marks it halted and sleeps on it.
  static void wait_node(Node& node, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    for (;;) {
      std::uint32_t state = node.state.load(MemoryOrder::kAcquire);  // P4
      if (state == Node::kGranted) return;
      if (spinner.spin(node.state, state)) continue;
      context.going_to_sleep();
      if (state == Node::kWaiting &&
          !node.state.compare_exchange(state, Node::kHalted, MemoryOrder::kAcqRel)) {  // P6
        continue;  // granted meanwhile
      }
      (void)P::futex_wait(node.state, Node::kHalted, kAnyBit, nullptr);
    }
  }

  // Waits for the successor that exchanged the tail to link itself: a few instructions of its own,
  // but it may have lost its CPU between the two.
  static Node& linked_successor(Node& node, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    for (;;) {
      if (Node* next = node.next.load(MemoryOrder::kAcquire)) return *next;  // P3
      spinner.pause_or_nap(node.state, Node::kWaiting);
    }
  }

  // Makes `next` the queue head. Its node may be given back at once: only the address is used
  // after.
  static void grant(Node& next) {
    if (next.state.exchange(Node::kGranted, MemoryOrder::kAcqRel) == Node::kHalted) {  // P4, P6
      P::futex_wake(&next.state, 1, kAnyBit);
    }
  }
};

}  // namespace relock
