// Does the explorer find what it claims to find? Small locks of its own, one right and the rest
// wrong in one way each, and the litmus tests of x86-TSO.
#include <memory>

#include "case.h"
#include "explore_platform.h"
#include "script.h"

namespace relock::explore {

namespace {

using P = ExplorePlatform;
using Cell = P::Atomic32;

// The futex mutex of textbooks: 0 free, 1 locked, 2 locked and perhaps somebody sleeps.
struct TextbookMutex {
  Cell word;

  void lock() {
    std::uint32_t seen = 0;
    if (word.compare_exchange(seen, 1, MemoryOrder::kAcquire)) return;
    while (word.exchange(2, MemoryOrder::kAcquire) != 0) {
      (void)P::futex_wait(word, 2, kAnyBit, nullptr);
    }
  }
  void unlock() {
    if (word.exchange(0, MemoryOrder::kRelease) == 2) P::futex_wake(&word, 1, kAnyBit);
  }
};

// Looks and takes in two steps.
struct CheckThenSet : TextbookMutex {
  void lock() {
    while (word.load(MemoryOrder::kAcquire) != 0) P::pause();
    word.store(1, MemoryOrder::kRelaxed);
  }
  void unlock() { word.store(0, MemoryOrder::kRelease); }
};

// Forgets that a third thread may sleep: takes the lock as "nobody waits" after a sleep.
struct ForgetsWaiters : TextbookMutex {
  void lock() {
    std::uint32_t seen = 0;
    if (word.compare_exchange(seen, 1, MemoryOrder::kAcquire)) return;
    for (;;) {
      if (seen != 2) (void)word.compare_exchange(seen, 2, MemoryOrder::kRelaxed);
      (void)P::futex_wait(word, 2, kAnyBit, nullptr);
      seen = 0;
      if (word.compare_exchange(seen, 1, MemoryOrder::kAcquire)) return;
    }
  }
};

// Sleeps on whatever the word is now, not on what it looked at.
struct SleepsOnNewValue : TextbookMutex {
  void lock() {
    while (word.exchange(1, MemoryOrder::kAcquire) != 0) {
      waiting.fetch_add(1, MemoryOrder::kSeqCst);
      (void)P::futex_wait(word, word.load(MemoryOrder::kRelaxed), kAnyBit, nullptr);
      waiting.fetch_sub(1, MemoryOrder::kSeqCst);
    }
  }
  void unlock() {
    word.store(0, MemoryOrder::kSeqCst);
    if (waiting.load(MemoryOrder::kSeqCst) != 0) P::futex_wake(&word, 1, kAnyBit);
  }
  Cell waiting;
};

// Looks at the waiter count after it has let go: the object may be gone by then.
struct TouchesAfterRelease : TextbookMutex {
  void lock() {
    while (word.exchange(1, MemoryOrder::kAcquire) != 0) {
      waiting.fetch_add(1, MemoryOrder::kSeqCst);
      (void)P::futex_wait(word, 1, kAnyBit, nullptr);
      waiting.fetch_sub(1, MemoryOrder::kSeqCst);
    }
  }
  void unlock() {
    word.store(0, MemoryOrder::kSeqCst);
    if (waiting.load(MemoryOrder::kSeqCst) != 0) P::futex_wake(&word, 1, kAnyBit);
  }
  Cell waiting;
};

// Peterson's lock: right with sequentially consistent stores, wrong with a store buffer.
template <MemoryOrder kOrder>
struct Peterson {
  Cell wants[2];
  Cell turn;

  void lock() {
    const int self = this_thread();
    wants[self].store(1, kOrder);
    turn.store(static_cast<std::uint32_t>(1 - self), kOrder);
    while (wants[1 - self].load(MemoryOrder::kAcquire) != 0 &&
           turn.load(MemoryOrder::kAcquire) != static_cast<std::uint32_t>(self)) {
      P::pause();
    }
  }
  void unlock() { wants[this_thread()].store(0, MemoryOrder::kRelease); }
};

// Never tells anybody that it is done.
struct NeverUnlocks : TextbookMutex {
  void lock() {
    while (word.exchange(1, MemoryOrder::kAcquire) != 0) P::pause();
  }
  void unlock() {}
};

// Writes the released state into the low byte, and wipes out a neighbour with it.
struct WideRelease : TextbookMutex {
  void lock() {
    for (;;) {
      std::uint32_t seen = word.load(MemoryOrder::kRelaxed);
      if ((seen & 1) == 0) {
        if (word.compare_exchange(seen, seen | 1, MemoryOrder::kAcquire)) return;
        continue;
      }
      if ((seen & 0x100) == 0 &&
          !word.compare_exchange(seen, seen | 0x100, MemoryOrder::kRelaxed)) {
        continue;
      }
      (void)P::futex_wait(word, 0x101, kAnyBit, nullptr);
    }
  }
  void unlock() {
    const std::uint32_t seen = word.load(MemoryOrder::kRelaxed);
    word.store(0, MemoryOrder::kRelease);
    if ((seen & 0x100) != 0) P::futex_wake(&word, 1, kAnyBit);
  }
};

template <class Lock>
Program counting(int threads, int rounds, bool destroy = false) {
  static Lock lock;
  static Section section;
  Program program;
  program.setup = [] {
    std::memset(static_cast<void*>(&lock), 0, sizeof lock);
    section.reset();
    name_memory(&lock, sizeof lock, "lock");
  };
  for (int i = 0; i < threads; ++i) {
    program.threads.emplace_back([rounds, destroy, threads] {
      for (int round = 0; round < rounds; ++round) {
        lock.lock();
        section.visit_data();
        const bool last = destroy && section.visits() == threads * rounds;
        lock.unlock();
        if (last) poison(&lock, sizeof lock);
      }
    });
  }
  program.finish = [threads, rounds] { section.check_data(threads * rounds); };
  return program;
}

// Two threads store to one cell and load the other: 0 and 0 is possible, exactly if stores may be
// delayed. `expected` is what must turn up.
Program store_buffering(MemoryOrder order) {
  static Cell x, y;
  static std::uint32_t r[2];
  Program program;
  program.setup = [] { x.store(0, MemoryOrder::kRelaxed), y.store(0, MemoryOrder::kRelaxed); };
  for (int i = 0; i < 2; ++i) {
    program.threads.emplace_back([i, order] {
      (i == 0 ? x : y).store(1, order);
      r[i] = (i == 0 ? y : x).load(MemoryOrder::kAcquire);
    });
  }
  program.finish = [] {
    if (r[0] == 0 && r[1] == 0) fail("both loads came first");
  };
  return program;
}

// Stores become visible in order: who sees the flag sees the data.
Program message_passing() {
  static Cell data, flag;
  Program program;
  program.setup = [] {
    data.store(0, MemoryOrder::kRelaxed), flag.store(0, MemoryOrder::kRelaxed);
  };
  program.threads.emplace_back([] {
    data.store(1, MemoryOrder::kRelaxed);
    flag.store(1, MemoryOrder::kRelease);
    (void)data.load(MemoryOrder::kRelaxed);
  });
  program.threads.emplace_back([] {
    if (flag.load(MemoryOrder::kAcquire) == 1 && data.load(MemoryOrder::kRelaxed) != 1) {
      fail("flag seen before data");
    }
  });
  return program;
}

// A thread reads its own byte back over the rest of the cell, which others may change meanwhile.
Program byte_forwarding() {
  static Cell cell;
  Program program;
  program.setup = [] { cell.store(0xaa00, MemoryOrder::kRelaxed); };
  program.threads.emplace_back([] {
    cell.store_low_byte(0x11, MemoryOrder::kRelease);
    const std::uint32_t seen = cell.load(MemoryOrder::kRelaxed);
    if (seen != 0xaa11 && seen != 0xbb11) fail("own byte is not forwarded");
  });
  program.threads.emplace_back([] { cell.fetch_add(0x1100, MemoryOrder::kRelaxed); });
  program.finish = [] {
    if (cell.load(MemoryOrder::kRelaxed) != 0xbb11) fail("a byte store touched its neighbours");
  };
  return program;
}

// A sleeper is woken, or times out, or both race; time passes only if it may.
Program timed_wait(bool somebody_wakes) {
  static Cell cell;
  Program program;
  program.setup = [] { cell.store(0, MemoryOrder::kRelaxed); };
  program.threads.emplace_back([] {
    const Deadline deadline{5'000'000'000, false};
    while (cell.load(MemoryOrder::kAcquire) == 0) {
      if (P::futex_wait(cell, 0, kAnyBit, &deadline) == WaitResult::kTimedOut) return;
    }
  });
  if (somebody_wakes) {
    program.threads.emplace_back([] {
      cell.store(1, MemoryOrder::kSeqCst);
      P::futex_wake(&cell, 1, kAnyBit);
    });
  }
  return program;
}

// Plain shared memory changes between two looks: only at a point may another thread come between.
Program between_looks(void (*point)()) {
  static int plain;
  Program program;
  program.setup = [] { plain = 0; };
  program.threads.emplace_back([point] {
    const int before = looked_at(plain);
    point();
    if (looked_at(plain) != before) fail("another has been here");
  });
  program.threads.emplace_back([] {
    step();
    plain = 1;
  });
  return program;
}

// The frame that a node lay in is left before the waker touches the node.
Program dead_frame(bool wrong) {
  static P::AtomicPtr<Cell> head;
  Program program;
  program.setup = [] { head.store(nullptr, MemoryOrder::kRelaxed); };
  program.threads.emplace_back([] {
    [] __attribute__((noinline)) {
      volatile char room[512];
      room[0] = 0;
      room[1] = 0;
      Cell node;
      node.store(0, MemoryOrder::kRelaxed);
      head.store(&node, MemoryOrder::kSeqCst);
      while (node.load(MemoryOrder::kAcquire) == 0) {
        (void)P::futex_wait(node, 0, kAnyBit, nullptr);
      }
      room[1] = room[0];
    }
    ();
  });
  program.threads.emplace_back([wrong] {
    Cell* node = head.load(MemoryOrder::kAcquire);
    while (node == nullptr) {
      P::pause();
      node = head.load(MemoryOrder::kAcquire);
    }
    node->store(1, MemoryOrder::kSeqCst);
    P::futex_wake(node, 1, kAnyBit);
    if (wrong) node->store(2, MemoryOrder::kSeqCst);
  });
  return program;
}

Bounds bounds(int preemptions, int delayed = 1) {
  Bounds result;
  result.preemptions = preemptions;
  result.delayed_stores = delayed;
  return result;
}

Bounds timed(int timeouts) {
  Bounds result;
  result.timeouts = timeouts;
  return result;
}

}  // namespace

void add_explorer_cases(std::vector<Case>& cases) {
  const auto pass = [&cases](const char* name, Program program, Bounds limits) {
    cases.push_back(
        {std::string("explorer: ") + name, std::move(program), limits, Expect::kPass, ""});
    cases.back().whole = true;  // small ones: what they say of the explorer holds of all schedules
  };
  const auto finds = [&cases](const char* name, Program program, Bounds limits,
                              const char* reason) {
    cases.push_back({std::string("explorer finds: ") + name, std::move(program), limits,
                     Expect::kFailure, reason});
  };
  pass("textbook mutex, 2 threads, no bound", counting<TextbookMutex>(2, 2), bounds(-1, 2));
  pass("textbook mutex, 3 threads", counting<TextbookMutex>(3, 1), bounds(3));
  pass("textbook mutex destroyed by its last user", counting<TextbookMutex>(3, 1, true), bounds(2));
  finds("check then set", counting<CheckThenSet>(2, 1), bounds(2), "mutual exclusion");
  finds("a waiter forgotten", counting<ForgetsWaiters>(3, 1), bounds(2), "lost wakeup");
  finds("sleep on a value not looked at", counting<SleepsOnNewValue>(2, 1), bounds(2),
        "lost wakeup");
  finds("a touch after the release", counting<TouchesAfterRelease>(2, 1, true), bounds(2),
        "after it was destroyed");
  finds("a lock never released", counting<NeverUnlocks>(2, 1), bounds(0), "livelock");
  finds("a release wider than its byte", counting<WideRelease>(2, 1), bounds(2), "lost wakeup");
  pass("Peterson with seq_cst stores", counting<Peterson<MemoryOrder::kSeqCst>>(2, 2), bounds(-1));
  finds("Peterson with release stores", counting<Peterson<MemoryOrder::kRelease>>(2, 1), bounds(2),
        "mutual exclusion");
  pass("store buffering without delay", store_buffering(MemoryOrder::kSeqCst), bounds(-1));
  finds("store buffering", store_buffering(MemoryOrder::kRelease), bounds(-1), "both loads");
  pass("stores keep their order", message_passing(), bounds(-1, 2));
  pass("byte stores are forwarded", byte_forwarding(), bounds(-1, 2));
  pass("a wake races a timeout", timed_wait(true), timed(1));
  pass("a timeout alone", timed_wait(false), timed(1));
  finds("a sleeper whom only time would wake", timed_wait(false), timed(0), "lost wakeup");
  const char* const kSeen = "another has been here";
  pass("nobody comes between two looks", between_looks([] {}), bounds(-1));
  finds("another at a clock read", between_looks([] { (void)P::now_ns(); }), bounds(1), kSeen);
  finds("another at a look at a deadline", between_looks([] {
          (void)P::expired(Deadline{5'000'000'000, false});
        }),
        bounds(1), kSeen);
  finds("another at a random draw", between_looks([] { (void)P::choose(3); }), bounds(1), kSeen);
  finds("another at a wake", between_looks([] { P::futex_wake(nullptr, 1, kAnyBit); }), bounds(1),
        kSeen);
  pass("a node on a stack", dead_frame(false), bounds(-1));
  finds("a node touched in a frame that is left", dead_frame(true), bounds(-1), "has left");
}

}  // namespace relock::explore
