// Bugs planted in and around the condition variable: each must be found.
#include "case.h"
#include "condvar_scripts.h"

namespace relock::explore {

namespace {

CondUnderTest& cond() { return CondPrograms::cond; }

// Whose semaphore it is, or -1.
int post_of(const void* address) {
  for (int i = 0; i < CondUnderTest::kWaiters; ++i) {
    if (address == &cond().node(i).parker.value) return i;
  }
  return -1;
}
bool is_post(const void* address) { return post_of(address) >= 0; }
bool is_state(const void* address) {
  for (int i = 0; i < CondUnderTest::kWaiters; ++i) {
    if (address == &cond().node(i).state) return true;
  }
  return false;
}

struct PostWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override { return is_post(address); }
};
struct PostWakesTooEarly : Mutation {
  void before_change(const void* cell) override {
    if (is_post(cell)) (void)World::active->futex_wake(cell, kMaxThreads, kAnyBit);
  }
  bool drops_wake(const void* address, std::uint32_t) override { return is_post(address); }
};
// Lets go by a load and a store: a sleeper that comes in between is forgotten.
struct SmallLockReleasedInTwoSteps : Mutation {
  bool splits_exchange(const void* cell) override { return cell == &cond().cells.lock; }
};
struct SmallLockInTwoSteps : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t, std::uint64_t) override {
    return cell == &cond().cells.lock;
  }
};
struct SmallLockWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override {
    return address == &cond().cells.lock;
  }
};
struct SmallLockForgetsSleepers : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t, std::uint64_t now) override {
    return cell == &cond().cells.lock && now == 2 ? 1 : now;
  }
};
struct TakesInTwoSteps : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t, std::uint64_t) override {
    return is_state(cell);
  }
};
struct ForgetsConfirmation : Mutation {
  bool drops_update(const void* cell, Update how) override {
    return cell == &cond().cells.unconfirmed && how == Update::kAdd;
  }
};
struct PostsOnlyTheFirst : Mutation {
  bool drops_update(const void* cell, Update how) override {
    return how == Update::kExchange && is_post(cell) && cond().posts++ > 0;
  }
};
// Takes one that waits for one that leaves.
struct BroadcastForgetsAWaiter : Mutation {
  std::uint64_t loaded(const void* cell, std::uint64_t value) override {
    using Node = CondUnderTest::Node;
    if (cell == &cond().node(1).state && value == Node::kLinked) return Node::kLeaving;
    return value;
  }
};
// A link is a plain field, which nobody watches over; the state of the same node stands for it.
struct ReadsLinkAfterPost : Mutation {
  void before_change(const void* cell) override {
    const int next = post_of(cell);
    if (next < 0 || next == this_thread()) return;
    const int before = cond().last_posted;
    if (before >= 0) (void)cond().node(before).state.load(MemoryOrder::kRelaxed);
    cond().last_posted = next;
  }
};
struct TouchesObjectAfterPost : Mutation {
  void before_change(const void* cell) override {
    const int next = post_of(cell);
    if (next < 0 || next == this_thread()) return;
    if (cond().posts++ > 0) (void)cond().cells.head.load(MemoryOrder::kRelaxed);
  }
};

Bounds bounds_of(int timeouts = 0, int burnouts = 0) {
  Bounds bounds;
  bounds.preemptions = 2;
  bounds.timeouts = timeouts;
  bounds.burnouts = burnouts;
  return bounds;
}

struct Adder {
  std::vector<Case>& cases;
  void operator()(const char* name, Program program, Bounds bounds, const char* reason) const {
    cases.push_back({std::string("planted: ") + name + "/condvar", std::move(program), bounds,
                     Expect::kFailure, reason});
  }
};

void add_broadcasts(const Adder& add) {
  using C = CondPrograms;
  constexpr CallerBug kNone = CallerBug::kNone;
  add("a broadcast that posts only the first",
      C::handler(Handler::kAfterWake, true, planted<PostsOnlyTheFirst>()), bounds_of(),
      "lost wakeup");
  add("a broadcast that forgets a waiter",
      C::tokens_for(2, true, true, false, kNone, planted<BroadcastForgetsAWaiter>()), bounds_of(),
      "lost wakeup");
  add("a broadcast that reads a link after the post",
      C::tokens_for(2, true, false, false, kNone, planted<ReadsLinkAfterPost>()), bounds_of(),
      "after it was destroyed");
  add("a broadcast that touches the object after its first post",
      C::destroyed_by_a_waiter(2, planted<TouchesObjectAfterPost>()), bounds_of(),
      "after it was destroyed");
}

}  // namespace

void add_planted_condvar_cases(std::vector<Case>& cases) {
  using C = CondPrograms;
  constexpr CallerBug kNone = CallerBug::kNone;
  const Adder add{cases};
  add("a post that wakes nobody",
      C::tokens_for(1, false, true, false, kNone, planted<PostWakesNobody>()), bounds_of(),
      "lost wakeup");
  add("a post that wakes before it is made",
      C::tokens_for(1, false, true, false, kNone, planted<PostWakesTooEarly>()), bounds_of(),
      "lost wakeup");
  add("a small lock released in two steps",
      C::signal_races(false, kNone, planted<SmallLockReleasedInTwoSteps>()), bounds_of(1, 1),
      "lost wakeup");
  add("a small lock taken in two steps",
      C::signal_races(false, kNone, planted<SmallLockInTwoSteps>()), bounds_of(1), "");
  add("a small lock whose release wakes nobody",
      C::signal_races(false, kNone, planted<SmallLockWakesNobody>()), bounds_of(1, 1),
      "lost wakeup");
  add("a small lock that forgets its sleepers",
      C::signal_races(false, kNone, planted<SmallLockForgetsSleepers>()), bounds_of(1, 1), "");
  add("a waiter taken in two steps", C::signal_races(false, kNone, planted<TakesInTwoSteps>()),
      bounds_of(1), "");
  add("a taken waiter that destroy does not know of",
      C::tokens_for(1, false, false, true, kNone, planted<ForgetsConfirmation>()), bounds_of(), "");
  add("a forked child that keeps ghosts in the list",
      C::forking("wS", "b", planted<ChildKeepsGhosts>()), bounds_of(), "");
  add("a timed-out waiter that swallows a signal", C::signal_races(false, CallerBug::kIgnoresTaken),
      bounds_of(1), "");
  add("a cancelled waiter that keeps its signal", C::signal_races(true, CallerBug::kKeepsSignal),
      bounds_of(1), "lost wakeup");
  add("a waiter that enlists after it has released the mutex",
      C::tokens_for(1, false, true, false, CallerBug::kEnlistsAfterUnlock), bounds_of(),
      "lost wakeup");
  add("a waiter that never confirms",
      C::tokens_for(1, false, false, true, CallerBug::kNeverConfirms), bounds_of(), "livelock");
  add("a destroy that does not wait for those who leave",
      C::destroy_races_timeout(CallerBug::kDestroysAtOnce), bounds_of(1), "after it was destroyed");
  add_broadcasts(add);
}

}  // namespace relock::explore
