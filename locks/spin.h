// Everything about a 4-byte spinlock that does not depend on the algorithm.
//
// The idea: a spinlock's release is a plain step that wakes nobody, so its waiters never sleep for
// good: they pause, and after a millisecond nap in short timed futexes. So that an ordered lock
// does not collapse when threads outnumber CPUs, only about as many threads as there are CPUs
// compete for one word; the others nap outside, in front of a gate that lies in a small table
// hashed by the lock's address. A gate shared by two locks only makes their waiters nap a little
// more often, and after kMostNaps naps a waiter goes in whatever the gate says, so nobody starves
// outside.
//
// Word (word.h says why): what algorithms and this file share
//    31               16 15  13 12   9 8 7           0
//   +-------------------+------+------+-+-------------+
//   |  the algorithm's  | 010  | epoch |.|. . . . . .|L|   010: initialised by us
//   +-------------------+------+------+-+-------------+
//
// Transitions beyond the algorithm's, in the gate's counters and the word:
//   competing n < limit    -> n+1          a waiter goes in (or any n after kMostNaps naps)
//   competing n            -> n-1          it has the lock, or found no ticket or node
//   outside m              -> m+1 .. m     one nap in front, nap_ns * (m+1), at most nap_max_ns
//   waiters of old epoch   -> 010, L kept  anybody in the child: ghosts are dropped
//
// Ghosts: a word with waiters carries the low bits of the epoch in which they came (word.h). A
// forked child that finds waiters of another epoch drops them in one compare-exchange.
//
// Memory order: P1 of the algorithm. The gate's counters order nothing (relaxed): they only say how
// many compete, and a count seen late costs a nap. Nobody is ever woken, so no wake can be lost.
// Dropping ghosts is relaxed: there is nobody to publish anything to.
//
// Source: the gate in front is that of gate.h (Dice and Kogan, Euro-Par 2019). Ours: no list and no
// wake, as the object has no room for one and its release no step to spare.
#pragma once

#include <cstdint>

#include "wait.h"
#include "word.h"

namespace relock {

// Counts are kept by the waiters themselves; the table is wiped in a forked child.
template <class P>
struct alignas(64) SpinGate {
  typename P::Atomic32 competing;  // threads in the algorithm, any lock of this gate
  typename P::Atomic32 outside;    // threads napping in front
};

template <class P, template <class, class> class AlgorithmOf>
class SpinLock {
 public:
  using Layout = SpinLayout;
  using Algorithm = AlgorithmOf<P, Layout>;
  using Word = typename P::Atomic32;

  static bool try_lock(Word& word) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    drop_ghosts(word, w);
    while (Algorithm::can_take(w)) {
      if (word.compare_exchange(w, Algorithm::taken(w), MemoryOrder::kAcquire)) return true;  // P1
    }
    return false;
  }

  static void lock_slow(Word& word, WaitContext<P>& context) {
    const bool gated = !context.spins_only();
    context.patient = true;
    SpinGate<P>* gate = gated ? P::spin_gate(&word) : nullptr;
    Spinner<P> outside(context);
    for (int naps = 0;;) {
      std::uint32_t w = word.load(MemoryOrder::kRelaxed);
      drop_ghosts(word, w);
      if (gate != nullptr && !enter(*gate, naps >= kMostNaps, context)) {
        nap_outside(*gate, word, w, context);
        ++naps;
        if (try_lock(word)) return;
        continue;
      }
      const Joined joined = Algorithm::join(word, context);
      if (gate != nullptr) gate->competing.fetch_sub(1, MemoryOrder::kRelaxed);
      if (joined == Joined::kAcquired) return;
      if (try_lock(word)) return;  // no ticket or node was free: compete without one
      (void)outside.spin(word, w);
    }
  }

  // The releasing store is the last access. An unlocked lock stays as it is.
  static void unlock(Word& word) {
    std::uint32_t w = word.load(MemoryOrder::kRelaxed);
    drop_ghosts(word, w);
    while ((w & Layout::kLocked) != 0) {
      const ReleaseNote<P> note = Algorithm::note(word, nullptr, w);
      if (word.compare_exchange(w, Algorithm::release(w).word, MemoryOrder::kRelease)) {  // P1
        return note.carry_out();
      }
    }
  }

 private:
  static void drop_ghosts(Word& word, std::uint32_t& w) {
    while (Algorithm::has_waiters(w) && Layout::with_epoch(w, P::epoch()) != w) {
      const std::uint32_t mended = Layout::kFree | (w & Layout::kLocked);
      if (word.compare_exchange(w, mended, MemoryOrder::kRelaxed)) {
        w = mended;
        return;
      }
    }
  }

  // Counts the caller in, if there is room or it has waited long enough.
  static bool enter(SpinGate<P>& gate, bool regardless, const WaitContext<P>& context) {
    // Signed: a signal handler that forks while its thread is counted leaves the child at -1.
    const auto limit = static_cast<std::int32_t>(context.budget->admitted_limit);
    std::uint32_t inside = gate.competing.load(MemoryOrder::kRelaxed);
    while (regardless || static_cast<std::int32_t>(inside) < limit) {
      if (gate.competing.compare_exchange(inside, inside + 1, MemoryOrder::kRelaxed)) return true;
    }
    return false;
  }

  // The longer the more others do.
  static void nap_outside(SpinGate<P>& gate, Word& word, std::uint32_t w, WaitContext<P>& context) {
    context.going_to_sleep();
    const std::uint64_t others = gate.outside.fetch_add(1, MemoryOrder::kRelaxed);
    const std::uint64_t wanted = context.budget->nap_ns * (others + 1);
    const std::uint64_t most = context.budget->nap_max_ns;
    const Deadline until = P::after_ns(wanted < most ? wanted : most);
    (void)P::futex_wait(word, w, wake_bit::kNap, &until);
    gate.outside.fetch_sub(1, MemoryOrder::kRelaxed);
  }

  static constexpr int kMostNaps = 16;
};

}  // namespace relock
