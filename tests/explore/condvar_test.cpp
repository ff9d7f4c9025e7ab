// The condition variable: every script must pass.
#include "case.h"
#include "condvar_scripts.h"
#include "policy/options.h"

namespace relock::explore {

namespace {

Bounds bounds_of(int preemptions, int timeouts = 0) {
  Bounds bounds;
  bounds.preemptions = preemptions + (deep() ? 1 : 0);
  bounds.timeouts = timeouts;
  bounds.burnouts = deep() ? 1 : 0;
  return bounds;
}

// The object is touched under locks only: delayed stores change little, and the scripts are long.
Bounds without_delay(Bounds bounds) {
  if (!deep()) bounds.delayed_stores = 0;
  return bounds;
}

Bounds with_burnout(Bounds bounds) {
  bounds.burnouts = 1;
  return bounds;
}

}  // namespace

namespace {

using C = CondPrograms;

class Adder {
 public:
  Adder(std::vector<Case>& cases, WaitMode mode) : cases_(cases), mode_(mode) { C::mode = mode; }
  ~Adder() { C::mode = WaitMode::kPark; }

  // Every way to wait and to signal.
  void add_tokens() {
    add("signal, mutex held", C::tokens_for(1, false, true, false), bounds_of(3));
    add("signal, mutex released", C::tokens_for(1, false, false, false),
        with_burnout(bounds_of(3)));
    add("signal for each of 2", C::tokens_for(2, false, true, false), without_delay(bounds_of(2)));
    add("signal for each of 2, mutex released", C::tokens_for(2, false, false, false),
        without_delay(bounds_of(2)));
    add("broadcast to 2", C::tokens_for(2, true, true, false), without_delay(bounds_of(2)));
    add("broadcast to 2, mutex released", C::tokens_for(2, true, false, false),
        without_delay(bounds_of(2)));
    add("broadcast to 3", C::tokens_for(3, true, true, false), without_delay(bounds_of(1)));
    add("destroyed after a signal", C::tokens_for(1, false, false, true), bounds_of(3));
    add("destroyed after a broadcast to 2", C::tokens_for(2, true, false, true),
        without_delay(bounds_of(2)));
    add("destroyed after a broadcast to 2, mutex held", C::tokens_for(2, true, true, true),
        without_delay(bounds_of(2)));
  }

  // One of the woken does not go on, or destroys the object, before the others have come.
  void add_handlers() {
    add("broadcast, the handler came before it", C::handler(Handler::kBeforeWake, true),
        without_delay(bounds_of(2)));
    add("broadcast, the handler comes after the wake", C::handler(Handler::kAfterWake, true),
        without_delay(bounds_of(2)));
    add("broadcast, the handler comes after the wake, mutex released",
        C::handler(Handler::kAfterWake, false), without_delay(bounds_of(2)));
    // A spinner in a handler keeps its place at the mutex's gate until sleepers are let in by time,
    // which is the gate's matter.
    if (mode_ != WaitMode::kAdaptive) {
      add("broadcast, the handler comes in a wait for the mutex",
          C::handler(Handler::kAtMutex, true), without_delay(bounds_of(2)));
    }
    add("destroyed by the first that a broadcast wakes", C::destroyed_by_a_waiter(2),
        without_delay(bounds_of(2)));
    add("destroyed by the first of 3 that a broadcast wakes", C::destroyed_by_a_waiter(3),
        without_delay(bounds_of(1)));
  }

  void add_ends() {
    add("destroyed while a waiter times out", C::destroy_races_timeout(),
        without_delay(bounds_of(3, 1)));
    add("a timeout races a signal", C::signal_races(false), without_delay(bounds_of(2, 1)));
    add("a timeout races a signal, small lock contended", C::signal_races(false),
        with_burnout(without_delay(bounds_of(1, 1))));
    add("a cancellation races a signal", C::signal_races(true), without_delay(bounds_of(2, 1)));
    for (const char* who : {"xb", "cb", "xB", "cB", "xs", "cS"}) {
      add(std::string("crowd ") + who, C::crowd(who), bounds_of(3, 1));
    }
    for (const char* who : {"wxb", "wcB", "xcb", "xcB", "xxb"}) {
      add(std::string("crowd ") + who, C::crowd(who), without_delay(bounds_of(2, 1)));
    }
    for (const char* who : {"wxss", "wcsS", "wxcB", "xcsb", "wwxb"}) {
      add(std::string("crowd ") + who, C::crowd(who), without_delay(bounds_of(1, 1)));
    }
  }

  void add_forks() {
    for (const char* who : {"wS", "xs", "wb", "xB", "ww", "cx"}) {
      for (const char* child : {"b", "xsS"}) {
        const int preemptions = std::strlen(child) == 1 ? 2 : 0;
        add(std::string("forked beside ") + who + ", the child has " + child,
            C::forking(who, child), without_delay(bounds_of(preemptions, 1)));
      }
    }
  }

 private:
  void add(const std::string& name, Program program, Bounds bounds) {
    if (mode_ == WaitMode::kAdaptive) bounds.free_pauses = 1;
    if (mode_ == WaitMode::kSpin) bounds.burnouts = 0;  // there is no allowance to use up
    // The mutex's waiters differ, its other users do not: a switch less shows as much.
    if (mode_ != WaitMode::kPark && bounds.preemptions > 0 && !deep()) --bounds.preemptions;
    cases_.push_back({name + "/condvar/" + wait_mode_name(mode_), std::move(program), bounds,
                      Expect::kPass, ""});
  }

  std::vector<Case>& cases_;
  WaitMode mode_;
};

}  // namespace

void add_condvar_cases(std::vector<Case>& cases) {
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    Adder adder(cases, mode);
    adder.add_tokens();
    adder.add_handlers();
    adder.add_ends();
    adder.add_forks();
  }
}

}  // namespace relock::explore
