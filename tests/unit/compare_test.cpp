// What a comparison concludes from its runs: statistics, the figure in an output, the advice.
#include <cmath>
#include <random>

#include <catch2/catch.hpp>
#include "tools/compare.h"
#include "tools/compare_stats.h"

using namespace relock;

TEST_CASE("compare: medians") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({7}) == 7);
  CHECK(std::isnan(median({})));
}

TEST_CASE("compare: Student's bounds are the tables'") {
  CHECK(student_bound(0.95, 1) == Approx(12.706).epsilon(1e-4));
  CHECK(student_bound(0.95, 2) == Approx(4.303).epsilon(1e-3));
  CHECK(student_bound(0.95, 6) == Approx(2.447).epsilon(1e-3));
  CHECK(student_bound(0.99, 9) == Approx(3.250).epsilon(1e-3));
  CHECK(student_bound(0.95, 200) == Approx(1.972).epsilon(1e-3));
}

namespace {

// Log-normal ratios around `middle`.
std::vector<double> noisy(std::mt19937& random, double middle, double spread, std::size_t count) {
  std::normal_distribution<double> noise(0, spread);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(middle * std::exp(noise(random)));
  return values;
}

Candidate candidate(const std::string& name, const std::vector<double>& gains) {
  Candidate result;
  result.name = name;
  result.gain = paired_ratio(gains, 1);
  result.gain_by_round = gains;
  return result;
}

}  // namespace

TEST_CASE("compare: an interval holds the truth as often as it says") {
  std::mt19937 random(7);
  for (const std::size_t pairs : {std::size_t{3}, std::size_t{7}, std::size_t{20}}) {
    int held = 0;
    constexpr int kTrials = 400;
    for (int i = 0; i < kTrials; ++i) {
      const Ratio ratio = paired_ratio(noisy(random, 1.3, 0.1, pairs), 1);
      held += ratio.low <= 1.3 && 1.3 <= ratio.high ? 1 : 0;
    }
    INFO(pairs << " pairs: held " << held << " of " << kTrials);
    CHECK(held >= kTrials * 90 / 100);
  }
}

TEST_CASE("compare: equal locks are noise, nine of them at once too") {
  std::mt19937 random(11);
  int claimed = 0;
  constexpr int kTrials = 200;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<Candidate> candidates;
    for (int lock = 0; lock < 9; ++lock) {
      Candidate each = candidate("lock", noisy(random, 1, 0.1, 7));
      each.gain = paired_ratio(each.gain_by_round, 9);
      candidates.push_back(each);
    }
    claimed += choose(candidates, "auto").outcome == Outcome::kNoise ? 0 : 1;
  }
  INFO("claimed a difference " << claimed << " times of " << kTrials);
  CHECK(claimed <= kTrials * 10 / 100);
}

TEST_CASE("compare: one pair has no bounds, none says nothing") {
  const Ratio one = paired_ratio({1.5}, 1);
  CHECK(one.pairs == 1);
  CHECK_FALSE(one.bounded);
  CHECK_FALSE(one.above_one());
  CHECK(paired_ratio({}, 1).pairs == 0);
  CHECK(choose({candidate("a", {1.5})}, "").outcome == Outcome::kOnePair);
  CHECK(choose({candidate("a", {})}, "").outcome == Outcome::kNothing);
  CHECK(choose({}, "").outcome == Outcome::kNothing);
}

TEST_CASE("compare: the surest gain is chosen, the preferred one where they are alike") {
  const Candidate better = candidate("better", {1.5, 1.52, 1.49, 1.51, 1.5});
  const Candidate best = candidate("best", {2.0, 2.02, 1.99, 2.01, 2.0});
  const Candidate alike = candidate("auto", {1.99, 2.03, 1.98, 2.02, 1.99});
  const Candidate worse = candidate("worse", {0.8, 0.81, 0.79, 0.8, 0.8});
  const Candidate lucky = candidate("lucky", {9, 0.5, 0.6, 8, 2.5});

  Choice choice = choose({worse, better, best, lucky}, "auto");
  CHECK(choice.outcome == Outcome::kBetter);
  CHECK(choice.best == 2);
  choice = choose({alike, worse, better, best}, "auto");
  CHECK(choice.best == 0);
  CHECK(choose({better, best}, "better").best == 1);
  choice = choose({worse, lucky}, "auto");
  CHECK(choice.outcome == Outcome::kWorse);
  CHECK(choice.worst == 0);
  CHECK_FALSE(choice.all_worse);
  CHECK(choose({worse}, "auto").all_worse);
  CHECK(choose({lucky}, "auto").outcome == Outcome::kNoise);
}

TEST_CASE("compare: a sure gain of less than a hundredth is not worth a setting") {
  CHECK(choose({candidate("a", {1.005, 1.0051, 1.0049, 1.005})}, "").outcome == Outcome::kNoise);
}

TEST_CASE("compare: the figure in an output") {
  const auto find = [](const char* text, const char* expression) {
    return find_figure(text, std::regex(expression)).value_or(-1);
  };
  CHECK(find("a\nspeed: 12.5 MB/s\n", "speed: ([0-9.]+)") == 12.5);
  CHECK(find("1,234,567.5 ops", "(\\S+) ops") == 1234567.5);
  CHECK(find("12,34 ops", "(\\S+) ops") == 12);
  CHECK(find("4096 ops/s\n8192 ops/s", "[0-9]+ ops") == 4096);
  CHECK(find("rate=1.5e6", "rate=(.*)") == 1.5e6);
  CHECK(find("rate=-3", "rate=(.*)") == -3);
  CHECK(find("rate=none\nrate=4", "rate=(.*)") == 4);
  CHECK(find("line\r\nx 5\r\n", "x (.)$") == 5);
  CHECK(find("nothing here", "([0-9]+)") == -1);
  CHECK(find((std::string(1 << 20, 'a') + "\nx 7").c_str(), "x.*?(\\d)") == 7);
}

namespace {

RunResult run(double wall_s, int exit_status) {
  RunResult result;
  result.wall_s = wall_s;
  result.cpu_s = 1;
  result.status = exit_status << 8;
  return result;
}

Comparison two_locks() {
  Comparison comparison;
  comparison.plan.rounds = 5;
  comparison.plan.command = {"program"};
  comparison.library = "/lib/librelock.so";
  comparison.contestants.resize(3);
  comparison.contestants[0].name = "bare";
  comparison.contestants[1].name = "tas";
  comparison.contestants[2].name = "cna";
  for (int i = 0; i < 5; ++i) {
    comparison.contestants[0].runs.emplace_back(run(2 + 0.01 * i, 0));
    comparison.contestants[1].runs.emplace_back(run(1 + 0.005 * i, 0));
    comparison.contestants[2].runs.emplace_back(run(0.5 + 0.002 * i, i == 3 ? 1 : 0));
  }
  return comparison;
}

}  // namespace

TEST_CASE("compare: a lock that changes the exit status is never advised") {
  Comparison comparison = two_locks();
  judge_runs(&comparison);
  CHECK(comparison.contestants[1].complaints.empty());
  REQUIRE(comparison.contestants[2].complaints.size() == 1);
  CHECK(comparison.contestants[2].complaints[0] ==
        "exit status 1 in 1 of 5 runs, bare exit status 0");
  const Advice advice = advise_lock(comparison);
  CHECK(advice.outcome == Outcome::kBetter);
  CHECK(advice.lock == "tas");
  CHECK(advice.environment == "LD_PRELOAD=/lib/librelock.so RELOCK_LOCK=tas");
  CHECK(advice.sentence.find("Use tas: the wall time is 50.0 % lower") == 0);

  for (auto& each : comparison.contestants[2].runs) each->status = 0;
  judge_runs(&comparison);
  CHECK(advise_lock(comparison).lock == "cna");
}

TEST_CASE("compare: with a figure the figure decides, in the direction given") {
  Comparison comparison = two_locks();
  comparison.plan.metric = std::regex("x");
  for (std::size_t lock = 0; lock < 3; ++lock) {
    for (auto& each : comparison.contestants[lock].runs) {
      each->status = 0;
      each->figure = lock == 1 ? 4 + each->wall_s : 10 + each->wall_s;
    }
  }
  judge_runs(&comparison);
  CHECK(advise_lock(comparison).outcome == Outcome::kWorse);
  comparison.plan.lower_is_better = true;
  CHECK(advise_lock(comparison).lock == "tas");
  comparison.contestants[1].runs[0]->figure.reset();
  judge_runs(&comparison);
  CHECK(comparison.contestants[1].complaints.size() == 1);
}

TEST_CASE("compare: interrupted in the middle of a round") {
  Comparison comparison = two_locks();
  comparison.contestants[0].runs.emplace_back();
  comparison.contestants[1].runs.emplace_back(run(1, 0));
  comparison.contestants[2].runs.emplace_back();
  comparison.interrupted = true;
  judge_runs(&comparison);
  CHECK(comparison.ratio(comparison.contestants[1], Quantity::kWall).pairs == 5);
  CHECK(comparison_text(comparison).find("5 rounds of 5, interrupted") != std::string::npos);
}
