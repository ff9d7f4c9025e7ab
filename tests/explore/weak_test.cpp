// Every lock on a machine that is weaker than x86 (Bounds::weak): stores that become visible out of
// order, loads that were done early. Bugs are planted by weakening the orders that a lock asks for.
#include "case.h"
#include "condvar_scripts.h"
#include "policy/options.h"
#include "rwsem_scripts.h"
#include "scenarios.h"

namespace relock::explore {

namespace {

using Cell = P::Atomic32;

Bounds weak(int preemptions, int timeouts = 0) {
  Bounds bounds;
  bounds.preemptions = preemptions;
  bounds.timeouts = timeouts;
  bounds.weak = true;
  bounds.delayed_stores = deep() ? 2 : 1;
  bounds.stale_loads = deep() ? 2 : 1;
  return bounds;
}

// ---- does the model do what such a machine may, and no more? ----

// Who sees the flag sees the data, if both sides say so.
Program message_passing(MemoryOrder store, MemoryOrder load) {
  static Cell data, flag;
  Program program;
  program.setup = [] {
    data.store(0, MemoryOrder::kRelaxed), flag.store(0, MemoryOrder::kRelaxed);
  };
  program.threads.emplace_back([store] {
    data.store(1, MemoryOrder::kRelaxed);
    flag.store(1, store);
  });
  program.threads.emplace_back([load] {
    if (flag.load(load) == 1 && data.load(MemoryOrder::kRelaxed) != 1) {
      fail("flag seen before data");
    }
  });
  return program;
}

// The same with a flag that is raised by a read-modify-write.
Program handing_over(MemoryOrder raise) {
  static Cell data, flag;
  Program program;
  program.setup = [] {
    data.store(0, MemoryOrder::kRelaxed), flag.store(0, MemoryOrder::kRelaxed);
  };
  program.threads.emplace_back([raise] {
    data.store(1, MemoryOrder::kRelaxed);
    flag.fetch_add(1, raise);
  });
  program.threads.emplace_back([] {
    std::uint32_t raised = 1;
    if (flag.compare_exchange(raised, 2, MemoryOrder::kAcquire) &&
        data.load(MemoryOrder::kRelaxed) != 1) {
      fail("flag seen before data");
    }
  });
  return program;
}

// One cell alone never goes back, and a thread sees its own stores.
Program one_cell() {
  static Cell cell;
  Program program;
  program.setup = [] { cell.store(0, MemoryOrder::kRelaxed); };
  program.threads.emplace_back([] {
    cell.store(1, MemoryOrder::kRelaxed);
    if (cell.load(MemoryOrder::kRelaxed) == 0) fail("own store is not seen");
    cell.store(2, MemoryOrder::kRelaxed);
  });
  program.threads.emplace_back([] {
    const std::uint32_t first = cell.load(MemoryOrder::kRelaxed);
    const std::uint32_t second = cell.load(MemoryOrder::kRelaxed);
    if (second < first) fail("a cell goes back");
  });
  program.finish = [] {
    if (cell.load(MemoryOrder::kRelaxed) != 2) fail("two stores to a cell change places");
  };
  return program;
}

void add_litmus(std::vector<Case>& cases) {
  const auto add = [&cases](const char* name, Program program, const char* reason) {
    Bounds bounds = weak(-1);
    bounds.delayed_stores = bounds.stale_loads = 2;
    cases.push_back(
        {std::string(*reason != '\0' ? "explorer finds, weak: " : "explorer, weak: ") + name,
         std::move(program), bounds, *reason != '\0' ? Expect::kFailure : Expect::kPass, reason});
  };
  constexpr MemoryOrder kRelaxed = MemoryOrder::kRelaxed;
  constexpr MemoryOrder kRelease = MemoryOrder::kRelease;
  constexpr MemoryOrder kAcquire = MemoryOrder::kAcquire;
  add("release and acquire pass a message", message_passing(kRelease, kAcquire), "");
  add("a message without release", message_passing(kRelaxed, kAcquire), "flag seen before data");
  add("a message without acquire", message_passing(kRelease, kRelaxed), "flag seen before data");
  add("a release hands over", handing_over(kRelease), "");
  add("an update without release", handing_over(kRelaxed), "flag seen before data");
  add("an update that only acquires", handing_over(kAcquire), "flag seen before data");
  add("one cell keeps its order", one_cell(), "");
}

// ---- the locks ----

// No release on the word publishes anything.
template <class Lock>
struct NoRelease : Mutation {
  MemoryOrder order(const void* cell, MemoryOrder asked) override {
    if (cell != &Scenarios<Lock>::lock.word()) return asked;
    if (asked == MemoryOrder::kRelease) return MemoryOrder::kRelaxed;
    return asked == MemoryOrder::kAcqRel ? MemoryOrder::kAcquire : asked;
  }
};
// No acquire on the word keeps later loads behind it.
template <class Lock>
struct NoAcquire : Mutation {
  MemoryOrder order(const void* cell, MemoryOrder asked) override {
    if (cell != &Scenarios<Lock>::lock.word()) return asked;
    if (asked == MemoryOrder::kAcquire) return MemoryOrder::kRelaxed;
    return asked == MemoryOrder::kAcqRel ? MemoryOrder::kRelease : asked;
  }
};

template <class Lock>
void add_mode(std::vector<Case>& cases, const std::string& name, WaitMode mode) {
  using S = Scenarios<Lock>;
  Setting setting;
  setting.mode = mode;
  setting.admitted_limit = 3;
  const std::string suffix = "/" + name + "/" + wait_mode_name(mode);
  const auto add = [&](const char* what, Program program, Bounds bounds) {
    if (mode == WaitMode::kAdaptive) bounds.free_pauses = 1;
    const bool slow = mode == WaitMode::kAdaptive;  // a mixture of the other two
    cases.push_back({std::string("weak: ") + what + suffix, std::move(program), bounds,
                     Expect::kPass, "", slow});
  };
  add("2 threads twice", S::rounds(setting, 2, 2), weak(2));
  add("3 threads", S::rounds(setting, 3, 1), weak(1));
  if constexpr (Lock::kTimed) {
    Setting gated = setting;
    gated.admitted_limit = 1;
    add("3 threads, 1 admitted", S::rounds(gated, 3, 1), weak(1));
    add("one gives up", S::crowd(setting, "xll"), weak(1, 1));
  }
}

template <class Lock>
void add_planted(std::vector<Case>& cases, const std::string& name, WaitMode mode) {
  using S = Scenarios<Lock>;
  Setting setting;
  setting.mode = mode;
  setting.admitted_limit = 3;
  for (const bool release : {true, false}) {
    setting.bug = release ? planted<NoRelease<Lock>>() : planted<NoAcquire<Lock>>();
    cases.push_back(
        {std::string("planted: a missing ") + (release ? "release/" : "acquire/") + name,
         S::rounds(setting, 2, 1), weak(2), Expect::kFailure, "mutual exclusion"});
  }
}

template <template <class, class> class Algorithm>
void add_lock(std::vector<Case>& cases, const std::string& name) {
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    add_mode<MutexUnderTest<Algorithm>>(cases, name + " mutex", mode);
    if (mode == WaitMode::kPark) continue;  // spinlocks do not park
    add_mode<SpinUnderTest<Algorithm>>(cases, name + " spinlock", mode);
  }
  add_planted<MutexUnderTest<Algorithm>>(cases, name + " mutex", WaitMode::kPark);
  add_planted<SpinUnderTest<Algorithm>>(cases, name + " spinlock", WaitMode::kSpin);
}

// These stand for others (locks/lock_list.def).
template <class Platform, class Layout>
struct Glibc;
template <>
void add_lock<Glibc>(std::vector<Case>&, const std::string&) {}
template <class Platform, class Layout>
struct Auto;
template <>
void add_lock<Auto>(std::vector<Case>&, const std::string&) {}

// ---- readers-writer lock and condition variable ----

template <bool kWithoutRelease>
struct NoOrderInState : Mutation {
  MemoryOrder order(const void* cell, MemoryOrder asked) override {
    if (cell != &RwPrograms::lock.cells().state) return asked;
    if (asked == MemoryOrder::kAcqRel) {
      return kWithoutRelease ? MemoryOrder::kAcquire : MemoryOrder::kRelease;
    }
    const MemoryOrder dropped = kWithoutRelease ? MemoryOrder::kRelease : MemoryOrder::kAcquire;
    return asked == dropped ? MemoryOrder::kRelaxed : asked;
  }
};

void add_rwsem(std::vector<Case>& cases) {
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    Setting setting;
    setting.mode = mode;
    for (const char* who : {"rw", "ww", "rrw", "rww"}) {
      Bounds bounds = weak(std::strlen(who) == 2 ? 2 : 1);
      if (mode == WaitMode::kAdaptive) bounds.free_pauses = 1;
      for (const RwPreference preference : {RwPreference::kReaders, RwPreference::kWritersAlone}) {
        cases.push_back({std::string("weak: crowd ") + who +
                             testing::kind_in_name(preference, ", ", "") + "/rwsem/" +
                             wait_mode_name(mode),
                         RwPrograms::crowd(setting, who, preference), bounds, Expect::kPass, ""});
      }
    }
  }
  Setting setting;
  setting.bug = planted<NoOrderInState<true>>();
  cases.push_back({"planted: a missing release/rwsem",
                   RwPrograms::crowd(setting, "rw", RwPreference::kReaders), weak(2),
                   Expect::kFailure, "half of a writer's work"});
  setting.bug = planted<NoOrderInState<false>>();
  cases.push_back({"planted: a missing acquire/rwsem",
                   RwPrograms::crowd(setting, "rw", RwPreference::kReaders), weak(2),
                   Expect::kFailure, "half of a writer's work"});
}

void add_condvar(std::vector<Case>& cases) {
  using C = CondPrograms;
  const auto add = [&cases](const char* name, Program program, Bounds bounds) {
    cases.push_back(
        {std::string("weak: ") + name + "/condvar", std::move(program), bounds, Expect::kPass, ""});
  };
  add("signal, mutex held", C::tokens_for(1, false, true, false), weak(2));
  add("signal, mutex released", C::tokens_for(1, false, false, false), weak(2));
  add("broadcast to 2", C::tokens_for(2, true, true, false), weak(1));
  add("destroyed after a signal", C::tokens_for(1, false, false, true), weak(2));
  add("a timeout races a signal", C::signal_races(false), weak(0, 1));
}

}  // namespace

void add_weak_cases(std::vector<Case>& cases) {
  add_litmus(cases);
#define RELOCK_LOCK_ROW(ident, name, fair, idea) add_lock<ident>(cases, name);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
  add_rwsem(cases);
  add_condvar(cases);
}

}  // namespace relock::explore
