// Condition variable: a list of waiters, oldest first.
//
// The idea: each waiter is a node on its own stack, linked into the object under a small lock and
// parked on its own. A signal unlinks the oldest and wakes it; a broadcast unlinks all and wakes
// them itself, oldest first. None depends on another: one of them may be in a signal handler, for
// as long as it likes, between its wake and its return.
//
// Object (bytes of pthread_cond_t; all zero is "no waiters"):
//   lock   0   free / 1 locked / 2 locked, somebody sleeps; bits 2-31: epoch of the locker
//   head, tail first and last waiter, null when there is none; written under the lock
//   unconfirmed  waiters that signal() has taken and that have not yet said so
//
// A node's life:
//   kLinked  -> kTaken     by a signaller, under the lock; it then posts the node.
//                          From here on the waiter does not touch the object.
//   kLinked  -> kLeaving   by the waiter itself, timed out or cancelled; it then unlinks itself
//                          under the lock. Signallers skip it, so no signal is swallowed.
// Both are one compare-exchange, so a signal either reaches a waiter that will return because of
// it, or goes to the next one.
//
// Last touch: a signaller lets go of the small lock before it posts, and does not touch the object
// after its first post, so when a woken waiter destroys the object nobody is inside. A node ends
// with its post, so a broadcast reads the link to the next one before. Two kinds of waiters touch
// the object after they have left the list or while they leave: one that times out or is cancelled,
// and one that signal() has taken, since a cancellation in that moment makes it hand the signal on.
// destroy() waits until the list is empty and nobody is unconfirmed, as glibc's waits for its
// references. Waiters taken by broadcast do not touch the object, so that a broadcaster may destroy
// it while it holds their mutex.
//
// Memory order:
//   C1  the small lock: exchange/compare-exchange (acquire) and its release order all list fields.
//   C2  `head` is loaded (acquire) by a signaller that may not hold the mutex: it sees every waiter
//       that was linked before the signaller's own last acquisition of the mutex.
//   C4  unconfirmed goes down (release) as a waiter's last access; destroy() reads it (acquire).
//   C3  state kTaken (acq_rel) publishes by_broadcast to the waiter; the post publishes what came
//       before it.
//
// Source: the list is the classic construction (Birrell 1984/2003).
#pragma once

#include <cstdint>

#include "platform.h"
#include "wait.h"

namespace relock {

// `Parker` is what the waiter sleeps on: post() from another thread, once; it must tolerate that
// the waiter's frame is gone as soon as the post is visible.
template <class P, class Parker>
struct CondNode {
  enum State : std::uint32_t { kLinked = 0, kTaken = 1, kLeaving = 2 };

  CondNode* next = nullptr;
  CondNode* previous = nullptr;
  bool by_broadcast = false;  // C3
  typename P::Atomic32 state;
  Parker parker;
};

// `Object` gives access to one condition variable: lock(), list_epoch() and unconfirmed() are
// P::Atomic32&, head() and tail() are P::AtomicPtr<Node>&.
template <class P, class Parker, class Object>
class CondVar {
 public:
  using Node = CondNode<P, Parker>;

  // Links the caller as the youngest waiter. Call before the mutex is released.
  static void enlist(Object object, Node& node) {
    node.state.store(Node::kLinked, MemoryOrder::kRelaxed);  // C1 publishes
    lock(object);
    drop_ghosts(object);
    Node* last = object.tail().load(MemoryOrder::kRelaxed);
    node.previous = last;
    if (last != nullptr) {
      last->next = &node;
    } else {
      object.head().store(&node, MemoryOrder::kRelease);  // C2
    }
    object.tail().store(&node, MemoryOrder::kRelaxed);
    unlock(object);
  }

  // After a time-out or a cancellation. True: the caller has left without a signal. False: it has
  // been signalled; a post has come or is on its way and must be waited for.
  static bool leave(Object object, Node& node) {
    std::uint32_t linked = Node::kLinked;
    // Against take(): one of the two wins; what a winning take() has written is seen here (C3).
    if (!node.state.compare_exchange(linked, Node::kLeaving, MemoryOrder::kAcqRel)) return false;
    lock(object);
    unlink(object, node);
    unlock(object);
    return true;
  }

  static void signal(Object object) {
    if (object.head().load(MemoryOrder::kAcquire) == nullptr) return;  // C2
    if (belongs_to_a_child(object)) return;
    lock(object);
    drop_ghosts(object);
    Node* node = object.head().load(MemoryOrder::kRelaxed);
    while (node != nullptr && !take(*node)) node = node->next;
    if (node != nullptr) {
      unlink(object, *node);
      object.unconfirmed().fetch_add(1, MemoryOrder::kRelaxed);  // before the post
    }
    unlock(object);
    if (node != nullptr) node->parker.post();
  }

  // A waiter that has been taken and posted: its last access to the object.
  static void confirm(Object object, const Node& node) {
    if (!node.by_broadcast) object.unconfirmed().fetch_sub(1, MemoryOrder::kRelease);  // C4
  }

  // A waiter that has been taken and posted, but will not act on it: a signal goes to the next one.
  static void hand_back(Object object, const Node& node) {
    if (!node.by_broadcast) signal(object);
    confirm(object, node);
  }

  static void broadcast(Object object) {
    if (object.head().load(MemoryOrder::kAcquire) == nullptr) return;  // C2
    if (belongs_to_a_child(object)) return;
    lock(object);
    drop_ghosts(object);
    Node* first = nullptr;
    Node* last = nullptr;
    Node* node = object.head().load(MemoryOrder::kRelaxed);
    while (node != nullptr) {
      Node* next = node->next;
      // A waiter may leave its frame only after its post, so the list of the taken stays valid.
      if (node->state.load(MemoryOrder::kRelaxed) == Node::kLinked) {
        node->by_broadcast = true;
        if (take(*node)) {
          unlink(object, *node);
          node->next = nullptr;
          if (last != nullptr) last->next = node;
          if (first == nullptr) first = node;
          last = node;
        }
      }
      node = next;
    }
    unlock(object);
    post_all(first);
  }

  // Returns when nobody is inside any more.
  static void destroy(Object object, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    for (;;) {
      lock(object);
      drop_ghosts(object);
      const bool empty = object.head().load(MemoryOrder::kRelaxed) == nullptr &&
                         object.unconfirmed().load(MemoryOrder::kAcquire) == 0;  // C4
      unlock(object);
      if (empty) return;
      spinner.nap(object.lock(), object.lock().load(MemoryOrder::kRelaxed));
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kContended = 2;
  static constexpr std::uint32_t kStateMask = 3;

  static bool take(Node& node) {
    std::uint32_t linked = Node::kLinked;
    return node.state.compare_exchange(linked, Node::kTaken, MemoryOrder::kAcqRel);  // C3
  }

  // The object may be gone after the first post, a node after its own.
  static void post_all(Node* first) {
    for (Node* node = first; node != nullptr;) {
      Node* next = node->next;
      node->parker.post();
      node = next;
    }
  }

  static void unlink(Object object, Node& node) {
    if (node.previous != nullptr) {
      node.previous->next = node.next;
    } else {
      object.head().store(node.next, MemoryOrder::kRelease);  // C2
    }
    if (node.next != nullptr) {
      node.next->previous = node.previous;
    } else {
      object.tail().store(node.previous, MemoryOrder::kRelaxed);
    }
  }

  // ---- the small lock: held for a few instructions; its owner may lose its CPU meanwhile ----

  static std::uint32_t stamp() { return P::epoch() << 2; }

  static void lock(Object object) {
    constexpr int kSpins = 100;
    typename P::Atomic32& cell = object.lock();
    std::uint32_t want = kLocked;
    for (int spins = 0;; ++spins) {
      std::uint32_t seen = cell.load(MemoryOrder::kRelaxed);
      const bool ghost = (seen & ~kStateMask) != stamp();  // held when the process was forked
      if ((seen & kStateMask) == kFree || ghost) {
        if (cell.compare_exchange(seen, stamp() | want, MemoryOrder::kAcquire)) return;  // C1
        continue;
      }
      if (spins < kSpins) {
        P::pause();
        continue;
      }
      want = kContended;
      const std::uint32_t contended = stamp() | kContended;
      if (seen != contended && !cell.compare_exchange(seen, contended, MemoryOrder::kRelaxed)) {
        continue;
      }
      (void)P::futex_wait(cell, contended, kAnyBit, nullptr);
    }
  }

  static void unlock(Object object) {
    typename P::Atomic32& cell = object.lock();
    const void* const address = &cell;
    if ((cell.exchange(stamp(), MemoryOrder::kRelease) & kStateMask) == kContended) {  // C1
      P::futex_wake(address, 1, kAnyBit);
    }
  }

  // In memory shared with a child of this process the list may be the child's: its waiters are
  // neither ghosts nor ours to wake. (A private object there is the program's mistake.)
  static bool belongs_to_a_child(Object object) {
    const std::uint32_t ahead = object.list_epoch().load(MemoryOrder::kRelaxed) - P::epoch();
    return static_cast<std::int32_t>(ahead) > 0;
  }

  // In a forked child the list may hold waiters that do not exist here. The free lock keeps the
  // epoch of its last owner, so the first owner in the child knows.
  static void drop_ghosts(Object object) {
    typename P::Atomic32& list_epoch = object.list_epoch();
    if (list_epoch.load(MemoryOrder::kRelaxed) == P::epoch()) return;  // under the lock: C1
    list_epoch.store(P::epoch(), MemoryOrder::kRelaxed);
    object.head().store(nullptr, MemoryOrder::kRelease);  // C2
    object.tail().store(nullptr, MemoryOrder::kRelaxed);
    object.unconfirmed().store(0, MemoryOrder::kRelaxed);
  }
};

}  // namespace relock
