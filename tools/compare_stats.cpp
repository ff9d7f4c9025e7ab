#include "tools/compare_stats.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace relock {

namespace {

constexpr int kResamples = 2000;
constexpr double kConfidence = 0.95;
constexpr double kPi = 3.14159265358979323846;

// P(|T| <= t), as a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double student_probability(double t, int degrees) {
  const double theta = std::atan(t / std::sqrt(degrees));
  const double cosine = std::cos(theta);
  const bool odd = degrees % 2 != 0;
  if (degrees == 1) return 2 / kPi * theta;
  double term = odd ? cosine : 1;
  double sum = term;
  for (int k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  sum *= std::sin(theta);
  return odd ? 2 / kPi * (theta + sum) : sum;
}

double bootstrap_error(const std::vector<double>& values) {
  std::mt19937_64 random(20080523);
  std::uniform_int_distribution<std::size_t> any(0, values.size() - 1);
  std::vector<double> drawn(values.size());
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : drawn) value = values[any(random)];
    const double middle = median(drawn);
    sum += middle;
    squares += middle * middle;
  }
  const double mean = sum / kResamples;
  const double variance = std::max(0.0, squares / kResamples - mean * mean);
  // The resamples vary by n - 1 of the n parts that the sample itself does.
  const auto n = static_cast<double>(values.size());
  return std::sqrt(variance * n / (n - 1));
}

// Whether b's gain over a may be chance: the paired ratios of the two.
bool cannot_be_told_apart(const Candidate& a, const Candidate& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.gain_by_round.size() && i < b.gain_by_round.size(); ++i) {
    const double ratio = b.gain_by_round[i] / a.gain_by_round[i];
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  const Ratio ratio = paired_ratio(ratios, 1);
  return ratio.pairs > 0 && !ratio.above_one() && !ratio.below_one();
}

bool gains(const Candidate& candidate) {
  return candidate.gain.above_one() && candidate.gain.middle >= kLeastGain;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double student_bound(double confidence, int degrees) {
  double low = 0;
  double high = 1;
  while (student_probability(high, degrees) < confidence && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (student_probability(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

Ratio paired_ratio(const std::vector<double>& ratios, std::size_t intervals) {
  Ratio result;
  result.pairs = ratios.size();
  if (ratios.empty()) return result;
  std::vector<double> logs;
  logs.reserve(ratios.size());
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  const double middle = median(logs);
  result.middle = result.low = result.high = std::exp(middle);
  if (ratios.size() < 2) return result;
  const double together = std::max<double>(1, static_cast<double>(intervals));
  const double confidence = 1 - (1 - kConfidence) / together;
  const double reach =
      student_bound(confidence, static_cast<int>(ratios.size()) - 1) * bootstrap_error(logs);
  result.low = std::exp(middle - reach);
  result.high = std::exp(middle + reach);
  result.bounded = true;
  return result;
}

Choice choose(const std::vector<Candidate>& candidates, const std::string& preferred) {
  Choice choice;
  bool any = false;
  bool bounded = false;
  bool any_gains = false;
  bool any_worse = false;
  choice.all_worse = true;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.gain.pairs == 0) continue;
    if (!any || candidate.gain.middle < candidates[choice.worst].gain.middle) choice.worst = i;
    any = true;
    bounded = bounded || candidate.gain.bounded;
    any_worse = any_worse || candidate.gain.below_one();
    choice.all_worse = choice.all_worse && candidate.gain.below_one();
    if (!gains(candidate)) continue;
    if (!any_gains || candidate.gain.middle > candidates[choice.best].gain.middle) choice.best = i;
    any_gains = true;
  }
  if (!any) return choice;
  choice.outcome = any_gains   ? Outcome::kBetter
                   : !bounded  ? Outcome::kOnePair
                   : any_worse ? Outcome::kWorse
                               : Outcome::kNoise;
  if (!any_gains) return choice;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].name != preferred || !gains(candidates[i])) continue;
    if (cannot_be_told_apart(candidates[i], candidates[choice.best])) choice.best = i;
  }
  return choice;
}

}  // namespace relock
