#include "tools/compare.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "policy/options.h"
#include "tools/compare_run.h"
#include "tools/message.h"
#include "tools/preload.h"
#include "tools/rules_check.h"

namespace relock {

namespace {

constexpr double kTimeoutFactor = 20;  // of the first bare run, where no time-out was given
constexpr double kLeastTimeout_s = 60;

// What LD_PRELOAD names besides relock itself.
std::string other_preloads(const std::string& value) {
  std::string others;
  std::size_t begin = 0;
  while (begin < value.size()) {
    std::size_t end = value.find_first_of(" :", begin);
    if (end == std::string::npos) end = value.size();
    const std::string each = value.substr(begin, end - begin);
    const bool ours = each.size() >= 12 && each.compare(each.size() - 12, 12, "librelock.so") == 0;
    if (!each.empty() && !ours) others += (others.empty() ? "" : ":") + each;
    begin = end + 1;
  }
  return others;
}

// Each lock is compared as RELOCK_LOCK, so nothing may override it, and a recorder costs time.
void drop_overriding_variables() {
  for (const char* name : {"RELOCK_MUTEX", "RELOCK_SPIN", "RELOCK_RULES", "RELOCK_PROFILE"}) {
    if (*foreign_variable(name) == '\0') continue;
    warn(std::string(name) + "=" + foreign_variable(name), "not passed on to the program");
    unsetenv(name);
  }
}

// A line that is rewritten on a terminal, and one line for each round elsewhere.
class Progress {
 public:
  Progress(int rounds, std::size_t locks)
      : terminal_(isatty(STDERR_FILENO) != 0), rounds_(rounds), locks_(locks) {}

  void run(int round, std::size_t done, const std::string& name, double left_s) const {
    if (!terminal_) return;
    fprintf(stderr, "\r\033[Kround %d of %d, run %zu of %zu: %s", round + 1, rounds_, done + 1,
            locks_, name.c_str());
    if (left_s > 0) fprintf(stderr, " (about %.0f s left)", left_s);
    fflush(stderr);
  }
  void round(int round, double left_s) const {
    if (terminal_) return;
    fprintf(stderr, "relock: round %d of %d done", round + 1, rounds_);
    if (round + 1 < rounds_) fprintf(stderr, ", about %.0f s left", left_s);
    fprintf(stderr, "\n");
  }
  void clear() const {
    if (terminal_) fprintf(stderr, "\r\033[K");
  }

 private:
  bool terminal_;
  int rounds_;
  std::size_t locks_;
};

class Tournament {
 public:
  Tournament(Comparison* comparison, Runner* runner)
      : comparison_(*comparison),
        runner_(*runner),
        progress_(comparison->plan.rounds, comparison->contestants.size()) {}

  // The first run is bare and does not count: it fills caches, shows how long a run takes, and
  // whether there is anything to compare. 0 or the status to end with.
  int warm_up() {
    RunResult run;
    progress_.run(0, 0, "bare, not counted", 0);
    const Runner::End end = runner_.run("", comparison_.plan.timeout_s, &run);
    progress_.clear();
    const std::string& name = comparison_.plan.command[0];
    if (end == Runner::End::kInterrupted) return 128 + runner_.interrupted_by();
    if (end == Runner::End::kNotStarted) return fail(kUsage, name, strerror(errno));
    if (run.timed_out) {
      return fail(kFailed, name,
                  describe_end(run, comparison_.plan.timeout_s) + " bare: nothing to compare");
    }
    if (comparison_.plan.metric && !run.figure) {
      return fail(kFailed, "--metric " + comparison_.plan.metric_text,
                  "no line of the program's output matches with a number there");
    }
    comparison_.timeout_s = comparison_.plan.timeout_s;
    if (comparison_.timeout_s == 0) {
      comparison_.timeout_s = std::max(kLeastTimeout_s, run.wall_s * kTimeoutFactor);
    }
    typical_s_ = run.wall_s;
    return kOk;
  }

  // 0, or the status to end with once what there is has been printed.
  int play() {
    std::vector<std::size_t> order(comparison_.contestants.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937 random{std::random_device{}()};
    for (int round = 0; round < comparison_.plan.rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (Contestant& contestant : comparison_.contestants) contestant.runs.emplace_back();
      for (std::size_t place = 0; place < order.size(); ++place) {
        const int status = play_one(round, place, &comparison_.contestants[order[place]]);
        if (status != kOk) return status;
      }
      progress_.round(round, left_s(round + 1, 0));
    }
    progress_.clear();
    return kOk;
  }

 private:
  double left_s(int round, std::size_t place) const {
    const double runs =
        static_cast<double>(comparison_.contestants.size()) * (comparison_.plan.rounds - round) -
        static_cast<double>(place);
    return runs * typical_s_;
  }

  int play_one(int round, std::size_t place, Contestant* contestant) {
    if (contestant->left_out) return kOk;
    progress_.run(round, place, contestant->name, left_s(round, place));
    const bool bare = contestant == &comparison_.contestants.front();
    RunResult run;
    const Runner::End end = runner_.run(bare ? "" : contestant->name, comparison_.timeout_s, &run);
    if (end != Runner::End::kMeasured) progress_.clear();
    if (end == Runner::End::kInterrupted) {
      comparison_.interrupted = true;
      return 128 + runner_.interrupted_by();
    }
    if (end == Runner::End::kNotStarted) {
      return fail(kFailed, comparison_.plan.command[0], strerror(errno));
    }
    ++runs_;
    total_s_ += run.wall_s;
    typical_s_ = total_s_ / runs_;
    contestant->left_out = run.timed_out && !bare;
    contestant->runs.back() = run;
    return kOk;
  }

  Comparison& comparison_;
  Runner& runner_;
  Progress progress_;
  double typical_s_ = 0;
  double total_s_ = 0;
  int runs_ = 0;
};

// What must be right before anything is started. 0 or the status.
int prepare_comparison(const CompareRequest& request, Comparison* comparison, std::string* path,
                       std::string* bare_preload) {
  int status = read_compare_request(request, &comparison->plan);
  if (status != kOk) return status;
  drop_overriding_variables();
  if (!comparison->plan.rules.empty()) {
    setenv("RELOCK_RULES", comparison->plan.rules.c_str(), 1);
    status = check_rules();
    comparison->plan.rules = foreign_variable("RELOCK_RULES");
    unsetenv("RELOCK_RULES");
    if (status != kOk) return status;
  }
  *bare_preload = other_preloads(foreign_variable("LD_PRELOAD"));
  setenv("LD_PRELOAD", bare_preload->c_str(), 1);
  status = set_variables({});
  if (status == kOk) status = admit_program(comparison->plan.command[0], path);
  if (status != kOk) return kUsage;
  status = preload_library();
  const std::string preload = foreign_variable("LD_PRELOAD");
  comparison->library = preload.substr(0, preload.find(':'));
  Contestant bare;
  bare.name = "bare";
  comparison->contestants.push_back(bare);
  for (const std::string& lock : comparison->plan.locks) {
    comparison->contestants.emplace_back().name = lock;
  }
  if (!comparison->plan.rules.empty()) {
    comparison->contestants.emplace_back().name = kRulesContestant;
  }
  return status;
}

bool all_agree(const Comparison& comparison) {
  return std::all_of(comparison.contestants.begin(), comparison.contestants.end(),
                     [](const Contestant& each) { return each.complaints.empty(); });
}

}  // namespace

int compare_command(const CompareRequest& request) {
  Comparison comparison;
  std::string path;
  std::string bare_preload;
  int status = prepare_comparison(request, &comparison, &path, &bare_preload);
  if (status != kOk) return status;
  Runner runner(comparison.plan, path, foreign_variable("LD_PRELOAD"), bare_preload);
  Tournament tournament(&comparison, &runner);
  status = tournament.warm_up();
  if (status != kOk) return status;
  status = tournament.play();
  judge_runs(&comparison);
  const std::string text =
      comparison.plan.json ? comparison_json(comparison) : comparison_text(comparison);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return fail(kFailed, "standard output", "cannot be written");
  }
  if (status != kOk) return status;
  return all_agree(comparison) ? kOk : kFailed;
}

}  // namespace relock
