// auto-ticket: a ticket lock at low contention, a queued one at high.
//
// The idea: with few waiters nothing beats looking at the lock word. With many, every release makes
// all of them fetch the word again. So a waiter that finds kQueueAt others ahead of it takes a
// queue for the lock from a fixed table hashed by the lock's address; from then on each waiter
// looks at an element of its own in that queue, and the releaser touches only the next one's. When
// a release finds nobody waiting, the queue goes back and the lock is a plain ticket lock again.
//
// Word (dots: word.h):
//    31     26 25     20 19   6  5  4 3 2 1 0
//   +---------+---------+-------+--+--+-----+-+
//   |  tail   |  head   |. . . .|Q |S |. . O|L|  mutex
//   +---------+---------+-------+--+--+-----+-+
//    31 30  24 23      16 15       9 8      1 0
//   +--+-----+----------+-----------+--------+-+
//   |Q |. . .|   tail   |  . . . .  |  head  |L|  spinlock
//   +--+-----+----------+-----------+--------+-+
// All as in ticket.h, and Q: a queue may be serving this lock. Tickets decide who owns the lock, in
// both modes; the queue only says when to look. So everything about queues may be late or missing
// without harm: with the whole table in use the lock stays a ticket lock, and in every transition a
// waiter that finds no queue looks at the word.
//
// Transitions:
//   L, waiters         -> Q     a waiter that has claimed a queue for this lock. If another set Q
//                               first, the claimed queue is given back and the other's is joined.
//   Q, head h -> h+1            release: then the element of ticket h changes its value
//   Q, no waiters      -> free  release: the queue is given back before; a waiter that arrives in
//                               that moment wins, and finds Q without a queue
//
// Memory order: P1 and P2 of ticket.h, and
//   A1  an element's value is read before the word (acquire): if the word does not show the ticket
//       served, the change of the element that follows the serving release is still to come.
//       The element goes up (release) after the serving release, so who sees it changed and then
//       reads the word (acquire) cannot read it as it was before.
//   A2  a queue's owner address (release) -> look-ups (acquire). A stale look-up costs a look.
//   A3  Q is set by compare-exchange on the word that shows our ticket waiting: the release that
//       ends the waiting works on the same word, so it finds Q and gives the queue back.
//
// Source: auto-queued ticket lock, v3 (Paul E. McKenney, 2013). Ours: a bit of its own says
// "queued" instead of the head's low bit, and elements are found by ticket number instead of being
// linked, so handing over needs no list.
#pragma once

#include "ticket.h"

namespace relock {

template <class P>
struct TicketQueue {
  static constexpr std::uint32_t kElements = 32;

  struct alignas(64) Element {
    typename P::Atomic32 turn;
  };

  typename P::template AtomicPtr<const void> lock;  // null: free
  Element elements[kElements];
};

template <class P>
class TicketQueueTable {
 public:
  using Queue = TicketQueue<P>;

  constexpr TicketQueueTable() = default;
  TicketQueueTable(Queue* queues, std::uint32_t count) : queues_(queues), count_(count) {}

  Queue* find(const void* lock) {
    for (std::uint32_t probe = 0; probe < count_; ++probe) {
      Queue& queue = at(lock, probe);
      if (queue.lock.load(MemoryOrder::kAcquire) == lock) return &queue;  // A2
      if (probe == kProbes) break;
    }
    return nullptr;
  }

  // Null: all places near this lock's are in use.
  Queue* claim(const void* lock) {
    for (std::uint32_t probe = 0; probe < count_; ++probe) {
      Queue& queue = at(lock, probe);
      const void* free = nullptr;
      if (queue.lock.load(MemoryOrder::kRelaxed) == nullptr &&
          queue.lock.compare_exchange(free, lock, MemoryOrder::kAcqRel)) {  // A2
        return &queue;
      }
      if (probe == kProbes) break;
    }
    return nullptr;
  }

  static void give_back(Queue& queue) { queue.lock.store(nullptr, MemoryOrder::kRelease); }  // A2

 private:
  static constexpr std::uint32_t kProbes = 8;

  Queue& at(const void* lock, std::uint32_t probe) {
    const auto number = reinterpret_cast<std::uintptr_t>(lock) >> 2;
    const auto home = static_cast<std::uint32_t>(number * 0x9e3779b97f4a7c15u >> 32);
    return queues_[(home + probe) % count_];
  }

  Queue* queues_ = nullptr;
  std::uint32_t count_ = 0;
};

template <class P, class Layout>
struct TicketQueued {
  using Word = typename P::Atomic32;
  using Queue = TicketQueue<P>;

  static constexpr std::uint32_t kQueueAt = 8;

  TicketQueued(Word&, const WaitContext<P>&) {}
  void served() {}

  bool spin(Word& word, std::uint32_t w, std::uint32_t mine, std::uint32_t ahead,
            Spinner<P>& spinner) {
    TicketQueueTable<P>* table = P::ticket_queues();
    if (table == nullptr) return spinner.spin(word, w);
    if ((w & Layout::kQueued) == 0) {
      if (ahead >= kQueueAt) start_queue(word, w, *table);
      return spinner.spin(word, w);
    }
    Queue* queue = table->find(&word);
    if (queue == nullptr) return spinner.spin(word, w);
    return spin_on_element(word, w, queue->elements[mine % Queue::kElements].turn, spinner);
  }

  static ReleaseNote<P> note_serving(Word& word, std::uint32_t w, std::uint32_t ticket) {
    Queue* queue = queue_of(word, w);
    if (queue == nullptr) return {};
    return {nullptr, &queue->elements[ticket % Queue::kElements].turn};
  }
  static ReleaseNote<P> note_free(Word& word, std::uint32_t w) {
    if (Queue* queue = queue_of(word, w); queue != nullptr) TicketQueueTable<P>::give_back(*queue);
    return {};
  }

 private:
  static Queue* queue_of(Word& word, std::uint32_t w) {
    if ((w & Layout::kQueued) == 0 || P::ticket_queues() == nullptr) return nullptr;
    return P::ticket_queues()->find(&word);
  }

  static void start_queue(Word& word, std::uint32_t w, TicketQueueTable<P>& table) {
    Queue* queue = table.claim(&word);
    if (queue == nullptr) return;  // the whole neighbourhood is in use: stay a ticket lock
    // Our own ticket is waiting, so the lock is held and Q cannot meet a free word.
    while (!word.compare_exchange(w, w | Layout::kQueued, MemoryOrder::kAcqRel)) {  // A3
      if ((w & Layout::kQueued) != 0) return TicketQueueTable<P>::give_back(*queue);
    }
  }

  // A short look at the element, then the caller looks at the word again: the queue may have gone.
  static bool spin_on_element(Word& word, std::uint32_t w, Word& turn, Spinner<P>& spinner) {
    constexpr int kLooks = 32;
    const std::uint32_t before = turn.load(MemoryOrder::kAcquire);  // A1
    if (word.load(MemoryOrder::kAcquire) != w) return true;         // A1
    for (int look = 0; look < kLooks; ++look) {
      if (!spinner.spin(turn, before)) return false;
      if (turn.load(MemoryOrder::kRelaxed) != before) return true;
    }
    return true;
  }
};

template <class P, class Layout>
using AutoTicket = TicketCore<P, Layout, TicketQueued>;

}  // namespace relock
