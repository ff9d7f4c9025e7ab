// How a comparison is printed: a table for people, JSON for programs.
#include <sys/wait.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/compare.h"

namespace relock {

namespace {

template <typename... Values>
std::string print(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string shown_seconds(double s) {
  if (std::isnan(s)) return "-";
  if (s < 0.0095) return print("%.2f ms", s * 1000);
  if (s < 0.95) return print("%.1f ms", s * 1000);
  return print("%.2f s", s);
}

std::string shown_count(double count) {
  if (std::isnan(count)) return "-";
  if (count >= 9'999'500) return print("%.1fM", count / 1e6);
  if (count >= 99'950) return print("%.0fk", count / 1e3);
  return print("%.0f", count);
}

std::string shown_figure(double figure) { return std::isnan(figure) ? "-" : print("%.6g", figure); }

std::string shown_bound(double bound) { return bound < 99.5 ? print("%.2f", bound) : ">99"; }

std::string shown_ratio(const Ratio& ratio) {
  if (ratio.pairs == 0) return "-";
  const std::string middle = shown_bound(ratio.middle);
  if (!ratio.bounded) return middle;
  return middle + " (" + shown_bound(ratio.low) + "-" + shown_bound(ratio.high) + ")";
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    for (const char c : word) line += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return line;
}

std::size_t rounds_done(const Comparison& comparison) {
  std::size_t most = 0;
  for (const auto& run : comparison.bare().runs) most += run.has_value() ? 1 : 0;
  return most;
}

std::string heading(const Comparison& comparison) {
  const ComparePlan& plan = comparison.plan;
  std::string text = "relock compare: " + joined(plan.command).substr(0, 300) + "\n";
  text += std::to_string(rounds_done(comparison)) + " rounds";
  if (comparison.interrupted) text += " of " + std::to_string(plan.rounds) + ", interrupted";
  text += ", each in an order of its own; medians; x: ratio to bare, the C library's own locks,\n";
  text += "with bounds that hold all together with 95 %. Time: below 1 is better.";
  if (plan.metric) {
    text += std::string(" Figure: ") + (plan.lower_is_better ? "below" : "above") + " 1 is better.";
  }
  return text + "\n\n";
}

struct Column {
  const char* title;
  Quantity quantity;
  std::string (*shown)(double);
  int width;
  bool with_ratio;
};

std::string shown_memory(double mib) { return std::isnan(mib) ? "-" : print("%.1f MiB", mib); }

constexpr Column kFigureColumns[] = {{"figure", Quantity::kFigure, shown_figure, 12, true}};
constexpr Column kColumns[] = {
    {"wall", Quantity::kWall, shown_seconds, 8, true},
    {"CPU", Quantity::kCpu, shown_seconds, 8, true},
    {"slept", Quantity::kVoluntary, shown_count, 8, false},
    {"preempted", Quantity::kInvoluntary, shown_count, 9, false},
    {"peak", Quantity::kPeak, shown_memory, 9, false},
};

std::string cell(const Comparison& comparison, const Contestant& contestant, const Column& column) {
  const double middle = median(comparison.values(contestant, column.quantity));
  std::string text = print(" %*s", column.width, column.shown(middle).c_str());
  if (!column.with_ratio) return text;
  const bool bare = &contestant == &comparison.bare();
  const Ratio ratio = bare ? Ratio() : comparison.ratio(contestant, column.quantity);
  return text + print(" %-16s", bare ? "" : shown_ratio(ratio).c_str());
}

template <std::size_t N>
std::string table(const Comparison& comparison, const Column (&columns)[N],
                  const std::string& advised) {
  std::string text = print("  %-14s", "lock");
  for (const Column& column : columns) {
    text += print(" %*s", column.width, column.title);
    if (column.with_ratio) text += print(" %-16s", "x");
  }
  text += "\n";
  for (const Contestant& contestant : comparison.contestants) {
    text += print("%s %-14s", contestant.name == advised ? "*" : " ", contestant.name.c_str());
    for (const Column& column : columns) text += cell(comparison, contestant, column);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text + "\n";
}

// ---- JSON ---------------------------------------------------------------------------------

using Json = nlohmann::ordered_json;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const RunResult& run, std::size_t round) {
  Json json = {{"round", round + 1},
               {"wall_s", run.wall_s},
               {"cpu_s", run.cpu_s},
               {"voluntary_switches", run.voluntary},
               {"involuntary_switches", run.involuntary},
               {"peak_mib", run.peak_mib},
               {"figure", run.figure ? Json(*run.figure) : Json(nullptr)},
               {"timed_out", run.timed_out}};
  const bool exited = WIFEXITED(run.status);
  json["exit_status"] = exited ? Json(WEXITSTATUS(run.status)) : Json(nullptr);
  json["signal"] = exited ? Json(nullptr) : Json(WTERMSIG(run.status));
  return json;
}

Json json_of(const Ratio& ratio) {
  if (ratio.pairs == 0) return nullptr;
  Json json = {
      {"median", ratio.middle}, {"low", nullptr}, {"high", nullptr}, {"pairs", ratio.pairs}};
  if (ratio.bounded) {
    json["low"] = number_or_null(ratio.low);
    json["high"] = number_or_null(ratio.high);
  }
  return json;
}

struct NamedQuantity {
  const char* name;
  Quantity quantity;
};
constexpr NamedQuantity kQuantities[] = {
    {"figure", Quantity::kFigure},
    {"wall_s", Quantity::kWall},
    {"cpu_s", Quantity::kCpu},
    {"voluntary_switches", Quantity::kVoluntary},
    {"involuntary_switches", Quantity::kInvoluntary},
    {"peak_mib", Quantity::kPeak},
};

Json json_of(const Comparison& comparison, const Contestant& contestant) {
  Json json = {{"lock", contestant.name},
               {"agrees_with_bare", contestant.complaints.empty()},
               {"complaints", contestant.complaints}};
  for (const NamedQuantity& each : kQuantities) {
    if (each.quantity == Quantity::kFigure && !comparison.plan.metric) continue;
    json["median"][each.name] =
        number_or_null(median(comparison.values(contestant, each.quantity)));
    if (&contestant == &comparison.bare()) continue;
    json["ratio_to_bare"][each.name] = json_of(comparison.ratio(contestant, each.quantity));
  }
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < contestant.runs.size(); ++i) {
    if (contestant.runs[i]) json["runs"].push_back(json_of(*contestant.runs[i], i));
  }
  return json;
}

const char* outcome_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNothing:
      return "nothing to compare";
    case Outcome::kOnePair:
      return "one round";
    case Outcome::kNoise:
      return "noise";
    case Outcome::kWorse:
      return "worse";
    case Outcome::kBetter:
      return "better";
  }
  return "?";
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  const Advice advice = advise_lock(comparison);
  std::string text = heading(comparison);
  if (comparison.plan.metric) text += table(comparison, kFigureColumns, advice.lock);
  text += table(comparison, kColumns, advice.lock);
  for (const std::string& remark : comparison.remarks) text += "note: " + remark + "\n";
  for (const Contestant& contestant : comparison.contestants) {
    for (const std::string& complaint : contestant.complaints) {
      text += contestant.name + " does not agree with bare: " + complaint + "\n";
    }
  }
  return text + advice.sentence + "\n";
}

std::string comparison_json(const Comparison& comparison) {
  const Advice advice = advise_lock(comparison);
  const ComparePlan& plan = comparison.plan;
  Json json = {{"format", "relock compare"},
               {"version", 1},
               {"command", plan.command},
               {"library", comparison.library},
               {"rounds_wanted", plan.rounds},
               {"rounds", rounds_done(comparison)},
               {"interrupted", comparison.interrupted},
               {"timeout_s", comparison.timeout_s},
               {"confidence", 0.95},
               {"decides", plan.metric ? "figure" : "wall_s"},
               {"higher_is_better", comparison.higher_is_better()},
               {"metric", plan.metric ? Json(plan.metric_text) : Json(nullptr)},
               {"remarks", comparison.remarks}};
  json["locks"] = Json::array();
  for (const Contestant& contestant : comparison.contestants) {
    json["locks"].push_back(json_of(comparison, contestant));
  }
  json["advice"] = {
      {"outcome", outcome_word(advice.outcome)},
      {"lock", advice.lock.empty() ? Json(nullptr) : Json(advice.lock)},
      {"environment", advice.environment.empty() ? Json(nullptr) : Json(advice.environment)},
      {"sentence", advice.sentence}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace relock
