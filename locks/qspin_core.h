// qspinlock: the fast path's word, the pending bit, and the MCS queue, shared by the whole family.
//
// The idea: the second comer waits on the lock word itself, marked by the pending bit, and needs no
// queue node. The third and later line up in an MCS queue whose tail is packed into the word; each
// waits on its own node, so one hand-off touches one waiter's cache line. What differs between
// native, paravirtualised and NUMA-aware queues are five hooks, the `SlowPath` parameter.
//
// Word (word.h): L, the pending bit, and a 16-bit tail (slot + 1; 0: no queue).
//
// Transitions, written (tail, pending, locked) -> after; n is the acting waiter's tail:
//   (0,0,0) -> (0,0,1)   anybody                    the lock is free
//   (0,0,1) -> (0,1,1)   second comer               becomes pending
//   (t,1,0) -> (t,0,1)   the pending waiter         takes over; the only one who may
//   (t,p,l) -> (n,p,l)   third and later            enqueues; t != 0: links to t's node
//   (n,0,0) -> (0,0,1)   queue head n, the last one takes the lock and ends the queue
//   (t,0,0) -> (t,0,1)   queue head n != t          takes the lock, passes the MCS role on
//   (t,p,1) -> (t,p,0)   release
// Order: first come, first served from becoming pending or enqueued on.
//
// Memory order:
//   P1  release of L (release) -> the step that sets L again (acquire): the critical section.
//   P2  a node's fields are set before the exchange of the tail (release) -> a successor that reads
//       this tail (acquire) links to an initialised node.
//   P3  linking `next` (release) -> the predecessor's load of it (acquire).
//   P4  granting `state` (release, exchange) -> the successor's load of it (acquire): the MCS role,
//       with the CNA fields that travel with it.
//   P5  S set by compare-exchange on the word that still shows the lock held -> the release that
//       must see S: no wake is lost (only layouts that can sleep).
//
// Source: the Linux kernel's qspinlock (Waiman Long, Peter Zijlstra), which builds on MCS (1991).
// Ours: nodes are borrowed per wait instead of four per CPU; the takeover from pending is an atomic
// step instead of a halfword store, because gate flags share the half; the head may sleep.
#pragma once

#include "qspin_node.h"
#include "wait.h"
#include "word.h"

namespace relock {

template <class P, class Layout, template <class, class> class SlowPath>
struct QspinCore {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;
  using Slow = SlowPath<P, Layout>;

  // In a spinlock, storing 0 in the word's low byte releases the lock.
  static constexpr bool kPlainRelease = true;
  static constexpr std::uint32_t kWaiterMask = Layout::kTailMask | Layout::kPending;

  static constexpr std::uint32_t tail(std::uint32_t word) { return word >> Layout::kTailShift; }
  static constexpr bool has_waiters(std::uint32_t word) { return (word & kWaiterMask) != 0; }
  // At least this many: the queue's length is not in the word.
  static constexpr std::uint32_t waiters(std::uint32_t word) {
    return ((word & Layout::kPending) != 0 ? 1u : 0u) + (tail(word) != 0 ? 1u : 0u);
  }
  static constexpr bool can_take(std::uint32_t word) {
    return (word & (Layout::kHeld | kWaiterMask)) == 0;
  }
  static constexpr std::uint32_t taken(std::uint32_t word) { return word | Layout::kLocked; }

  static constexpr Release release(std::uint32_t word) {
    const std::uint32_t next = word & ~(Layout::kLocked | Layout::kSleeper);
    if ((word & Layout::kSleeper) == 0) return {next, 0};
    return {next, wake_bit::kPending | wake_bit::kQueueHead};
  }

  static Joined join(Word& word, WaitContext& context) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while (can_take(w) || (!has_waiters(w) && Slow::kUsesPending)) {
      if (can_take(w)) {
        if (word.compare_exchange(w, taken(w), MemoryOrder::kAcquire)) return Joined::kAcquired;
        continue;
      }
      const std::uint32_t pending = Layout::with_epoch(w, P::epoch()) | Layout::kPending;
      if (word.compare_exchange(w, pending, MemoryOrder::kRelaxed)) {
        wait_pending(word, context);
        return Joined::kAcquired;
      }
    }
    return queue(word, context);
  }

 private:
  // (t,1,*) -> (t,0,1)
  static void wait_pending(Word& word, WaitContext& context) {
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    for (;;) {
      if ((w & Layout::kHeld) == 0) {
        std::uint32_t mine = (w & ~Layout::kPending) | Layout::kLocked;
        if (tail(w) == 0) mine = Layout::with_epoch(mine, 0);
        if (word.compare_exchange(w, mine, MemoryOrder::kAcquire)) return;  // P1
        continue;
      }
      if (!spinner.spin(word, w) && !sleep_on(word, w, wake_bit::kPending, context, spinner)) {
        continue;  // w was reloaded
      }
      w = word.load(MemoryOrder::kRelaxed);
    }
  }

  // Sleeps while the word is `w`, which shows the lock not yet ours. False: w changed first.
  static bool sleep_on(Word& word, std::uint32_t& w, std::uint32_t bit, WaitContext& context,
                       Spinner<P>& spinner) {
    if constexpr (Layout::kCanSleep) {
      if ((w & Layout::kSleeper) == 0) {
        if (!word.compare_exchange(w, w | Layout::kSleeper, MemoryOrder::kAcqRel)) return false;
        w |= Layout::kSleeper;  // P5
      }
      context.going_to_sleep();
      (void)P::futex_wait(word, w, bit, nullptr);
    } else {
      spinner.nap(word, w);
    }
    return true;
  }

  static Joined queue(Word& word, WaitContext& context) {
    SlotTable<P>* slots = P::slots();
    Node* node = slots == nullptr ? nullptr : slots->borrow(P::slot_hint());
    if (node == nullptr) return Joined::kNoRoom;
    node->next.store(nullptr, MemoryOrder::kRelaxed);           // P2 publishes
    node->state.store(Node::kWaiting, MemoryOrder::kRelaxed);   // P2 publishes
    Slow::init_node(*node);

    const std::uint32_t mine = slots->tail_of(node);
    const std::uint32_t before = exchange_tail(word, mine);
    if (Node* previous = slots->node_of(before); previous != nullptr) {
      previous->next.store(node, MemoryOrder::kRelease);  // P3
      Slow::wait_node(*node, *previous, context);
    }
    wait_head(word, *node, context);
    take_as_head(word, *slots, *node, mine, context);
    slots->give_back(node);
    return Joined::kAcquired;
  }

  static std::uint32_t exchange_tail(Word& word, std::uint32_t mine) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    for (;;) {
      const std::uint32_t with_mine =
          (Layout::with_epoch(w, P::epoch()) & ~Layout::kTailMask) | (mine << Layout::kTailShift);
      if (word.compare_exchange(w, with_mine, MemoryOrder::kAcqRel)) return tail(w);  // P2
    }
  }

  // The queue head waits until neither an owner nor a pending waiter is before it.
  static void wait_head(Word& word, Node& node, WaitContext& context) {
    Slow::becoming_head(node);
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while ((w & (Layout::kHeld | Layout::kPending)) != 0) {
      if (!spinner.spin(word, w) && !sleep_on(word, w, wake_bit::kQueueHead, context, spinner)) {
        continue;
      }
      w = word.load(MemoryOrder::kRelaxed);
    }
  }

  static void take_as_head(Word& word, SlotTable<P>& slots, Node& node, std::uint32_t mine,
                           WaitContext& context) {
    (void)slots;
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while (tail(w) == mine && Slow::may_end_queue(node)) {
      const std::uint32_t last =
          Layout::with_epoch(w & ~Layout::kTailMask, 0) | Layout::kLocked;
      if (word.compare_exchange(w, last, MemoryOrder::kAcquire)) return;  // P1
    }
    word.fetch_or(Layout::kLocked, MemoryOrder::kAcquire);  // P1: nobody else may set it now
    Slow::hand_off(word, slots, node, mine, context);
  }
};

// Waits for the successor that exchanged the tail to link itself: a few instructions of its, but it
// may have lost its CPU between the two.
template <class P>
QueueNode<P>* linked_successor(QueueNode<P>& node, WaitContext& context) {
  Spinner<P> spinner(context);
  for (;;) {
    if (QueueNode<P>* next = node.next.load(MemoryOrder::kAcquire)) return next;  // P3
    spinner.pause_or_nap(node.state, QueueNode<P>::kGranted);
  }
}

// Makes `next` the queue head. Its node may be given back at once: only the address is used after.
template <class P>
void grant(QueueNode<P>& next) {
  using Node = QueueNode<P>;
  if (next.state.exchange(Node::kGranted, MemoryOrder::kAcqRel) == Node::kHalted) {  // P4
    P::futex_wake(&next.state, 1, kAnyBit);
  }
}

}  // namespace relock
