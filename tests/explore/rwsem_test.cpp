// The readers-writer lock: every script must pass.
#include "case.h"
#include "policy/options.h"
#include "rwsem_scripts.h"

namespace relock::explore {

namespace {

Bounds bounds_of(int preemptions, int timeouts = 0) {
  Bounds bounds;
  bounds.preemptions = preemptions + (deep() ? 1 : 0);
  bounds.timeouts = timeouts;
  bounds.delayed_stores = deep() ? 1 : 0;
  return bounds;
}

}  // namespace

namespace {

using R = RwPrograms;

std::string suffix_of(RwPreference preference) {
  return testing::kind_in_name(preference, ", ", "");
}

class Adder {
 public:
  Adder(std::vector<Case>& cases, WaitMode mode) : cases_(cases), mode_(mode) {
    setting_.mode = mode;
  }

  void add_crowds(RwPreference preference) {
    const std::string kind = suffix_of(preference);
    const auto crowd = [&](const std::string& what, const char* who, Bounds bounds) {
      add(what + kind, R::crowd(setting_, who, preference), bounds);
    };
    for (const char* who : {"rw", "ww", "rww", "rrw", "www"}) {
      crowd(std::string("crowd ") + who, who, bounds_of(std::strlen(who) == 2 ? 3 : 2));
    }
    for (const char* who : {"rrww", "rwww", "wwww", "rrrw", "twTw"}) {
      crowd(std::string("crowd ") + who, who, bounds_of(1));
    }
    crowd("one tries to read", "twr", bounds_of(2));
    crowd("one tries to write", "Twr", bounds_of(2));
    crowd("both try", "tTw", bounds_of(2));
    crowd("a reader gives up", "xwr", bounds_of(2, 1));
    crowd("a writer gives up", "Xwr", bounds_of(2, 1));
    crowd("a writer gives up among readers", "Xrr", bounds_of(2, 1));
    crowd("a reader gives up behind writers", "xww", bounds_of(2, 1));
    crowd("a writer gives up among writers", "Xww", bounds_of(2, 1));
    crowd("both give up", "xXw", bounds_of(2, 2));
    crowd("both give up among 4", "xXwr", bounds_of(1, 1));
    crowd("two writers give up", "XXw", bounds_of(2, 2));
    for (const char* who : {"ww", "rw", "www", "rww", "wwr"}) {
      add(std::string("destroyed by the last of ") + who + kind,
          R::destroying(setting_, who, preference), bounds_of(2));
    }
  }

  // From writer to writer, with and without somebody who gives up on the way.
  void add_hand_overs() {
    const RwPreference kind = RwPreference::kWriters;
    const auto crowd = [&](const char* who, Bounds bounds) {
      add(std::string("crowd ") + who + suffix_of(kind), R::crowd(setting_, who, kind), bounds);
    };
    for (const char* who : {"rw", "ww", "rww", "Rww", "www"}) crowd(who, bounds_of(2));
    for (const char* who : {"Xwr", "XXr", "xXw", "XXw", "xww"}) crowd(who, bounds_of(2, 2));
    for (const char* who : {"rwww", "XXwr", "XwTr", "XXXr"}) crowd(who, bounds_of(1, 2));
    add("forked while held" + suffix_of(kind),
        R::forking(setting_, R::Holds::kWrite, kind, "Xwr", "w"), bounds_of(1, 1));
    add("destroyed by the last of wwr" + suffix_of(kind), R::destroying(setting_, "wwr", kind),
        bounds_of(2));
  }

  void add_forks(RwPreference preference) {
    const std::string kind = suffix_of(preference);
    using Holds = R::Holds;
    const auto fork = [&](const char* what, Holds holds, const char* who, const char* child,
                          Bounds bounds) {
      add(std::string(what) + ", " + who + " and " + child + kind,
          R::forking(setting_, holds, preference, who, child), bounds);
    };
    fork("forked while held", Holds::kWrite, "wr", "w", bounds_of(1));
    fork("forked after release", Holds::kNothing, "wr", "w", bounds_of(2));
    fork("forked while reading", Holds::kRead, "wr", "w", bounds_of(2));
    fork("forked while held", Holds::kWrite, "Xx", "Xx", bounds_of(1, 1));
    fork("forked while reading", Holds::kRead, "Xw", "rX", bounds_of(1, 1));
    fork("forked while reading", Holds::kRead, "ww", "tT", bounds_of(1));
    fork("forked after release", Holds::kNothing, "Xw", "x", bounds_of(2, 1));
  }

  void add_recursion() {
    const auto crowd = [&](const std::string& what, const char* who, Bounds bounds) {
      add(what, R::crowd(setting_, who, RwPreference::kReaders), bounds);
    };
    crowd("read again while a writer waits", "Rw", bounds_of(3));
    crowd("read again among others", "Rwr", bounds_of(2));
    crowd("read again while two writers wait", "Rww", bounds_of(2));
    crowd("read again while a writer gives up", "RXr", bounds_of(2, 1));
    crowd("two read again while a writer waits", "RRw", bounds_of(2));
  }

  void add_bounded_sleep() {
    Setting promoting = setting_;
    promoting.promote_ns = 10'000'000'000;
    for (const char* who : {"rww", "xww", "rwX"}) {
      add(std::string("bounded sleep, ") + who, R::crowd(promoting, who, RwPreference::kReaders),
          bounds_of(2, 2));
    }
  }

  void add_spurious() {
    Bounds spurious = bounds_of(3);  // a bit that is set twice takes so many
    spurious.spurious = 1;
    for (const char* who : {"rw", "ww"}) {
      add(std::string("a spurious wakeup, ") + who, R::crowd(setting_, who, RwPreference::kReaders),
          spurious);
    }
    spurious.preemptions = 2;
    add("a spurious wakeup, rww", R::crowd(setting_, "rww", RwPreference::kReaders), spurious);
    add("a spurious wakeup, rww, writers preferred",
        R::crowd(setting_, "rww", RwPreference::kWritersAlone), spurious);
  }

 private:
  void add(const std::string& name, Program program, Bounds bounds) {
    if (mode_ == WaitMode::kAdaptive) bounds.free_pauses = 1;
    cases_.push_back(
        {name + "/rwsem/" + wait_mode_name(mode_), std::move(program), bounds, Expect::kPass, ""});
  }

  std::vector<Case>& cases_;
  WaitMode mode_;
  Setting setting_;
};

}  // namespace

void add_rwsem_cases(std::vector<Case>& cases) {
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    Adder adder(cases, mode);
    for (const RwPreference preference : {RwPreference::kReaders, RwPreference::kWritersAlone}) {
      adder.add_crowds(preference);
      adder.add_forks(preference);
    }
    adder.add_hand_overs();
    adder.add_recursion();
    if (mode != WaitMode::kSpin) adder.add_bounded_sleep();
    if (mode == WaitMode::kPark) adder.add_spurious();
  }
}

}  // namespace relock::explore
