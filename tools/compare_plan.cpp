// What `relock compare` was asked for: every value is checked before anything is started.
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "policy/options.h"
#include "tools/compare.h"
#include "tools/message.h"

namespace relock {

namespace {

constexpr int kMostRounds = 1000;
constexpr double kLongestTimeout_s = 7 * 86400;

int refuse(const std::string& option, const std::string& value, const std::string& accepted) {
  LineBuffer shown;
  shown.add_foreign(value.c_str(), 80);
  return fail(kUsage, option + " " + shown.data, accepted + ": nothing was started");
}

int read_locks(const std::string& text, std::vector<std::string>* locks) {
  std::string names;
  bool wanted[kLockCount] = {};
  for (int i = 0; i < kLockCount; ++i) {
    names += (i == 0 ? "" : "|") + std::string(lock_name(static_cast<LockKind>(i)));
  }
  std::istringstream parts(text + ",");
  for (std::string name; std::getline(parts, name, ',');) {
    LockKind kind;
    if (name == "all") {
      for (bool& each : wanted) each = true;
    } else if (lock_by_name(name.c_str(), &kind)) {
      wanted[static_cast<int>(kind)] = true;
    } else {
      return refuse("--locks", name, "no such lock: accepted: all, or names of " + names);
    }
  }
  for (int i = 0; i < kLockCount; ++i) {
    if (wanted[i]) locks->push_back(lock_name(static_cast<LockKind>(i)));
  }
  return kOk;
}

// A whole number or one with a fraction, nothing before or after it.
bool read_number(const std::string& text, double* value) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) return false;
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(*value);
}

int read_metric(const CompareRequest& request, ComparePlan* plan) {
  if (request.metric.empty()) {
    if (!request.lower_is_better) return kOk;
    return fail(kUsage, "--lower-is-better", "it says how to read --metric: nothing was started");
  }
  plan->metric_text = request.metric;
  try {
    plan->metric = std::regex(request.metric, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    return refuse("--metric", request.metric,
                  std::string("not a regular expression (") + error.what() + ")");
  }
  return kOk;
}

}  // namespace

int read_compare_request(const CompareRequest& request, ComparePlan* plan) {
  if (const int status = read_locks(request.locks, &plan->locks); status != kOk) return status;
  double number = 0;
  if (!read_number(request.rounds, &number) || number != std::floor(number) || number < 1 ||
      number > kMostRounds) {
    return refuse("-n", request.rounds, "accepted: 1 to 1000 rounds");
  }
  plan->rounds = static_cast<int>(number);
  if (const int status = read_metric(request, plan); status != kOk) return status;
  if (!request.timeout.empty()) {
    if (!read_number(request.timeout, &number) || number <= 0 || number > kLongestTimeout_s) {
      return refuse("--timeout", request.timeout, "accepted: seconds, above 0 and up to 604800");
    }
    plan->timeout_s = number;
  }
  if (request.format != "text" && request.format != "json") {
    return refuse("--format", request.format, "accepted: text|json");
  }
  plan->rules = request.rules;
  plan->json = request.format == "json";
  plan->same_output = request.same_output;
  plan->lower_is_better = request.lower_is_better;
  plan->command = request.command;
  if (plan->command.empty()) return fail(kUsage, "no program given", "nothing was started");
  return kOk;
}

// ---- the figure ---------------------------------------------------------------------------

namespace {

// The number in `text`, after anything that is none. 12,345.6 is one number.
std::optional<double> number_in(const std::string& text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first == std::string::npos) return std::nullopt;
  std::size_t begin = first;
  if (begin > 0 && text[begin - 1] == '.') --begin;
  if (begin > 0 && (text[begin - 1] == '-' || text[begin - 1] == '+')) --begin;
  std::string plain;
  const auto digit = [&](std::size_t i) { return i < text.size() && std::isdigit(text[i]) != 0; };
  for (std::size_t i = begin; i < text.size(); ++i) {
    const bool separator = text[i] == ',' && digit(i + 1) && digit(i + 2) && digit(i + 3) &&
                           !digit(i + 4) && i > 0 && digit(i - 1);
    if (!separator) plain += text[i];
  }
  const double value = std::strtod(plain.c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> find_figure(const std::string& output, const std::regex& expression) {
  // The library's matcher calls itself for each character, so endless lines are cut.
  constexpr std::size_t kLongestLine = 4096;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.size() > kLongestLine) line.resize(kLongestLine);
    std::smatch match;
    if (!std::regex_search(line, match, expression)) continue;
    if (auto value = number_in(match[match.size() > 1 ? 1 : 0].str())) return value;
  }
  return std::nullopt;
}

}  // namespace relock
