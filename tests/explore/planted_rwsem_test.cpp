// Bugs planted in the readers-writer lock: each must be found.
#include "case.h"
#include "rwsem_scripts.h"

namespace relock::explore {

namespace {

using Sem = RwUnderTest::Sem;

testing::RwCells<P>& cells() { return RwPrograms::lock.cells(); }

struct ReadersGateWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override {
    return address == &cells().readers_gate;
  }
};
struct HeadGateWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override {
    return address == &cells().head_gate;
  }
};
struct ReadersGateStandsStill : Mutation {
  bool drops_update(const void* cell, Update) override { return cell == &cells().readers_gate; }
};
struct HeadGateStandsStill : Mutation {
  bool drops_update(const void* cell, Update) override { return cell == &cells().head_gate; }
};
// Wakes whoever sleeps at the gate before its number advances, and nobody after.
template <bool kReaders>
struct GateWakesTooEarly : Mutation {
  static const void* gate() { return kReaders ? &cells().readers_gate : &cells().head_gate; }
  void before_change(const void* cell) override {
    if (cell == gate()) (void)World::active->futex_wake(cell, kMaxThreads, kAnyBit);
  }
  bool drops_wake(const void* address, std::uint32_t) override { return address == gate(); }
};
struct StateInTwoSteps : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t, std::uint64_t) override {
    return cell == &cells().state;
  }
};
// A bit of the state that is never set.
template <std::uint64_t kBit>
struct NeverSet : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    const bool sets = cell == &cells().state && (now & kBit) != 0 && (old & kBit) == 0;
    return sets ? now & ~kBit : now;
  }
};
// A bit of the state that, once set, stays.
template <std::uint64_t kBit>
struct NeverCleared : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    return cell == &cells().state && (old & kBit) != 0 ? now | kBit : now;
  }
};
struct QueueInTwoSteps : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t old, std::uint64_t now) override {
    return cell == &cells().queue.word && old == 0 && now == 1;
  }
};
// Who has left the queue believes that somebody is still there.
struct QueueNeverLooksEmpty : Mutation {
  std::uint64_t loaded(const void* cell, std::uint64_t value) override {
    return cell == &cells().queue.word && value == 0 ? MutexLayout::kAdmitting : value;
  }
};

void add_leaving(std::vector<Case>& cases) {
  Setting setting;
  setting.bug = planted<QueueNeverLooksEmpty>();
  Bounds bounds;
  bounds.preemptions = 2;
  bounds.timeouts = 1;
  Program program = RwPrograms::crowd(setting, "rXX", RwPreference::kWriters);
  program.finish = [] { RwPrograms::lock.check_state_free(); };  // the queue would look busy
  cases.push_back({"planted: nobody takes away what the last of the queue has left/rwsem",
                   std::move(program), bounds, Expect::kFailure, "left in the free state"});
}

}  // namespace

void add_planted_rwsem_cases(std::vector<Case>& cases) {
  using R = RwPrograms;
  const auto add = [&cases](const char* name, Mutation* bug, const char* who, const char* reason,
                            RwPreference preference = RwPreference::kReaders, int timeouts = 0) {
    Setting setting;
    setting.bug = bug;
    Bounds bounds;
    bounds.preemptions = 3;
    bounds.timeouts = timeouts;
    cases.push_back({std::string("planted: ") + name + "/rwsem", R::crowd(setting, who, preference),
                     bounds, Expect::kFailure, reason});
  };
  add("the readers' gate wakes nobody", planted<ReadersGateWakesNobody>(), "rw", "lost wakeup");
  add("the head's gate wakes nobody", planted<HeadGateWakesNobody>(), "ww", "lost wakeup");
  add("the readers' number stands still", planted<ReadersGateStandsStill>(), "rw", "lost wakeup");
  add("the head's number stands still", planted<HeadGateStandsStill>(), "rw", "lost wakeup");
  add("the readers' gate wakes too early", planted<GateWakesTooEarly<true>>(), "rw", "lost wakeup");
  add("the head's gate wakes too early", planted<GateWakesTooEarly<false>>(), "ww", "lost wakeup");
  add("the state changes in two steps", planted<StateInTwoSteps>(), "rw", "");
  add("sleeping readers are not marked", planted<NeverSet<Sem::kReadersSleep>>(), "rw",
      "lost wakeup");
  add("a sleeping head is not marked", planted<NeverSet<Sem::kHeadSleeps>>(), "ww", "lost wakeup");
  add("readers stay kept out", planted<NeverCleared<Sem::kNoReaders>>(), "rww", "",
      RwPreference::kWritersAlone);
  add("readers stay kept out by a writer that gave up", planted<NeverCleared<Sem::kNoReaders>>(),
      "Xrr", "", RwPreference::kWritersAlone, 1);
  add("two heads", planted<QueueInTwoSteps>(), "wwww", "");
  {
    Bounds bounds;
    cases.push_back({"planted: looks after the release/rwsem",
                     R::destroying({}, "rww", RwPreference::kReaders, true), bounds,
                     Expect::kFailure, "after it was destroyed"});
  }
  {
    Setting setting;
    setting.bug = planted<ChildKeepsGhosts>();
    Bounds bounds;
    bounds.preemptions = 3;
    cases.push_back({"planted: a forked child keeps ghosts/rwsem",
                     R::forking(setting, R::Holds::kWrite, RwPreference::kWritersAlone), bounds,
                     Expect::kFailure, ""});
  }
  add_leaving(cases);
}

}  // namespace relock::explore
