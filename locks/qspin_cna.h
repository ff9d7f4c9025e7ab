// SlowPath of cna: a NUMA-aware queue.
//
// The idea: the lock and what it protects stay in one node's caches as long as waiters of that node
// are served. The owner of the MCS role looks for the next waiter of its own node; those of other
// nodes that it passes over move, in order, to a secondary queue. When nobody of this node waits,
// or after a bounded number of hand-offs inside it, the secondary queue goes back to the front.
//
// Word: qspin_core.h, which has the diagram; nothing beyond qspinlock's is in it. In the node of
// the MCS role's owner, and handed on with the role:
//   main queue       owner -> next -> ... -> tail (in the word)        waiters of any NUMA node
//   secondary queue  secondary_head -> ... -> secondary_tail -> null   passed over, in their order
//   local_hand_offs  how often the role has stayed in this NUMA node
//
// Transitions (M main queue behind the owner, S secondary queue, k local hand-offs):
//   M = x.. y r, y local   -> M = y r, S = S x..     the owner sets others aside (set_aside)
//   M = y r,     y local   -> y owner, M = r, k+1    hand-off inside the node
//   M = m, none local or k at its bound -> M = S m, S empty, k = 0: its first is the owner (flush)
//   M empty, S empty       -> tail 0, L              the queue ends
//   M empty, S not         -> tail of S, L           the secondary queue is the main one now
//
// Search: a pre-scan while the head still waits for the lock, from its successor on; if that found
// nobody, a post-scan from where it stopped, once the lock is taken. Shuffle reduction: with an
// empty secondary queue all but one in kShuffleOneIn searches are skipped.
//
// Order: first come, first served inside a node. A waiter of another node is passed over by at most
// Budget::local_hand_offs consecutive hand-offs (65536 by default), then its queue is served.
//
// Memory order: P1 to P6 of qspin_core.h, and
//   S1  the secondary queue, the fields and links of waiters set aside (plain or relaxed) belong to
//       the owner of the role alone: the grant (release, P4) hands them to the next one (acquire).
//       The tail that ends the main queue is a compare-exchange (P1, P2), so a newcomer that links
//       itself behind the secondary queue's last waiter finds its node initialised.
//
// Source: CNA v8 (Alex Kogan, Dave Dice; "Compact NUMA-aware locks", EuroSys 2019), as in the patch
// series for the Linux kernel. Ours: the secondary queue is a plain list with head and tail in the
// role owner's node instead of a circular one.
#pragma once

#include "qspin_core.h"

namespace relock {

template <class P, class Layout>
struct QspinCna {
  using Word = typename P::Atomic32;
  using Node = QueueNode<P>;
  using Queue = QspinQueue<P, Layout>;

  static constexpr bool kUsesPending = true;
  static constexpr std::uint32_t kShuffleOneIn = 128;

  static constexpr bool can_take(std::uint32_t word) {
    return (word & (Layout::kHeld | Queue::kWaiterMask)) == 0;
  }
  static void init_node(Node& node) {
    node.numa_node = P::node();
    node.secondary_head = nullptr;
    node.secondary_tail = nullptr;
    node.local_hand_offs = 0;
  }
  static void wait_node(Node& node, const Node&, WaitContext<P>& context) {
    Queue::wait_node(node, context);
  }
  static const void* kick(Word&) { return nullptr; }

  static void take_as_head(Word& word, SlotTable<P>& slots, Node& node, WaitContext<P>& context) {
    Search search{nullptr, nullptr};
    const bool searching = shall_search(node, *context.budget);
    if (searching) scan(node, search);  // pre-scan
    Queue::wait_head(word, context);
    if (take_and_end(word, slots, node)) return;
    if (searching && search.local == nullptr) scan(node, search);  // post-scan
    hand_off(node, search.local, context);
  }

 private:
  struct Search {
    Node* last;   // the last waiter looked at; null: none yet
    Node* local;  // the first one of our node; null: not found
  };

  static bool shall_search(const Node& node, const Budget& budget) {
    if (node.local_hand_offs >= budget.local_hand_offs) return false;  // time to flush
    return node.secondary_head != nullptr || P::choose(kShuffleOneIn) == 0;
  }

  // Looks at linked waiters only: who has taken the tail but not linked itself is not waited for.
  static void scan(Node& node, Search& search) {
    Node* at = search.last == nullptr ? &node : search.last;
    for (;;) {
      Node* next = at->next.load(MemoryOrder::kAcquire);  // P3
      if (next == nullptr) return;
      if (next->numa_node == node.numa_node) {
        search.local = next;
        if (at != &node) set_aside(node, *at, *next);
        return;
      }
      search.last = next;
      at = next;
    }
  }

  // Moves node.next .. last, which lie before `local`, to the end of the secondary queue.
  static void set_aside(Node& node, Node& last, Node& local) {
    Node* first = node.next.load(MemoryOrder::kRelaxed);
    last.next.store(nullptr, MemoryOrder::kRelaxed);  // S1: the owner's until the role is passed
    if (node.secondary_tail != nullptr) {
      node.secondary_tail->next.store(first, MemoryOrder::kRelaxed);
    } else {
      node.secondary_head = first;
    }
    node.secondary_tail = &last;
    node.next.store(&local, MemoryOrder::kRelaxed);
  }

  // As the last of the main queue: ends it, or makes the secondary queue the main one. True: done.
  static bool take_and_end(Word& word, SlotTable<P>& slots, Node& node) {
    const std::uint32_t mine = slots.tail_of(&node);
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    while (Queue::tail(w) == mine) {
      const bool alone = node.secondary_head == nullptr;
      const std::uint32_t left = alone ? Queue::without_waiters(w)
                                       : Queue::with_tail(w, slots.tail_of(node.secondary_tail));
      if (word.compare_exchange(w, left | Layout::kLocked, MemoryOrder::kAcqRel)) {  // P1, P2
        if (!alone) pass_role(*node.secondary_head, nullptr, nullptr, 0);
        return true;
      }
    }
    word.fetch_or(Layout::kLocked, MemoryOrder::kAcquire);  // P1: nobody else may set it now
    return false;
  }

  static void hand_off(Node& node, Node* local, WaitContext<P>& context) {
    if (local != nullptr) {
      return pass_role(*local, node.secondary_head, node.secondary_tail, node.local_hand_offs + 1);
    }
    Node& next = Queue::linked_successor(node, context);
    if (node.secondary_head == nullptr) return pass_role(next, nullptr, nullptr, 0);
    // Flush: the secondary queue goes before the rest of the main one.
    node.secondary_tail->next.store(&next, MemoryOrder::kRelaxed);  // S1
    pass_role(*node.secondary_head, nullptr, nullptr, 0);
  }

  static void pass_role(Node& next, Node* secondary_head, Node* secondary_tail,
                        std::uint32_t local_hand_offs) {
    next.secondary_head = secondary_head;
    next.secondary_tail = secondary_tail;
    next.local_hand_offs = local_hand_offs;
    Queue::grant(next);  // P4
  }
};

template <class P, class Layout>
using Cna = QspinCore<P, Layout, QspinCna>;

}  // namespace relock
