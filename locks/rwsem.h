// rwsem: a readers-writer lock whose writers spin for it and may steal it from queued writers.
//
// The idea: one word says who holds the lock. Readers come in side by side while no writer holds
// it. Writers that have to wait elect one of them, the head, by taking a small mutex (`queue`);
// only the head watches the word, the others spin or sleep in front of the mutex as in front of any
// other. A writer that arrives while the lock is free takes it although the head has not woken up
// yet: that is write-lock stealing, and it saves two context switches for each hand-off. Theft has
// a bound: a head or a reader that has waited for promote_ns says so in the word, and from then on
// no writer passes it.
//
// State, 64 bits (0: free; a static initialiser leaves it so):
//
//    63             40 39 38 37 36 35 34 33 32 31 30                   3 2    0
//   +-----------------+-----+--+--+--+--+--+--+--+----------------------+------+
//   |      epoch      |     |HS|RS|RF|WF|NR|W |0 |       readers        |unused|
//   +-----------------+-----+--+--+--+--+--+--+--+----------------------+------+
//     readers where the C library has them, so that debuggers show the right number
//     W   a writer holds the lock
//     NR  no readers: a writer waits, and the lock's kind gives it the lock next
//     WF  writer first: the head has waited long, others must not steal
//     RF  readers first: a reader has waited long, no writer may take the lock before a reader has
//     RS  readers sleep on `readers_gate`
//     HS  the head sleeps on `head_gate`
//     epoch: low bits of P::epoch() when the first of NR to HS was set; in a forked child they are
//     ghosts and are dropped
//
// Transitions (R is one reader in the count):
//   no W, no NR       -> +R, RF cleared        a reader comes in, also beside a waiting head
//   no W, readers 0, no RF, no WF -> W         a writer takes or steals it
//   no W, readers 0, no RF -> W, WF HS cleared      the head takes it; NR stays, or is set, if
//                                              others queue and the kind prefers writers
//   +R                -> -R                    a reader leaves; the last one wakes a sleeping head
//   W                 -> no W, RS HS cleared   the writer leaves, wakes the readers and the head
//   any               -> NR, WF, RF, RS, HS    a waiter that cannot come in says what it wants
//   NR WF HS          -> cleared               the head gives up, or the last of the queue has; it
//                                              wakes the readers that NR held
//
// Preference is glibc's. The default kind lets readers in whenever readers hold the lock, so that a
// thread may take the read lock again while a writer waits, and a stream of readers may starve
// writers. The kinds that prefer writers hand over from writer to writer as long as one waits: NR
// stays set from one to the next. They differ in what a waiting writer does to readers beside those
// who hold the lock: the nonrecursive kind keeps them out by NR as well. RF is used with neither.
//
// Memory order:
//   R1  taking W or +R is a compare-exchange (acquire) on the word that a leaving holder wrote by
//       compare-exchange (release): its critical section is visible.
//   R2  a sleeper reads its gate's sequence (acquire) before it looks at the word. Who wakes it:
//       takes its bit (RS, HS) away, advances the sequence (release), lets go, and only then wakes.
//       A sleeper that saw the bit still there has the old sequence, and its futex_wait refuses or
//       the wake finds it; one that sets the bit again makes the leaving compare-exchange fail, and
//       it all starts over. The bit must go first: with the sequence alone, a sleeper that sets its
//       bit a second time could leave the word as it was and sleep on the new number.
//   R3  a waiter says what it wants (NR to HS) by compare-exchange on the word that still shows
//       that it may not come in: whoever leaves works on the same word and finds it there.
//   R4  NR without a head needs somebody in the queue who will be head, or take NR away. Who queues
//       shows in the queue's word. The head that has left NR set for them looks at that word again
//       after it has left the queue (a read-modify-write, release); one that gives up first leaves
//       the word and then takes the free queue (acquire). Of the two changes of one word one comes
//       second: if the head's, it sees the queue empty, if the other's, it sees NR.
//   Last touch: the leaving compare-exchange; the wakes after it use addresses only.
//
// Source: Alex Shi, rwsem write lock stealing (2013); the election of one waiting writer and the
// bounds are ours.
#pragma once

#include <utility>

#include "allowance.h"
#include "gate.h"
#include "rw_preference.h"
#include "tas.h"

namespace relock {

// `Object` gives access to one lock: state() is a P::Atomic64&, readers_gate(), head_gate() and
// tuning() are P::Atomic32&, queue() is a view for GatedMutex (gate.h), preference() an
// RwPreference, writer() a P::Atomic32& with the writer's thread, 0 when unknown.
// tuning: bits 16-31 the learned spin allowance of readers and of the head.
template <class P, class Object>
class RwSem {
 public:
  using Word = typename P::Atomic32;
  using Queue = GatedMutex<P, Tas, decltype(std::declval<Object>().queue())>;

  using State = typename P::Atomic64;
  using Bits = std::uint64_t;

  static constexpr Bits kWriter = Bits{1} << 32;
  static constexpr Bits kNoReaders = Bits{1} << 33;
  static constexpr Bits kWriterFirst = Bits{1} << 34;
  static constexpr Bits kReadersFirst = Bits{1} << 35;
  static constexpr Bits kReadersSleep = Bits{1} << 36;
  static constexpr Bits kHeadSleeps = Bits{1} << 37;
  static constexpr Bits kWaiters =
      kNoReaders | kWriterFirst | kReadersFirst | kReadersSleep | kHeadSleeps;
  static constexpr int kEpochShift = 40;
  static constexpr Bits kEpochMask = Bits{0xffffff} << kEpochShift;
  static constexpr Bits kReader = 1u << 3;
  static constexpr Bits kReadersMask = 0x7ffffff8;

  // The count is full: glibc's EAGAIN.
  static bool full(Bits w) { return (w & kReadersMask) == kReadersMask; }

  // ---- trying; never waits ----

  static bool try_read(Object object) {
    Bits w = look(object);
    while (readers_may(w)) {
      if (take_read(object, w)) return true;
    }
    return false;
  }
  static bool try_write(Object object) {
    Bits w = look(object);
    while (writers_may(w)) {
      if (object.state().compare_exchange(w, w | kWriter, MemoryOrder::kAcquire))
        return true;  // R1
    }
    return false;
  }

  // ---- waiting ----

  // kTimedOut also when the count of readers is full; the caller looks at the word before.
  static Acquire read_slow(Object object, WaitContext<P>& context) {
    const bool runs = writer_runs(object);
    context.spin_pauses = runs ? Allowance::of(object.tuning(), *context.budget) : 0;
    const Acquire result = wait_to_read(object, context);
    if (runs && result == Acquire::kAcquired) Allowance::learn(object.tuning(), context);
    return result;
  }

  // `self`: the calling thread, for those that will queue behind it.
  static Acquire write_slow(Object object, WaitContext<P>& context, std::uint32_t self) {
    if (try_write(object)) return Acquire::kAcquired;
    auto queue = object.queue();
    Queue::forget_parent(queue);
    std::uint32_t expected = MutexLayout::kFree;
    if (!queue.word().compare_exchange(expected, MutexLayout::kLocked, MemoryOrder::kAcquire) &&
        Queue::lock_slow(queue, context) == Acquire::kTimedOut) {
      mind_no_readers(object, *context.budget);
      return Acquire::kTimedOut;
    }
    queue.owner().store(self, MemoryOrder::kRelaxed);  // a hint for those behind
    const bool runs = writer_runs(object);
    context.spin_pauses = runs ? Allowance::of(object.tuning(), *context.budget) : 0;
    context.pauses = 0;
    context.spinning_failed = false;
    const Acquire result = wait_as_head(object, context);
    if (runs && result == Acquire::kAcquired) Allowance::learn(object.tuning(), context);
    leave_queue(queue, *context.budget);
    if (result == Acquire::kAcquired) mind_no_readers(object, *context.budget);
    return result;
  }

  // ---- leaving ----

  // A lock that nobody reads stays as it is.
  static void release_read(Object object) {
    const void* const head_address = &object.head_gate();
    bool wakes_head = false;
    Bits w = look(object);
    while ((w & kReadersMask) != 0) {
      const Bits seen = w;
      if ((w & kReadersMask) == kReader && claim_head(object, w)) {
        wakes_head = true;
      } else if (w == seen && leave(object, w, w - kReader)) {
        break;
      }
    }
    if (wakes_head) P::futex_wake(head_address, 1, kAnyBit);
  }

  // A lock that no writer holds stays as it is.
  static void release_write(Object object) {
    const void* const head_address = &object.head_gate();
    const void* const readers_address = &object.readers_gate();
    bool wakes_head = false;
    bool wakes_readers = false;
    Bits w = look(object);
    while ((w & kWriter) != 0) {
      const Bits seen = w;
      if (claim_readers(object, w)) {
        wakes_readers = true;
      } else if (claim_head(object, w)) {
        wakes_head = true;
      } else if (w == seen && leave(object, w, w & ~kWriter)) {
        break;
      }
    }
    if (wakes_readers) P::futex_wake(readers_address, kEverybody, kAnyBit);
    if (wakes_head) P::futex_wake(head_address, 1, kAnyBit);
  }

 private:
  using Allowance = SpinAllowance<P, 16>;
  static constexpr int kEverybody = 0x7fffffff;

  // ---- the word ----

  static bool readers_may(Bits w) { return (w & (kWriter | kNoReaders)) == 0 && !full(w); }
  static bool writers_may(Bits w) {
    return (w & (kWriter | kWriterFirst | kReadersFirst | kReadersMask)) == 0;
  }
  static bool head_may(Bits w) { return (w & (kWriter | kReadersFirst | kReadersMask)) == 0; }

  static Bits epoch_bits() { return (Bits{P::epoch()} << kEpochShift) & kEpochMask; }
  static Bits with(Bits w, Bits waiters) {
    return (w & kWaiters) != 0 ? w | waiters : (w & ~kEpochMask) | waiters | epoch_bits();
  }
  static Bits tidy(Bits w) { return (w & kWaiters) != 0 ? w : w & ~kEpochMask; }

  // The word without the ghosts of a parent.
  static Bits look(Object object) {
    Bits w = object.state().load(MemoryOrder::kAcquire);
    while ((w & kWaiters) != 0 && (w & kEpochMask) != epoch_bits()) {
      const Bits mended = w & ~(kWaiters | kEpochMask);
      if (object.state().compare_exchange(w, mended, MemoryOrder::kRelaxed)) return mended;
    }
    return w;
  }

  static bool take_read(Object object, Bits& w) {
    const Bits taken = tidy(w & ~kReadersFirst) + kReader;
    return object.state().compare_exchange(w, taken, MemoryOrder::kAcquire);  // R1
  }

  // The last touch of a holder, on a word that shows nobody whom it would have to wake.
  static bool leave(Object object, Bits& w, Bits left) {
    return object.state().compare_exchange(w, tidy(left), MemoryOrder::kRelease);  // R1
  }

  // Takes charge of those who sleep on `gate` and have set `bit`. `w` is kept up to date. True: the
  // caller wakes them when it is done.
  static bool claim(Object object, Bits& w, Bits bit, Word& gate) {
    while ((w & bit) != 0) {
      const Bits claimed = tidy(w & ~bit);
      if (!object.state().compare_exchange(w, claimed, MemoryOrder::kAcqRel)) continue;
      gate.fetch_add(1, MemoryOrder::kRelease);  // R2
      w = claimed;
      return true;
    }
    return false;
  }
  // Readers that NR keeps out sleep on.
  static bool claim_readers(Object object, Bits& w) {
    return (w & kNoReaders) == 0 && claim(object, w, kReadersSleep, object.readers_gate());
  }
  static bool claim_head(Object object, Bits& w) {
    return claim(object, w, kHeadSleeps, object.head_gate());
  }

  // False: a writer holds the lock that was last seen on this very CPU.
  static bool writer_runs(Object object) {
    P::note_cpu();
    return !P::was_here(object.writer().load(MemoryOrder::kRelaxed));  // a hint
  }

  // ---- sleeping ----

  // For how long a waiter lets others pass: promote_ns from its first look.
  class Patience {
   public:
    explicit Patience(const WaitContext<P>& context)
        : context_(&context), end_(P::after_ns(context.budget->promote_ns)) {}

    bool spent() const { return spent_; }
    // Looks at the clock now and then; a waiter that spins has no other occasion.
    void look() {
      constexpr std::uint32_t kEvery = 64;
      if (++looks_ % kEvery == 0 && context_->spins_only()) look_now();
    }
    void look_now() { spent_ = spent_ || P::expired(end_); }
    // When a sleep must end: null for never.
    const Deadline* until() const {
      const Deadline* const limit = context_->deadline;
      if (spent_) return limit;
      return limit == nullptr || ends_before<P>(end_, *limit) ? &end_ : limit;
    }

   private:
    const WaitContext<P>* context_;
    Deadline end_;
    std::uint32_t looks_ = 0;
    bool spent_ = false;
  };

  // One step of a waiter that may not come in: says in the word what it wants, else pauses, else
  // sets `asleep` and sleeps on `gate`, whose sequence it read before it looked at the word.
  static void wait(Object object, Bits w, Bits wants, Bits asleep, Word& gate,
                   std::uint32_t sequence, Spinner<P>& spinner, WaitContext<P>& context,
                   Patience& patience) {
    patience.look();
    const bool said = (w & wants) == wants;
    if (said && spinner.spin(gate, sequence)) return;
    if (said) context.going_to_sleep();  // before we can be served: nobody else shall pay for it
    const Bits next = with(w, said ? wants | asleep : wants);
    if (next != w && !object.state().compare_exchange(w, next, MemoryOrder::kAcqRel)) return;  // R3
    if (!said) return;
    (void)P::futex_wait(gate, sequence, kAnyBit, patience.until());  // R2
    patience.look_now();
  }

  static Acquire wait_to_read(Object object, WaitContext<P>& context) {
    Spinner<P> spinner(context);
    Patience patience(context);
    for (;;) {
      const std::uint32_t sequence = object.readers_gate().load(MemoryOrder::kAcquire);  // R2
      Bits w = look(object);
      if (readers_may(w)) {
        if (take_read(object, w)) return Acquire::kAcquired;
        continue;
      }
      if (full(w)) return Acquire::kTimedOut;
      if (late(context)) return give_up_reading(object, patience.spent());
      const bool insists = patience.spent() && object.preference() == RwPreference::kReaders;
      wait(object, w, insists ? kReadersFirst : Bits{0}, kReadersSleep, object.readers_gate(),
           sequence, spinner, context, patience);
    }
  }

  static bool late(const WaitContext<P>& context) {
    return context.deadline != nullptr && P::expired(*context.deadline);
  }

  // RF would keep writers away from a free lock; who else wants it sets it again. A head that RF
  // has kept asleep must look again.
  static Acquire give_up_reading(Object object, bool insisted) {
    Bits w = look(object);
    while (insisted && (w & kReadersFirst) != 0) {
      const Bits left = tidy(w & ~kReadersFirst);
      if (!object.state().compare_exchange(w, left, MemoryOrder::kAcqRel)) continue;
      w = left;
      if (claim_head(object, w)) P::futex_wake(&object.head_gate(), 1, kAnyBit);
      break;
    }
    return Acquire::kTimedOut;
  }

  // The caller owns the queue, so it is the only one here.
  static Acquire wait_as_head(Object object, WaitContext<P>& context) {
    Word& gate = object.head_gate();
    Spinner<P> spinner(context);
    Patience patience(context);
    const RwPreference preference = object.preference();
    for (;;) {
      const std::uint32_t sequence = gate.load(MemoryOrder::kAcquire);  // R2
      Bits w = look(object);
      if (head_may(w)) {
        const Bits left = tidy(w & ~(kNoReaders | kWriterFirst | kHeadSleeps));
        const bool another = preference != RwPreference::kReaders && others_queue(object.queue());
        const Bits taken = (another ? with(left, kNoReaders) : left) | kWriter;
        if (object.state().compare_exchange(w, taken, MemoryOrder::kAcquire)) {
          return Acquire::kAcquired;  // R1
        }
        continue;
      }
      if (late(context)) return give_up_writing(object);
      const Bits wants = no_readers(preference, w) | (patience.spent() ? kWriterFirst : Bits{0});
      wait(object, w, wants, kHeadSleeps, gate, sequence, spinner, context, patience);
    }
  }

  // What a waiting head demands besides its turn.
  static Bits no_readers(RwPreference preference, Bits w) {
    const bool after_writer = preference == RwPreference::kWriters && (w & kWriter) != 0;
    return after_writer || preference == RwPreference::kWritersAlone ? kNoReaders : Bits{0};
  }

  // Somebody waits behind the head, which is the caller.
  template <class View>
  static bool others_queue(View queue) {
    return (queue.word().load(MemoryOrder::kRelaxed) & ~MutexLayout::kLocked) !=
           0;  // R4 looks again
  }

  // By one that has left the queue. If nobody is there any more, nobody else would take NR away.
  static void mind_no_readers(Object object, const Budget& budget) {
    if (object.preference() == RwPreference::kReaders) return;
    auto queue = object.queue();
    if (queue.word().load(MemoryOrder::kAcquire) != MutexLayout::kFree) return;  // R4
    if (!Queue::try_lock(queue)) return;                                         // R4
    if ((look(object) & kNoReaders) != 0) (void)give_up_writing(object);
    leave_queue(queue, budget);
  }

  // Readers that NR has kept asleep come in now; if a writer holds the lock, it will wake them.
  static Acquire give_up_writing(Object object) {
    Bits w = look(object);
    for (;;) {
      const Bits left = tidy(w & ~(kNoReaders | kWriterFirst | kHeadSleeps));
      if (w == left || object.state().compare_exchange(w, left, MemoryOrder::kAcqRel)) {
        w = left;
        break;
      }
    }
    if ((w & kWriter) == 0 && claim_readers(object, w)) {
      P::futex_wake(&object.readers_gate(), kEverybody, kAnyBit);
    }
    return Acquire::kTimedOut;
  }

  template <class View>
  static void leave_queue(View queue, const Budget& budget) {
    queue.owner().store(0, MemoryOrder::kRelaxed);
    std::uint32_t expected = MutexLayout::kLocked;
    if (queue.word().compare_exchange(expected, MutexLayout::kFree, MemoryOrder::kRelease)) return;
    Queue::unlock_slow(queue, budget);
  }
};

}  // namespace relock
