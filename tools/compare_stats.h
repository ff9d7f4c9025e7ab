// What repeated paired runs say: medians, ratios with intervals, and which lock they speak for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace relock {

// The middle value, or the mean of the middle two; NaN of nothing.
double median(std::vector<double> values);

// What |T| stays below with probability `confidence`, for Student's T with `degrees` (1 or more)
// degrees of freedom.
double student_bound(double confidence, int degrees);

// A ratio and the bounds that hold it. One pair alone has no bounds: `bounded` is false then, and
// low and high are the ratio itself. No pair at all: `pairs` is 0 and nothing else means anything.
struct Ratio {
  double middle = 0;
  double low = 0;
  double high = 0;
  std::size_t pairs = 0;
  bool bounded = false;

  bool above_one() const { return bounded && low > 1; }
  bool below_one() const { return bounded && high < 1; }
};

// The median of paired ratios (each positive) and its interval: a bootstrap of the pairs gives the
// standard error of the median's logarithm, Student's T the width, so that few pairs give a wide
// interval and not a sure one. `intervals` of them shall hold together with 95 %. The draws are the
// same at each call.
Ratio paired_ratio(const std::vector<double>& ratios, std::size_t intervals);

// One lock as the choice sees it. `gain` and `cpu` are ratios to bare; above one a gain is good,
// whatever was measured. `gain_by_round` has one entry for each round, NaN where there is none.
struct Candidate {
  std::string name;
  Ratio gain;
  Ratio cpu;
  std::vector<double> gain_by_round;
};

enum class Outcome {
  kNothing,  // no pair of runs
  kOnePair,  // one round: nothing is known about chance
  kNoise,    // no lock differs from bare beyond chance
  kWorse,    // none is better and at least one is worse
  kBetter,   // `best` is better beyond chance
};

struct Choice {
  Outcome outcome = Outcome::kNothing;
  std::size_t best = 0;   // the lock to use, with kBetter
  std::size_t worst = 0;  // the least gain, with kWorse
  bool all_worse = false;
};

// A gain below this share is not worth a setting, however sure it is.
inline constexpr double kLeastGain = 1.01;

// The lock with the largest sure gain; `preferred` (a name) instead if it gains for sure too and
// the two cannot be told apart.
Choice choose(const std::vector<Candidate>& candidates, const std::string& preferred);

}  // namespace relock
