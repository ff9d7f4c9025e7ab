// explore_tests                      every case, one line each, then what was explored
// explore_tests WORD...              the cases whose names contain one of the words
// explore_tests --list               names only
// explore_tests --replay STRING CASE runs one schedule as a failure printed it, with its trace
//
// The cases are dealt out to as many processes as there are CPUs (RELOCK_EXPLORE_JOBS overrides).
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include <fcntl.h>

#include "case.h"
#include "report.h"

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

std::string format(const char* pattern, auto... values) {
  const int length = std::snprintf(nullptr, 0, pattern, values...);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, values...);
  return text;
}

// A schedule's end says most; its beginning is in the replay.
std::string tail_of(const std::string& trace) {
  constexpr int kLines = 120;
  std::size_t at = trace.size();
  for (int lines = 0; at > 0 && lines <= kLines; ++lines) at = trace.rfind('\n', at - 1);
  if (at == std::string::npos || at == 0) return trace;
  return "  ..." + trace.substr(at);
}

struct Result {
  bool good;
  std::string lines;
};

Result failed(const Case& test, const Outcome& outcome, const std::string& why) {
  std::string lines;
  if (!outcome.failure.empty()) {
    lines = tail_of(outcome.trace) + format("  replay: explore_tests --replay %s '%s'\n",
                                            outcome.choices.c_str(), test.name.c_str());
  }
  return {false, lines + format("not ok %s - %s (%llu executions)\n", test.name.c_str(),
                                why.c_str(), static_cast<unsigned long long>(outcome.executions))};
}

// The bug must be found, show as expected, and show again when its replay string is run.
Result result_of_planted(const Case& test, const Outcome& outcome) {
  if (outcome.failure.empty()) return failed(test, outcome, "the planted bug is not found");
  if (outcome.failure.find(test.reason) == std::string::npos) {
    return failed(test, outcome,
                  "shows as '" + outcome.failure + "', not as '" + test.reason + "'");
  }
  const Outcome again = replay(test.program, test.bounds, outcome.choices);
  if (!again.misfit.empty()) return failed(test, outcome, "cannot be replayed: " + again.misfit);
  if (again.failure != outcome.failure) {
    return failed(test, outcome,
                  "'" + outcome.failure + "' is replayed as '" + again.failure + "'");
  }
  return {true, format("ok %s (found after %llu executions: %s; replay %s)\n", test.name.c_str(),
                       static_cast<unsigned long long>(outcome.executions), outcome.failure.c_str(),
                       outcome.choices.c_str())};
}

Result run_case(const Case& test, Totals& totals) {
  const std::clock_t start = std::clock();
  Bounds bounds = test.bounds;
  // The longest are cut off in make test, and wider bounds are not always exhausted in reasonable
  // time either; then the line says so. A planted bug has to be found.
  constexpr std::uint64_t kQuickExecutions = 20'000;
  if (!deep() && test.expect == Expect::kPass && !test.whole) bounds.executions = kQuickExecutions;
  const Outcome outcome = explore(test.program, bounds);
  ++totals.ran;
  totals.executions += outcome.executions;
  totals.states += outcome.states;
  if (test.expect == Expect::kFailure) return result_of_planted(test, outcome);
  if (!outcome.failure.empty()) return failed(test, outcome, outcome.failure);
  if (!outcome.complete) ++totals.unfinished;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return {true, format("ok %s (%llu executions%s, %llu states, %.2f s)\n", test.name.c_str(),
                       static_cast<unsigned long long>(outcome.executions),
                       outcome.complete ? "" : ", not exhausted",
                       static_cast<unsigned long long>(outcome.states), seconds)};
}

// ---- the cases, dealt out to processes ----

using Chosen = std::vector<const Case*>;

// Several processes print: each takes a lock that its death would give back.
void print(const std::string& lines) {
  static const int turn = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  flock(turn, LOCK_EX);
  for (std::size_t done = 0; done < lines.size();) {
    const ssize_t wrote = write(STDOUT_FILENO, lines.data() + done, lines.size() - done);
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  flock(turn, LOCK_UN);
}

void work(const Chosen& cases, Totals& totals, std::atomic<std::uint32_t>& at) {
  for (;;) {
    const std::uint32_t next = totals.next_case++;
    if (next >= cases.size()) return;
    at = next;
    const Result result = run_case(*cases[next], totals);
    if (!result.good) ++totals.failed;
    print(result.lines);
  }
}

int worker_count() {
  if (const char* jobs = std::getenv("RELOCK_EXPLORE_JOBS"); jobs != nullptr) {
    const int wanted = std::atoi(jobs);
    if (wanted >= 1 && wanted <= 64) return wanted;
  }
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return CPU_COUNT(&cpus) < 8 ? CPU_COUNT(&cpus) : 8;
}

template <class T>
T* shared(std::size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<T*>(memory);  // all zero, which is how atomics of integers begin
}

bool run_all(const Chosen& cases) {
  const int workers = worker_count();
  auto& totals = *shared<Totals>(1);
  auto* at = shared<std::atomic<std::uint32_t>>(static_cast<std::size_t>(workers));
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  std::vector<pid_t> children;
  for (int i = 0; i < workers; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      work(cases, totals, at[i]);
      _exit(0);
    }
    children.push_back(child);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    if (children[i] > 0 && waitpid(children[i], &status, 0) > 0 && status == 0) continue;
    ++totals.failed;
    print(format("not ok %s - its process ended with status %d\n", cases[at[i]]->name.c_str(),
                 status));
  }
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double seconds = static_cast<double>(end.tv_sec - start.tv_sec) +
                         static_cast<double>(end.tv_nsec - start.tv_nsec) * 1e-9;
  print(describe(totals, seconds, workers) + "\n");
  return totals.failed == 0;
}

int refuse(const char* what, const char* value, const std::string& why) {
  std::fprintf(stderr, "relock: error: %s: %s: %s\n", what, value, why.c_str());
  return 2;
}

int replay_case(const std::vector<Case>& cases, const char* choices, const char* name) {
  for (const Case& test : cases) {
    if (test.name != name) continue;
    const Outcome outcome = replay(test.program, test.bounds, choices);
    if (!outcome.misfit.empty()) return refuse("--replay", choices, outcome.misfit);
    std::fputs(outcome.trace.c_str(), stdout);
    std::printf("%s\n", outcome.failure.empty() ? "passes" : outcome.failure.c_str());
    return outcome.failure.empty() ? 0 : 1;
  }
  return refuse("--replay", name, "there is no such case: SLOW=1 explore_tests --list names all");
}

bool named(const Case& test, int count, char** words) {
  for (int i = 0; i < count; ++i) {
    if (test.name.find(words[i]) != std::string::npos) return true;
  }
  return count == 0;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_explorer_cases(cases);
  add_lock_cases(cases);
  add_order_cases(cases);
  add_bound_cases(cases);
  add_weak_cases(cases);
  add_condvar_cases(cases);
  add_rwsem_cases(cases);
  add_planted_rwsem_cases(cases);
  add_planted_lock_cases(cases);
  add_planted_condvar_cases(cases);
  return cases;
}

bool enough_planted(const std::vector<Case>& cases) {
  const PlantedCount count = count_planted(cases);
  print(format("planted bugs: %d (%s)\n", count.all, count.by_lock.c_str()));
  if (count.missing.empty()) {
    print("ok at least 24 planted bugs, some in every lock\n");
  } else {
    print("not ok at least 24 planted bugs, some in every lock - " + count.missing + "\n");
  }
  return count.missing.empty();
}

int run(int argc, char** argv) {
  const std::vector<Case> cases = all_cases();
  if (argc == 4 && std::strcmp(argv[1], "--replay") == 0) {
    return replay_case(cases, argv[2], argv[3]);
  }
  const bool list = argc == 2 && std::strcmp(argv[1], "--list") == 0;
  if (!list && argc > 1 && argv[1][0] == '-') {
    std::fprintf(stderr, "usage: %s [--list | --replay STRING CASE | WORD...]\n", argv[0]);
    return 2;
  }
  Chosen chosen;
  for (const Case& test : cases) {
    if (test.slow && !deep()) continue;
    if (list) std::printf("%s\n", test.name.c_str());
    if (!list && named(test, argc - 1, argv + 1)) chosen.push_back(&test);
  }
  if (list) return 0;
  if (chosen.empty())
    return refuse("case", argv[1], "no name contains it: SLOW=1 explore_tests --list names all");
  bool good = run_all(chosen);
  if (argc == 1) good = enough_planted(cases) && good;
  return good ? 0 : 1;
}

}  // namespace

}  // namespace relock::explore

int main(int argc, char** argv) { return relock::explore::run(argc, argv); }
