// Which runs count, what is wrong with the others, and what the comparison advises.
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "tools/compare.h"

namespace relock {

namespace {

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// "in 2 of 7 runs"
std::string in_runs(std::size_t count, std::size_t of) {
  return "in " + std::to_string(count) + " of " + std::to_string(of) + " runs";
}

std::size_t runs_done(const Contestant& contestant) {
  std::size_t count = 0;
  for (const auto& run : contestant.runs) count += run.has_value() ? 1 : 0;
  return count;
}

// What bare runs have in common; nothing where they differ among themselves.
struct Expected {
  std::optional<int> status;
  std::optional<std::pair<std::size_t, std::size_t>> output;
  bool figure = false;
};

std::pair<std::size_t, std::size_t> output_of(const RunResult& run) {
  return {run.output_size, run.output_hash};
}

Expected expect_of_bare(const Comparison& comparison) {
  Expected expected;
  bool first = true;
  bool same_status = true;
  bool same_output = true;
  for (const auto& run : comparison.bare().runs) {
    if (!run || run->timed_out) continue;
    if (first) {
      expected.status = run->status;
      expected.output = output_of(*run);
    }
    same_status = same_status && run->status == *expected.status;
    same_output = same_output && output_of(*run) == *expected.output;
    first = false;
  }
  if (!same_status) expected.status.reset();
  if (!same_output || !comparison.plan.same_output) expected.output.reset();
  expected.figure = comparison.plan.metric.has_value();
  return expected;
}

void remark_on_bare(Comparison* comparison, const Expected& expected) {
  if (runs_done(comparison->bare()) == 0) return;
  std::vector<std::string>& remarks = comparison->remarks;
  if (!expected.status) {
    remarks.emplace_back("bare runs end in different ways among themselves: not compared");
  } else if (*expected.status != 0) {
    RunResult run;
    run.status = *expected.status;
    remarks.push_back("the program itself fails, bare too: " + describe_end(run, 0));
  }
  if (comparison->plan.same_output && !expected.output) {
    remarks.emplace_back("bare runs differ in their standard output: it was not compared");
  }
}

// Counts of each way in which a run was not as expected.
struct Faults {
  std::size_t timed_out = 0;
  std::size_t status = 0;
  std::size_t output = 0;
  std::size_t figure = 0;
  const RunResult* example = nullptr;  // with another status
};

Faults examine_runs(Contestant* contestant, const Expected& expected) {
  Faults faults;
  contestant->counts.assign(contestant->runs.size(), false);
  for (std::size_t i = 0; i < contestant->runs.size(); ++i) {
    if (!contestant->runs[i]) continue;
    const RunResult& run = *contestant->runs[i];
    if (run.timed_out) {
      ++faults.timed_out;
    } else if (expected.status && run.status != *expected.status) {
      ++faults.status;
      faults.example = &run;
    } else if (expected.output && output_of(run) != *expected.output) {
      ++faults.output;
    } else if (expected.figure && !run.figure) {
      ++faults.figure;
    } else {
      contestant->counts[i] = true;
    }
  }
  return faults;
}

void complain(Contestant* contestant, const Faults& faults, const Expected& expected,
              double timeout_s) {
  const std::size_t runs = runs_done(*contestant);
  std::vector<std::string>& complaints = contestant->complaints;
  if (faults.timed_out != 0) {
    complaints.push_back("did not end within " + short_number(timeout_s) + " s " +
                         in_runs(faults.timed_out, runs) + ": killed" +
                         (contestant->left_out ? ", and left out of the rounds after it" : ""));
  }
  if (faults.status != 0) {
    RunResult bare;
    bare.status = *expected.status;
    std::string line = describe_end(*faults.example, timeout_s) + " " +
                       in_runs(faults.status, runs) + ", bare " + describe_end(bare, 0);
    if (!faults.example->last_words.empty()) {
      line += "; last words: " + faults.example->last_words.substr(0, 200);
    }
    complaints.push_back(line);
  }
  if (faults.output != 0) {
    complaints.push_back("standard output differs from bare's " + in_runs(faults.output, runs));
  }
  if (faults.figure != 0) {
    complaints.push_back("no figure in the output " + in_runs(faults.figure, runs));
  }
}

double quantity_of(const RunResult& run, Quantity quantity) {
  switch (quantity) {
    case Quantity::kWall:
      return run.wall_s;
    case Quantity::kCpu:
      return run.cpu_s;
    case Quantity::kVoluntary:
      return run.voluntary;
    case Quantity::kInvoluntary:
      return run.involuntary;
    case Quantity::kPeak:
      return run.peak_mib;
    case Quantity::kFigure:
      return run.figure.value_or(std::nan(""));
  }
  return std::nan("");
}

}  // namespace

std::string describe_end(const RunResult& run, double timeout_s) {
  if (run.timed_out) return "did not end within " + short_number(timeout_s) + " s";
  if (WIFSIGNALED(run.status)) {
    const int number = WTERMSIG(run.status);
    const char* name = sigabbrev_np(number);
    return "ended by " + (name != nullptr ? "SIG" + std::string(name) : std::to_string(number));
  }
  return "exit status " + std::to_string(WEXITSTATUS(run.status));
}

void judge_runs(Comparison* comparison) {
  const Expected expected = expect_of_bare(*comparison);
  remark_on_bare(comparison, expected);
  for (Contestant& contestant : comparison->contestants) {
    contestant.complaints.clear();
    const Faults faults = examine_runs(&contestant, expected);
    complain(&contestant, faults, expected, comparison->timeout_s);
  }
}

std::vector<double> Comparison::values(const Contestant& contestant, Quantity quantity) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < contestant.runs.size(); ++i) {
    if (contestant.counts[i]) values.push_back(quantity_of(*contestant.runs[i], quantity));
  }
  return values;
}

// By round; NaN where a round has no pair.
std::vector<double> Comparison::ratios(const Contestant& contestant, Quantity quantity) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < contestant.runs.size(); ++i) {
    double ratio = std::nan("");
    if (contestant.counts[i] && bare().counts[i]) {
      const double mine = quantity_of(*contestant.runs[i], quantity);
      const double theirs = quantity_of(*bare().runs[i], quantity);
      if (mine > 0 && theirs > 0) ratio = mine / theirs;
    }
    ratios.push_back(ratio);
  }
  return ratios;
}

Ratio Comparison::ratio(const Contestant& contestant, Quantity quantity) const {
  std::vector<double> known;
  for (const double each : ratios(contestant, quantity)) {
    if (std::isfinite(each)) known.push_back(each);
  }
  return paired_ratio(known, contestants.size() - 1);
}

// ---- the advice ---------------------------------------------------------------------------

namespace {

Candidate candidate_of(const Comparison& comparison, const Contestant& contestant) {
  Candidate candidate;
  candidate.name = contestant.name;
  // A lock that changed what the program does is no candidate, and the C library's own behind
  // relock is no other lock.
  if (!contestant.complaints.empty() || contestant.name == "glibc") return candidate;
  candidate.gain = comparison.ratio(contestant, comparison.deciding());
  candidate.cpu = comparison.ratio(contestant, Quantity::kCpu);
  candidate.gain_by_round = comparison.ratios(contestant, comparison.deciding());
  if (comparison.higher_is_better()) return candidate;
  Ratio& gain = candidate.gain;
  gain.middle = 1 / gain.middle;
  const double low = 1 / gain.high;
  gain.high = 1 / gain.low;
  gain.low = low;
  for (double& each : candidate.gain_by_round) each = 1 / each;
  return candidate;
}

// "the wall time is 17.2 % lower than with the C library's locks (between 15.0 and 20.1 %)"
std::string difference(const Comparison& comparison, const Contestant& contestant) {
  const Ratio ratio = comparison.ratio(contestant, comparison.deciding());
  const auto percent = [](double each) { return std::fabs(each - 1) * 100; };
  const double least = std::min(percent(ratio.low), percent(ratio.high));
  const double most = std::max(percent(ratio.low), percent(ratio.high));
  return std::string(comparison.plan.metric ? "the figure" : "the wall time") + " is " +
         number(percent(ratio.middle), 1) + " % " + (ratio.middle < 1 ? "lower" : "higher") +
         " than with the C library's locks (between " + number(least, 1) + " and " +
         number(most, 1) + " %)";
}

void say_better(const Comparison& comparison, const Contestant& best, const Candidate& candidate,
                Advice* advice) {
  advice->lock = best.name;
  advice->environment = "LD_PRELOAD=" + comparison.library +
                        (best.name == kRulesContestant ? " RELOCK_RULES=" + comparison.plan.rules
                                                       : " RELOCK_LOCK=" + best.name);
  std::string cost;
  if (candidate.cpu.above_one())
    cost = ", for " + number(candidate.cpu.middle, 2) + " x the CPU time";
  if (candidate.cpu.below_one())
    cost = ", with " + number(candidate.cpu.middle, 2) + " x the CPU time";
  advice->sentence = "Use " + best.name + ": " + difference(comparison, best) + cost + "; set " +
                     advice->environment;
}

}  // namespace

Advice advise_lock(const Comparison& comparison) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 1; i < comparison.contestants.size(); ++i) {
    candidates.push_back(candidate_of(comparison, comparison.contestants[i]));
  }
  const Choice choice = choose(candidates, "auto");
  Advice advice;
  advice.outcome = choice.outcome;
  switch (choice.outcome) {
    case Outcome::kNothing:
      advice.sentence = "No lock can be advised: there is no pair of runs to compare.";
      break;
    case Outcome::kOnePair:
      advice.sentence = "One round says nothing about chance: run more of them (-n 7).";
      break;
    case Outcome::kNoise:
      advice.sentence =
          "Stay with the C library's locks: the difference is noise, no lock is faster or slower "
          "than " +
          std::to_string(comparison.plan.rounds) + " rounds can tell from chance.";
      break;
    case Outcome::kWorse:
      advice.sentence = std::string("Stay with the C library's locks: no lock is better, and ") +
                        (choice.all_worse ? "all are worse, with " : "some are worse, with ") +
                        candidates[choice.worst].name + " " +
                        difference(comparison, comparison.contestants[choice.worst + 1]) + ".";
      break;
    case Outcome::kBetter:
      say_better(comparison, comparison.contestants[choice.best + 1], candidates[choice.best],
                 &advice);
      break;
  }
  return advice;
}

}  // namespace relock
