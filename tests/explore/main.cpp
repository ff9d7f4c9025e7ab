// explore_tests                      every case, one line each
// explore_tests WORD...              the cases whose names contain one of the words
// explore_tests --list               names only
// explore_tests --replay STRING CASE runs one schedule as a failure printed it, with its trace
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "case.h"

namespace relock::explore {

bool deep() {
  static const bool value = [] {
    for (const char* name : {"SLOW", "RELOCK_EXPLORE_DEEP"}) {
      const char* setting = std::getenv(name);
      if (setting != nullptr && *setting != '\0' && std::strcmp(setting, "0") != 0) return true;
    }
    return false;
  }();
  return value;
}

namespace {

// A schedule's end says most; its beginning is in the replay.
void print_tail(const std::string& trace) {
  constexpr int kLines = 120;
  std::size_t at = trace.size();
  for (int lines = 0; at > 0 && lines <= kLines; ++lines) at = trace.rfind('\n', at - 1);
  if (at == std::string::npos || at == 0) {
    std::fputs(trace.c_str(), stdout);
  } else {
    std::printf("  ...%s", trace.c_str() + at);
  }
}

bool run_case(const Case& test) {
  const std::clock_t start = std::clock();
  Bounds bounds = test.bounds;
  // Wider bounds are not always exhausted in reasonable time; then the line says so.
  constexpr std::uint64_t kDeepExecutions = 1'000'000;
  if (deep() && test.expect == Expect::kPass) bounds.executions = kDeepExecutions;
  const Outcome outcome = explore(test.program, bounds);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const char* name = test.name.c_str();
  if (test.expect == Expect::kFailure) {
    const bool found = outcome.failure.find(test.reason) != std::string::npos;
    if (!outcome.failure.empty() && found) {
      std::printf("ok %s (found after %llu executions: %s)\n", name,
                  static_cast<unsigned long long>(outcome.executions), outcome.failure.c_str());
      return true;
    }
    std::printf("not ok %s - the planted bug shows as '%s', not as '%s', in %llu executions\n",
                name, outcome.failure.c_str(), test.reason.c_str(),
                static_cast<unsigned long long>(outcome.executions));
    return false;
  }
  if (outcome.failure.empty() && (outcome.complete || deep())) {
    std::printf("ok %s (%llu executions%s, %llu states, %.2f s)\n", name,
                static_cast<unsigned long long>(outcome.executions),
                outcome.complete ? "" : ", not exhausted",
                static_cast<unsigned long long>(outcome.states), seconds);
    return true;
  }
  if (outcome.failure.empty()) {
    std::printf("not ok %s - not finished after %llu executions\n", name,
                static_cast<unsigned long long>(outcome.executions));
    return false;
  }
  print_tail(outcome.trace);
  std::printf("  replay: explore_tests --replay %s '%s'\n", outcome.choices.c_str(), name);
  std::printf("not ok %s - %s (execution %llu)\n", name, outcome.failure.c_str(),
              static_cast<unsigned long long>(outcome.executions));
  return false;
}

int replay_case(const std::vector<Case>& cases, const char* choices, const char* name) {
  for (const Case& test : cases) {
    if (test.name != name) continue;
    const Outcome outcome = replay(test.program, test.bounds, choices);
    std::fputs(outcome.trace.c_str(), stdout);
    std::printf("%s\n", outcome.failure.empty() ? "passes" : outcome.failure.c_str());
    return outcome.failure.empty() ? 0 : 1;
  }
  std::fprintf(stderr, "there is no case '%s'\n", name);
  return 2;
}

bool named(const Case& test, int count, char** words) {
  for (int i = 0; i < count; ++i) {
    if (test.name.find(words[i]) != std::string::npos) return true;
  }
  return count == 0;
}

int run(int argc, char** argv) {
  std::vector<Case> cases;
  add_explorer_cases(cases);
  add_lock_cases(cases);
  add_order_cases(cases);
  add_condvar_cases(cases);
  add_rwsem_cases(cases);
  add_planted_rwsem_cases(cases);
  add_planted_lock_cases(cases);
  add_planted_condvar_cases(cases);
  if (argc == 4 && std::strcmp(argv[1], "--replay") == 0) {
    return replay_case(cases, argv[2], argv[3]);
  }
  const bool list = argc == 2 && std::strcmp(argv[1], "--list") == 0;
  if (!list && argc > 1 && argv[1][0] == '-') {
    std::fprintf(stderr, "usage: %s [--list | --replay STRING CASE | WORD...]\n", argv[0]);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool all = true;
  for (const Case& test : cases) {
    if (test.slow && !deep()) continue;
    if (list) {
      std::printf("%s\n", test.name.c_str());
    } else if (named(test, argc - 1, argv + 1)) {
      all = run_case(test) && all;
    }
  }
  return all ? 0 : 1;
}

}  // namespace

}  // namespace relock::explore

int main(int argc, char** argv) { return relock::explore::run(argc, argv); }
