// The lock templates with the objects they need, driven in the order in which interpose/ drives
// them. The explorer and the ThreadSanitizer run share it, each with its own platform.
#pragma once

#include <string>

#include "locks/auto_ticket.h"
#include "locks/budget.h"
#include "locks/condvar.h"
#include "locks/gate.h"
#include "locks/qspin_cna.h"
#include "locks/qspin_native.h"
#include "locks/qspin_pv.h"
#include "locks/rwsem.h"
#include "locks/spin.h"
#include "locks/tas.h"
#include "locks/ticket.h"
#include "locks/ticket_backoff.h"

namespace relock::testing {

template <class P>
struct MutexCells {
  typename P::Atomic32 word, gate, epoch, tuning, owner;
};

// What MutexView in interpose/object.h is in production.
template <class P>
class MutexCellsView {
 public:
  explicit MutexCellsView(MutexCells<P>& cells) : cells_(&cells) {}
  typename P::Atomic32& word() const { return cells_->word; }
  typename P::Atomic32& gate() const { return cells_->gate; }
  typename P::Atomic32& epoch() const { return cells_->epoch; }
  typename P::Atomic32& tuning() const { return cells_->tuning; }
  typename P::Atomic32& owner() const { return cells_->owner; }

 private:
  MutexCells<P>* cells_;
};

// A mutex as interpose/mutex.cpp drives it: the fast path, the owner field, the slow halves.
// `Host` supplies budget() and thread_id(), which is never 0.
template <class P, template <class, class> class Algorithm, class Host>
class MutexDriver {
 public:
  using Gated = GatedMutex<P, Algorithm, MutexCellsView<P>>;
  using Crowded = GatedMutex<P, Tas, MutexCellsView<P>>;  // the same for every algorithm
  using Layout = MutexLayout;
  using Word = Algorithm<P, MutexLayout>;
  static constexpr bool kTimed = true;

  void init() {}  // all zero is free
  void lock() { (void)lock_until(nullptr); }

  // False: the time was up.
  bool lock_until(const Deadline* deadline) {
    if (!take_free() && !Crowded::lock_crowded(view())) {
      WaitContext<P> context{&Host::budget()};
      context.deadline = deadline;
      if (Gated::lock_slow(view(), context) == Acquire::kTimedOut) return false;
    }
    cells_.owner.store(Host::thread_id(), MemoryOrder::kRelaxed);
    return true;
  }

  bool try_lock() {
    if (!take_free() && !Gated::try_lock(view())) return false;
    cells_.owner.store(Host::thread_id(), MemoryOrder::kRelaxed);
    return true;
  }

  void unlock() {
    const std::uint32_t word = cells_.word.load(MemoryOrder::kRelaxed);
    const bool simple =
        word == (Layout::kFree | Layout::kLocked) || Crowded::is_crowded(view(), word);
    if (!simple && (word & Layout::kLocked) != 0) Gated::prepare_unlock(view());
    cells_.owner.store(0, MemoryOrder::kRelaxed);
    if (simple && Crowded::release_crowded(view(), word)) return;
    Gated::unlock_slow(view(), Host::budget());
  }

 protected:
  MutexCellsView<P> view() { return MutexCellsView<P>(cells_); }

  MutexCells<P> cells_{};

 private:
  bool take_free() {
    std::uint32_t expected = Layout::kFree;
    return cells_.word.compare_exchange(expected, Layout::kFree | Layout::kLocked,
                                        MemoryOrder::kAcquire);
  }
};

// A spinlock as interpose/spin.cpp drives it.
template <class P, template <class, class> class Algorithm, class Host>
class SpinDriver {
 public:
  using Spin = SpinLock<P, Algorithm>;
  using Layout = SpinLayout;
  using Word = Algorithm<P, SpinLayout>;
  static constexpr bool kTimed = false;

  void init() { word_.store(Layout::kFree, MemoryOrder::kRelaxed); }

  void lock() {
    std::uint32_t expected = Layout::kFree;
    if (word_.compare_exchange(expected, Layout::kFree | Layout::kLocked, MemoryOrder::kAcquire)) {
      return;
    }
    WaitContext<P> context{&Host::budget()};
    Spin::lock_slow(word_, context);
  }
  bool lock_until(const Deadline*) {
    lock();
    return true;
  }
  bool try_lock() { return Spin::try_lock(word_); }
  void unlock() {
    if (Word::kPlainRelease) {
      word_.store_low_byte(0, MemoryOrder::kRelease);
    } else {
      Spin::unlock(word_);
    }
  }

 protected:
  typename P::Atomic32 word_;
};

template <class P>
struct RwCells {
  typename P::Atomic64 state;
  typename P::Atomic32 readers_gate, head_gate;
  typename P::Atomic32 writer;
  MutexCells<P> queue;
};

// How names of cases tell the kinds of readers-writer locks apart; nothing for the default one.
inline std::string kind_in_name(RwPreference preference, const char* before, const char* after) {
  if (preference == RwPreference::kReaders) return "";
  const bool handed = preference == RwPreference::kWriters;
  return std::string(before) + (handed ? "writers handed to" : "writers preferred") + after;
}

// What RwlockView in interpose/object.h is in production.
template <class P>
class RwCellsView {
 public:
  RwCellsView(RwCells<P>& cells, RwPreference preference)
      : cells_(&cells), preference_(preference) {}
  typename P::Atomic64& state() const { return cells_->state; }
  typename P::Atomic32& readers_gate() const { return cells_->readers_gate; }
  typename P::Atomic32& head_gate() const { return cells_->head_gate; }
  typename P::Atomic32& writer() const { return cells_->writer; }
  typename P::Atomic32& tuning() const { return cells_->queue.tuning; }
  MutexCellsView<P> queue() const { return MutexCellsView<P>(cells_->queue); }
  RwPreference preference() const { return preference_; }

 private:
  RwCells<P>* cells_;
  RwPreference preference_;
};

// A readers-writer lock as interpose/rwsem.cpp drives it.
template <class P, class Host>
class RwDriver {
 public:
  using Sem = RwSem<P, RwCellsView<P>>;

  // False: the time was up.
  bool read_until(const Deadline* deadline) {
    if (try_read()) return true;
    WaitContext<P> context{&Host::budget()};
    context.deadline = deadline;
    return Sem::read_slow(view(), context) == Acquire::kAcquired;
  }
  bool write_until(const Deadline* deadline) {
    if (!write_free()) {
      WaitContext<P> context{&Host::budget()};
      context.deadline = deadline;
      if (Sem::write_slow(view(), context, Host::thread_id()) == Acquire::kTimedOut) return false;
    }
    set_writer(Host::thread_id());
    return true;
  }
  bool try_read() { return read_free() || Sem::try_read(view()); }
  bool try_write() {
    if (!write_free() && !Sem::try_write(view())) return false;
    set_writer(Host::thread_id());
    return true;
  }

  // The word tells what is unlocked.
  void unlock() {
    std::uint64_t w = cells_.state.load(MemoryOrder::kRelaxed);
    if ((w & Sem::kWriter) != 0) {
      set_writer(0);
      if (w == Sem::kWriter && cells_.state.compare_exchange(w, 0, MemoryOrder::kRelease)) return;
      return Sem::release_write(view());
    }
    if ((w & Sem::kWaiters) == 0 && w >= Sem::kReader &&
        cells_.state.compare_exchange(w, w - Sem::kReader, MemoryOrder::kRelease)) {
      return;
    }
    Sem::release_read(view());
  }

 protected:
  RwCellsView<P> view() { return RwCellsView<P>(cells_, preference_); }

  RwCells<P> cells_{};
  RwPreference preference_ = RwPreference::kReaders;

 private:
  void set_writer(std::uint32_t thread) { cells_.writer.store(thread, MemoryOrder::kRelaxed); }
  bool read_free() {
    std::uint64_t w = cells_.state.load(MemoryOrder::kRelaxed);
    if ((w & (Sem::kWriter | Sem::kWaiters)) != 0 || Sem::full(w)) return false;
    return cells_.state.compare_exchange(w, w + Sem::kReader, MemoryOrder::kAcquire);
  }
  bool write_free() {
    std::uint64_t free = 0;
    return cells_.state.compare_exchange(free, Sem::kWriter, MemoryOrder::kAcquire);
  }
};

// A semaphore as glibc's: posting may be the end of its memory, only the address is used after.
template <class P>
struct Parker {
  typename P::Atomic32 value;

  Parker() { value.store(0, MemoryOrder::kRelaxed); }
  void post() {
    const void* const address = &value;
    (void)value.exchange(1, MemoryOrder::kSeqCst);
    P::futex_wake(address, 1, kAnyBit);
  }
  // False: timed out.
  bool wait(const Deadline* deadline) {
    for (;;) {
      std::uint32_t posted = 1;
      if (value.compare_exchange(posted, 0, MemoryOrder::kAcquire)) return true;
      if (P::futex_wait(value, 0, kAnyBit, deadline) == WaitResult::kTimedOut) return false;
    }
  }
};

template <class P>
struct CondCells {
  typename P::Atomic32 lock, list_epoch, unconfirmed;
  typename P::template AtomicPtr<CondNode<P, Parker<P>>> head, tail;
};

// What CondView in interpose/object.h is in production.
template <class P>
class CondCellsView {
 public:
  explicit CondCellsView(CondCells<P>& cells) : cells_(&cells) {}
  typename P::Atomic32& lock() const { return cells_->lock; }
  typename P::Atomic32& list_epoch() const { return cells_->list_epoch; }
  typename P::Atomic32& unconfirmed() const { return cells_->unconfirmed; }
  auto& head() const { return cells_->head; }
  auto& tail() const { return cells_->tail; }

 private:
  CondCells<P>* cells_;
};

template <class P>
using CondDriver = CondVar<P, Parker<P>, CondCellsView<P>>;

}  // namespace relock::testing
