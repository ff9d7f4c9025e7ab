// SlowPath of pv-qspinlock: a queue whose waiters may not be running.
//
// The idea: a queued waiter whose thread does not run holds up everybody behind it, and waking it
// early only to let it spin wastes a CPU. So waiters halt (sleep) soon, the MCS role is passed to a
// halted waiter without waking it, and the release of the lock kicks it when the lock really is
// free. A newcomer may steal the lock while the queue's head is not actively waiting. Here a thread
// stands for the kernel's virtual CPU, the futex for halt and kick.
//
// Word: qspin_core.h, with two bits of another meaning, and the upper half of the mutex's aux cell:
//    31            20 19        5  4 3 2 1 0           31              16 15                0
//   +----------------+---------+--+--+-----+-+        +------------------+------------------+
//   |      tail      | . . . . |P |S |. . O|L|        | slot + 1 to kick | spin allowance   | aux
//   +----------------+---------+--+--+-----+-+        +------------------+------------------+
//   P the queue head is spinning: do not steal   S the kernel's slow value: the release must kick,
//   whoever sleeps on the word and the halted head that aux names (0: none)
//
// A node's state:
//   kWaiting -> kHalted    the waiter: allowance used up, sleeps on `state`
//   kWaiting -> kGranted   the new owner: the successor is head and awake
//   kHalted  -> kHashed    the new owner: the successor is head but stays asleep; its slot goes
//                          into the mutex's aux cell, S into the word: the release kicks it
// The head: sets pending and spins; its allowance used up, it clears pending, sets S and sleeps on
// the word. Stealing is possible only while pending is clear: while the head is halted or not there
// yet.
//
// Bound: a head that has halted Budget::lost_rounds times (8), and found the lock held again each
// time it was woken, keeps pending set while it sleeps. From then on nobody passes it. (The kernel
// sets no bound.)
//
// Memory order: P1 to P6 of qspin_core.h, and
//   V1  aux is written (relaxed) before S is set (release) by the owner; the owner that releases
//       reads S (acquire, or is the same thread) before aux.
//   V2  kHashed is a compare-exchange from kHalted: a waiter that has not gone to sleep yet finds
//       that `state` is no longer kHalted (futex_wait refuses), one that sleeps is found by the
//       kick.
//
// Source: the Linux kernel's qspinlock_paravirt.h (Waiman Long). Ours: futex addresses replace the
// hash from lock to CPU; the bound.
#pragma once

#include "qspin_core.h"

namespace relock {

template <class P, class Layout>
struct QspinPv {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;
  using Queue = QspinQueue<P, Layout>;

  static constexpr bool kUsesPending = false;

  // Stealing past the queue is allowed unless the head spins.
  static constexpr bool can_take(std::uint32_t word) {
    return (word & (Layout::kHeld | Layout::kPending)) == 0;
  }
  static void init_node(Node&) {}

  // Spins less behind a predecessor that does not run.
  static void wait_node(Node& node, const Node& previous, WaitContext<P>& context) {
    constexpr std::uint32_t kShorter = 8;
    const std::uint32_t full = context.spin_pauses;
    const std::uint32_t before_me = previous.state.load(MemoryOrder::kRelaxed);  // a hint
    if (before_me == Node::kHalted || before_me == Node::kHashed) context.spin_pauses /= kShorter;
    Spinner<P> spinner(context);
    std::uint32_t state = node.state.load(MemoryOrder::kAcquire);  // P4
    while (state == Node::kWaiting || state == Node::kHalted) {
      if (state == Node::kWaiting && !spinner.spin(node.state, state)) {
        if constexpr (Layout::kCanSleep) {
          context.going_to_sleep();
          (void)node.state.compare_exchange(state, Node::kHalted, MemoryOrder::kAcqRel);  // V2
        } else {
          spinner.nap(node.state, state);
        }
      } else if (state == Node::kHalted) {
        (void)P::futex_wait(node.state, Node::kHalted, kAnyBit, nullptr);
      }
      state = node.state.load(MemoryOrder::kAcquire);  // P4
    }
    context.spin_pauses = full;
  }

  static void take_as_head(Word& word, SlotTable<P>& slots, Node& node, WaitContext<P>& context) {
    const std::uint32_t mine = slots.tail_of(&node);
    for (std::uint32_t lost = 0;; ++lost) {
      word.fetch_or(Layout::kPending, MemoryOrder::kRelaxed);  // no stealing from here
      const Taken taken = spin_for(word, mine, context);
      if (taken == Taken::kAsLast) return;
      if (taken == Taken::kBeforeOthers) break;
      halt(word, lost >= context.budget->lost_rounds, context);
    }
    hand_off(word, slots, Queue::linked_successor(node, context), context);
  }

  // The halted queue head that a new owner put to the release's care. Called by the owner.
  static const void* kick(Word& aux) {
    constexpr std::uint32_t kSlot = 0xffff0000u;
    const std::uint32_t seen = aux.load(MemoryOrder::kRelaxed);  // V1
    if ((seen & kSlot) == 0 || P::slots() == nullptr) return nullptr;
    aux.fetch_and(~kSlot, MemoryOrder::kRelaxed);
    Node* node = P::slots()->node_of(seen >> 16);
    return node == nullptr ? nullptr : &node->state;
  }

 private:
  enum class Taken { kNot, kAsLast, kBeforeOthers };

  // (t,1,0) -> (t or 0,0,1) by the spinning head. kNot: its allowance is used up.
  static Taken spin_for(Word& word, std::uint32_t mine, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    for (;;) {
      if ((w & Layout::kHeld) == 0) {
        const bool last = Queue::tail(w) == mine;
        const std::uint32_t left = last ? Queue::without_waiters(w) : w & ~Layout::kPending;
        if (word.compare_exchange(w, left | Layout::kLocked, MemoryOrder::kAcquire)) {  // P1
          return last ? Taken::kAsLast : Taken::kBeforeOthers;
        }
        continue;
      }
      if (!spinner.spin(word, w)) return Taken::kNot;
      w = word.load(MemoryOrder::kRelaxed);
    }
  }

  static void halt(Word& word, bool keep_pending, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    if constexpr (Layout::kCanSleep) context.going_to_sleep();
    while ((w & Layout::kHeld) != 0) {
      const std::uint32_t asleep = (keep_pending ? w : w & ~Layout::kPending) | Layout::kSleeper;
      if (asleep != w && !word.compare_exchange(w, asleep, MemoryOrder::kAcqRel)) continue;  // P5
      if constexpr (Layout::kCanSleep) {
        (void)P::futex_wait(word, asleep, wake_bit::kQueueHead, nullptr);
      } else {
        spinner.nap(word, asleep);
      }
      return;
    }
  }

  // Owner: the successor becomes head. Asleep it stays asleep; our release kicks it.
  static void hand_off(Word& word, SlotTable<P>& slots, Node& next, WaitContext<P>& context) {
    std::uint32_t state = Node::kWaiting;
    if (next.state.compare_exchange(state, Node::kGranted, MemoryOrder::kAcqRel)) return;  // P4
    if (context.aux == nullptr) {
      Queue::grant(next);
      return;
    }
    const std::uint32_t slot = slots.tail_of(&next) << 16;
    std::uint32_t cell = context.aux->load(MemoryOrder::kRelaxed);
    while (!context.aux->compare_exchange(cell, (cell & 0xffffu) | slot, MemoryOrder::kRelaxed)) {
    }
    word.fetch_or(Layout::kSleeper, MemoryOrder::kRelease);  // V1
    state = Node::kHalted;
    (void)next.state.compare_exchange(state, Node::kHashed, MemoryOrder::kAcqRel);  // P4, V2
  }
};

template <class P, class Layout>
using PvQspinlock = QspinCore<P, Layout, QspinPv>;

}  // namespace relock
