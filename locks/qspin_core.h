// qspinlock: the fast path's word, the pending bit, and the MCS queue, shared by the whole family.
//
// The idea: the second comer waits on the lock word itself, marked by the pending bit, and needs no
// queue node. The third and later line up in an MCS queue whose tail is packed into the word; each
// waits on its own node, so one hand-off touches one waiter's cache line. What differs between
// native, paravirtualised and NUMA-aware queues is the `SlowPath` parameter.
//
// Word (word.h has the gate's and the epoch's bits, here dots):
//    31            20 19        5  4 3 2 1 0
//   +----------------+---------+--+--+-----+-+
//   |      tail      | . . . . |P |S |. . O|L|   mutex
//   +----------------+---------+--+--+-----+-+
//    31          16 15       9  8  7         0
//   +--------------+----------+--+------------+
//   |     tail     |  . . . . |P |     L      |  spinlock: the low byte is stored as one
//   +--------------+----------+--+------------+
//   tail: slot + 1 of the last waiter, 0: no queue   P pending   S a waiter sleeps on the word
//   Held is L or O; "locked" below means either.
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
//       with the fields that travel with it.
//   P5  S set by compare-exchange on the word that still shows the lock held -> the release that
//       must see S: no wake is lost (only layouts that can sleep). Both work on one word, whose
//       changes are in one order on any machine.
//   P6  a node's state goes from kWaiting to kHalted by compare-exchange, and to kGranted by an
//       exchange of the same cell: the grant finds the sleeper and wakes it, or the waiter finds
//       the grant and does not sleep.
//   Relaxed accesses read what a compare-exchange then checks, set fields that P2 or P4 publish, or
//   only steer who tries.
//
// Source: the Linux kernel's qspinlock (Waiman Long, Peter Zijlstra), which builds on MCS (1991).
// Ours: nodes are borrowed per wait instead of four per CPU; the takeover from pending is an atomic
// step instead of a halfword store, because gate flags share the half; the head may sleep.
#pragma once

#include "qspin_queue.h"

namespace relock {

// SlowPath<P, Layout>:
//   kUsesPending                   the second comer becomes pending instead of enqueueing
//   can_take(word)                 a newcomer may take the lock: free, and nobody is passed over
//   init_node(node)
//   wait_node(node, previous, context)            until the MCS role is ours
//   take_as_head(word, slots, node, context)      until the lock is ours, the role passed on
//   kick(aux)                      whom else a release that sees S must wake: an address or null
template <class P, class Layout, template <class, class> class SlowPath>
struct QspinCore {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;
  using Queue = QspinQueue<P, Layout>;
  using Slow = SlowPath<P, Layout>;

  static constexpr bool kCountsWaiters = false;  // waiters() is a lower bound
  static constexpr bool kOrdered =
      true;  // whoever waits as an admitted waiter comes before a newcomer
  static constexpr bool kHandsOver = false;  // a release makes a waiter the owner
  // In a spinlock, storing 0 in the word's low byte releases the lock.
  static constexpr bool kPlainRelease = true;

  static constexpr bool has_waiters(std::uint32_t word) { return (word & Queue::kWaiterMask) != 0; }
  // At least this many: the queue's length is not in the word.
  static constexpr std::uint32_t waiters(std::uint32_t word) {
    return ((word & Layout::kPending) != 0 ? 1u : 0u) + (Queue::tail(word) != 0 ? 1u : 0u);
  }
  static constexpr bool can_take(std::uint32_t word) { return Slow::can_take(word); }
  static constexpr std::uint32_t taken(std::uint32_t word) { return word | Layout::kLocked; }

  static constexpr Release release(std::uint32_t word) {
    const std::uint32_t next = word & ~(Layout::kLocked | Layout::kSleeper);
    if ((word & Layout::kSleeper) == 0) return {next, 0};
    return {next, wake_bit::kPending | wake_bit::kQueueHead};
  }
  static ReleaseNote<P> note(Word&, Word* aux, std::uint32_t word) {
    if ((word & Layout::kSleeper) == 0 || aux == nullptr) return {};
    return {Slow::kick(*aux), nullptr};
  }

  static Joined join(Word& word, WaitContext<P>& context) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while (can_take(w) || (!has_waiters(w) && Slow::kUsesPending)) {
      if (can_take(w)) {
        if (word.compare_exchange(w, taken(w), MemoryOrder::kAcquire)) {  // P1
          return Joined::kAcquired;
        }
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
  static void wait_pending(Word& word, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    for (;;) {
      if ((w & Layout::kHeld) == 0) {
        const std::uint32_t left =
            Queue::tail(w) == 0 ? Queue::without_waiters(w) : w & ~Layout::kPending;
        if (word.compare_exchange(w, left | Layout::kLocked, MemoryOrder::kAcquire)) return;  // P1
        continue;
      }
      if (!spinner.spin(word, w) &&
          !Queue::sleep_on(word, w, wake_bit::kPending, context, spinner)) {
        continue;  // w was reloaded
      }
      w = word.load(MemoryOrder::kRelaxed);
    }
  }

  static Joined queue(Word& word, WaitContext<P>& context) {
    SlotTable<P>* slots = P::slots();
    Node* node = slots == nullptr ? nullptr : slots->borrow(P::slot_hint());
    if (node == nullptr) return Joined::kNoRoom;
    node->next.store(nullptr, MemoryOrder::kRelaxed);          // P2 publishes
    node->state.store(Node::kWaiting, MemoryOrder::kRelaxed);  // P2 publishes
    Slow::init_node(*node);

    const std::uint32_t before = Queue::exchange_tail(word, slots->tail_of(node));
    if (Node* previous = slots->node_of(before); previous != nullptr) {
      previous->next.store(node, MemoryOrder::kRelease);  // P3
      Slow::wait_node(*node, *previous, context);
    }
    Slow::take_as_head(word, *slots, *node, context);
    slots->give_back(node);
    return Joined::kAcquired;
  }
};

}  // namespace relock
