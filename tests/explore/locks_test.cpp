// Every scenario with every lock.
#include "case.h"
#include "policy/options.h"
#include "scenarios.h"

namespace relock::explore {

namespace {

Bounds bounds_of(int threads) {
  Bounds bounds;
  const int usual = threads == 2 ? 3 : threads == 3 ? 2 : 1;
  bounds.preemptions = usual + (deep() ? 1 : 0);
  bounds.delayed_stores = deep() ? 2 : 0;
  return bounds;
}

// Most of a lock's steps are read-modify-writes, which empty the buffer: delayed stores are tried
// in the basic scripts, and everywhere when there is time.
Bounds delayed(Bounds bounds) {
  if (!deep()) bounds.delayed_stores = 1;
  return bounds;
}

Bounds timed(int threads, int timeouts) {
  Bounds bounds = bounds_of(threads);
  bounds.timeouts = timeouts;
  return bounds;
}

template <class Lock>
class CasesOf {
 public:
  using S = Scenarios<Lock>;

  CasesOf(std::vector<Case>& cases, std::string lock) : cases_(cases), lock_(std::move(lock)) {}

  void add_mode(WaitMode mode) {
    Setting setting;
    setting.mode = mode;
    mode_ = wait_mode_name(mode);
    add("2 threads twice", S::rounds(setting, 2, 2), delayed(bounds_of(2)));
    add("3 threads", S::rounds(setting, 3, 1), delayed(bounds_of(3)));
    add("one only tries", S::trying(setting, 3), bounds_of(3));
    add("destroyed by the last", S::destroying(setting, 3), delayed(bounds_of(3)));
    add("forked while held", S::forking(setting, S::Fork::kHolding), bounds_of(4));
    add("forked after release", S::forking(setting, S::Fork::kReleased), bounds_of(4));
    Bounds deeper = bounds_of(4);
    deeper.preemptions = 3;  // a word taken by a try and freed by a repair needs so many
    add("forked, the child tries", S::forking(setting, S::Fork::kReleasedThenTries), deeper);
    Setting all_in = setting;
    all_in.admitted_limit = 3;
    if (mode != WaitMode::kSpin) {
      add("3 threads, all admitted", S::rounds(all_in, 3, 1), bounds_of(3));
      add("destroyed by the last, all admitted", S::destroying(all_in, 3), bounds_of(3));
    }
    all_in.admitted_limit = 4;
    add_queue(all_in);
    add("nested", S::nested(setting), bounds_of(3));
    add("a handler locks while its thread waits", S::interrupted(all_in), bounds_of(4));
    if constexpr (requires { typename Lock::Word::Slow; }) add_slots(all_in);
    if (mode == WaitMode::kPark) add_parking(setting);
    if constexpr (Lock::kTimed) {
      add_timed(setting, all_in);
      if (!Lock::Word::kOrdered) add_starving(setting);
      add_timed_queue(all_in);
      if (mode == WaitMode::kAdaptive) add_looks(setting);
    }
  }

 private:
  // A newcomer looks a few times before anybody knows of it, and may believe that the owner cannot
  // be running.
  void add_looks(Setting setting) {
    setting.look_pauses = 1;
    setting.cpus_are_shared = true;
    add("looking first, 2 threads twice", S::rounds(setting, 2, 2), bounds_of(3));
    add("looking first, 3 threads", S::crowd(setting, "lll"), bounds_of(3));
    add("looking first, one gives up", S::crowd(setting, "xll"), timed(4, 1));
    add("looking first, forked", S::forking(setting, S::Fork::kHolding), bounds_of(4));
  }

  // The middle of a queue: everybody is let in.
  void add_queue(const Setting& all_in) {
    using Fork = S::Fork;
    add("4 threads, all admitted", S::crowd(all_in, "llll"), bounds_of(4));
    add("one tries among 3", S::crowd(all_in, "tlll"), bounds_of(4));
    add("two try", S::crowd(all_in, "ttl"), bounds_of(3));
    add("forked while held, all admitted", S::forking(all_in, Fork::kHolding), bounds_of(4));
    add("forked after release, all admitted", S::forking(all_in, Fork::kReleased), bounds_of(4));
    add("forked, the child and its threads try",
        S::forking(all_in, Fork::kReleasedThenTries, "lt", "tl"), bounds_of(4));
    // Sleepers at the gate, and owners that come and go meanwhile by the crowded fast path.
    Setting one_in = all_in;
    one_in.admitted_limit = 1;
    add("3 threads, one of them twice", S::uneven(one_in, 2, 2), bounds_of(4));
  }

  void add_timed_queue(const Setting& all_in) {
    using Fork = S::Fork;
    Bounds long_line = timed(4, 1);
    // With pauses that may end early, these are long without any switch.
    if (all_in.mode == WaitMode::kAdaptive) --long_line.preemptions;
    add("one gives up among 3", S::crowd(all_in, "xlll"), long_line);
    add("one gives up, one tries", S::crowd(all_in, "xtl"), timed(3, 1));
    add("two give up among 2", S::crowd(all_in, "xyll"), long_line);
    add("forked beside a timed waiter", S::forking(all_in, Fork::kHolding, "xl", "x"), timed(4, 1));
    add("forked beside two timed waiters", S::forking(all_in, Fork::kReleased, "xy", "xt"),
        timed(4, 1));
  }

  void add_slots(Setting setting) {
    for (const std::uint32_t slots : {0u, 1u}) {
      setting.slots = slots;
      const std::string nodes = std::to_string(slots) + " queue nodes";
      add(("3 threads, " + nodes).c_str(), S::rounds(setting, 3, 1), bounds_of(3));
      add(("4 threads, " + nodes).c_str(), S::crowd(setting, "llll"), bounds_of(4));
      if constexpr (Lock::kTimed) {
        add(("one gives up, " + nodes).c_str(), S::crowd(setting, "xll"), timed(4, 1));
        add(("forked, " + nodes).c_str(), S::forking(setting, S::Fork::kHolding), bounds_of(4));
      }
    }
  }

  void add_parking(const Setting& setting) {
    Bounds spurious = bounds_of(3);
    spurious.spurious = 1;
    add("3 threads, a spurious wakeup", S::rounds(setting, 3, 1), spurious);
    if constexpr (Lock::kTimed) {
      Setting full = setting;
      full.promote_ns = 1'000'000;  // an uncounted sleeper comes back after a second or two
      add("the gate's count is full", S::gate_full(full), timed(4, 2));
      Setting promoting = setting;
      promoting.promote_ns = 10'000'000'000;
      add("3 threads, promoted by time", S::rounds(promoting, 3, 1), timed(3, 1));
    }
  }

  void add_starving(const Setting& setting) {
    add("a sleeper starves", S::starving(setting, "l"), timed(4, 1));
    add("two sleepers starve", S::starving(setting, "ll"), timed(3, 1));
    add("a sleeper starves, one gives up", S::starving(setting, "xl"), timed(3, 2));
    add("a sleeper starves, one tries", S::starving(setting, "lt"), timed(3, 1));
  }

  void add_timed(const Setting& setting, const Setting& all_in) {
    // Long scripts: with pauses that may end early, one switch less keeps them in bounds.
    const int most = setting.mode == WaitMode::kAdaptive ? 4 : 3;
    add("unlocked once too often", S::stray_unlock(setting, nullptr), bounds_of(3));
    add("unlocked once too often, all admitted", S::stray_unlock(all_in, nullptr), bounds_of(3));
    add("unlocked once too often, one timed", S::stray_unlock(setting, &kSoon), timed(3, 1));
    add("one gives up, 2 threads", S::giving_up(setting, 2, kSoon, true), timed(2, 1));
    add("one gives up, 3 threads", S::giving_up(setting, 3, kSoon, false), timed(most, 1));
    add("one gives up, all admitted", S::giving_up(all_in, 3, kSoon, true), timed(most, 1));
    add("one is too late already", S::giving_up(setting, 3, kPast, false), bounds_of(most));
    add("two timed", S::two_timed(setting), timed(most, 2));
    add("two timed, no time passes", S::two_timed(setting), bounds_of(most));
  }

  void add(const char* what, Program program, Bounds bounds) {
    // Adaptive waiters have one pause each (Setting): it may be over before anything changes.
    if (mode_ == "adaptive") bounds.free_pauses = 1;
    cases_.push_back({std::string(what) + "/" + lock_ + "/" + mode_, std::move(program), bounds,
                      Expect::kPass, "", takes_long(what)});
  }

  // Those that take more than a few seconds, which adds up over the locks.
  bool takes_long(const std::string& what) const {
    if (what == "3 threads, promoted by time") return true;
    if (mode_ != "adaptive") return false;
    // With the two ends of the family in make test; the others differ from them in the middle.
    const bool at_an_end = lock_ == "tas mutex" || lock_ == "qspinlock mutex";
    if (!at_an_end &&
        (what == "3 threads" || what == "2 threads twice" || what == "destroyed by the last" ||
         what == "4 threads, all admitted" || what == "unlocked once too often, one timed" ||
         what == "forked, the child tries")) {
      return true;
    }
    return what == "3 threads, all admitted" || what == "two timed" ||
           what == "a handler locks while its thread waits" ||
           what.rfind("one gives up, 3", 0) == 0 || what.rfind("one gives up, all", 0) == 0;
  }

  std::vector<Case>& cases_;
  std::string lock_;
  std::string mode_;
};

template <template <class, class> class Algorithm>
void add_lock(std::vector<Case>& cases, const char* name) {
  const std::string lock = name;
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    CasesOf<MutexUnderTest<Algorithm>>(cases, lock + " mutex").add_mode(mode);
    if (mode == WaitMode::kPark) continue;  // spinlocks do not park
    CasesOf<SpinUnderTest<Algorithm>>(cases, lock + " spinlock").add_mode(mode);
  }
}

// These stand for others (locks/lock_list.def): there is nothing to explore.
template <class Platform, class Layout>
struct Glibc;
template <>
void add_lock<Glibc>(std::vector<Case>&, const char*) {}
template <class Platform, class Layout>
struct Auto;
template <>
void add_lock<Auto>(std::vector<Case>&, const char*) {}

}  // namespace

void add_lock_cases(std::vector<Case>& cases) {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) add_lock<ident>(cases, name);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
}

}  // namespace relock::explore
