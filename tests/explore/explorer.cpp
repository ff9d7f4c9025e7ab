#include "explorer.h"

#include <csignal>

#include "replay_string.h"
#include "search.h"
#include "world.h"

namespace relock::explore {

namespace {

// A lock that is wrong enough may follow a wild pointer. That is a finding like any other.
void on_crash(int number) {
  if (World::active == nullptr) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  World::active->fail("crash: signal " + std::to_string(number));
}

void catch_crashes() {
  static std::uint8_t stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = &on_crash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

Outcome search_all(const Program& program, const Bounds& bounds) {
  Outcome outcome;
  Search search;
  search.restart();
  World world(program, bounds, search);
  while (outcome.executions < bounds.executions) {
    search.begin_execution();
    world.run();
    ++outcome.executions;
    if (!world.failure().empty()) {
      outcome.failure = world.failure();
      outcome.choices = "p" + std::to_string(bounds.preemptions) + ":" + search.choices();
      break;
    }
    if (world.learned()) {
      search.restart();
    } else if (!search.advance()) {
      outcome.states = search.states();
      return outcome;
    }
  }
  outcome.states = search.states();
  outcome.complete = false;
  return outcome;
}

}  // namespace

Outcome replay(const Program& program, const Bounds& bounds, const std::string& choices) {
  catch_crashes();
  const ReplayString given = parse_replay(choices);
  Outcome outcome;
  outcome.choices = choices;
  if (!given.error.empty()) {
    outcome.misfit = given.error + ": accepted: " + kAcceptedReplay;
    return outcome;
  }
  Bounds same = bounds;
  if (given.has_preemptions) same.preemptions = given.preemptions;
  Search search;
  search.replay(given.choices);
  World world(program, same, search);
  world.keep_trace(true);
  search.begin_execution();
  world.run();
  outcome.executions = 1;
  if (const std::string misfit = search.misfit(); !misfit.empty()) {
    outcome.misfit = misfit + ": accepted: what this case prints when it fails, as it is now";
  }
  outcome.failure = world.failure();
  outcome.trace = world.trace();
  return outcome;
}

Outcome explore(const Program& program, const Bounds& bounds) {
  catch_crashes();
  Outcome outcome = search_all(program, bounds);
  if (outcome.failure.empty()) return outcome;
  // The fewest switches that show the failure make the trace that is easiest to read.
  for (int fewer = 0; fewer < bounds.preemptions; ++fewer) {
    Bounds tighter = bounds;
    tighter.preemptions = fewer;
    tighter.executions = outcome.executions + 100'000;
    Outcome simpler = search_all(program, tighter);
    outcome.executions += simpler.executions;
    if (simpler.failure.empty()) continue;
    outcome.failure = simpler.failure;
    outcome.choices = simpler.choices;
    break;
  }
  outcome.trace = replay(program, bounds, outcome.choices).trace;
  return outcome;
}

void fail(const std::string& reason) { World::active->fail(reason); }
int this_thread() { return World::active->this_thread(); }
void start_thread(int index) { World::active->start_thread(index); }
void become_forked_child() { World::active->become_forked_child(); }
void check_state(std::uint64_t value) { World::active->check_state(value); }
bool is_waiting(int thread) { return World::active->is_waiting(thread); }
int looked_at(int value) { return World::active->looked_at(value); }
void step() { World::active->step(); }
int pick(int n) { return World::active->pick(n); }
void poison(const void* begin, std::size_t bytes) { World::active->poison(begin, bytes); }
void unpoison(const void* begin) { World::active->memory().unpoison(begin); }
void on_commit(CommitHook hook) { World::active->on_commit(hook); }
void name_memory(const void* begin, std::size_t bytes, const std::string& name) {
  World::active->memory().name(begin, bytes, name);
}
void watch(const void* begin, std::size_t bytes) { World::active->watch(begin, bytes); }

}  // namespace relock::explore
