// `relock compare`: a program bare and under each lock, in interleaved rounds, and what that says.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tools/compare_stats.h"

namespace CLI {
class App;
}

namespace relock {

// As given on the command line; compare_command() checks it.
struct CompareRequest {
  std::string locks = "all";  // names with commas between them, or "all"
  std::string rounds = "7";
  std::string metric;   // regular expression, or empty
  std::string timeout;  // seconds, or empty
  std::string rules;    // a file for RELOCK_RULES that takes part beside the locks, or empty
  std::string format = "text";
  bool same_output = false;
  bool lower_is_better = false;
  std::vector<std::string> command;
};

// The same, checked.
struct ComparePlan {
  std::vector<std::string> locks;  // in the order of lock_list.def, each once
  int rounds = 0;
  std::string metric_text;
  std::optional<std::regex> metric;
  double timeout_s = 0;  // 0: not given
  std::string rules;     // absolute
  bool json = false;
  bool same_output = false;
  bool lower_is_better = false;
  std::vector<std::string> command;
};

// One run of the program.
struct RunResult {
  double wall_s = 0;
  double cpu_s = 0;  // of the program and of the children it waited for
  double voluntary = 0;
  double involuntary = 0;
  double peak_mib = 0;           // the largest resident set of one of its processes
  bool timed_out = false;        // it was killed; nothing else counts
  int status = 0;                // as wait() gives it
  std::optional<double> figure;  // what the regular expression found
  std::size_t output_size = 0;   // of standard output, if somebody asked whether it is the same
  std::size_t output_hash = 0;
  std::string last_words;  // the last line on standard error
};

enum class Quantity : std::uint8_t { kWall, kCpu, kVoluntary, kInvoluntary, kPeak, kFigure };

// What takes part under this name has RELOCK_RULES set.
inline constexpr char kRulesContestant[] = "rules";

// A lock under test, or none: bare.
struct Contestant {
  std::string name;
  std::vector<std::optional<RunResult>> runs;  // by round
  std::vector<bool> counts;                    // by round: there, and it ended as it should
  std::vector<std::string> complaints;         // how its runs differ from bare; empty: they do not
  bool left_out = false;                       // it never ended within the time, so no more rounds
};

struct Comparison {
  ComparePlan plan;
  std::string library;  // the path of librelock.so
  double timeout_s = 0;
  std::vector<Contestant> contestants;  // bare is the first
  std::vector<std::string> remarks;     // about bare itself
  bool interrupted = false;

  const Contestant& bare() const { return contestants.front(); }
  // A quantity of one lock's runs that ended as they should.
  std::vector<double> values(const Contestant& contestant, Quantity quantity) const;
  // Each of them over bare's of the same round, where both are positive.
  std::vector<double> ratios(const Contestant& contestant, Quantity quantity) const;
  // The interval of those, for this many locks compared.
  Ratio ratio(const Contestant& contestant, Quantity quantity) const;
  // What decides: the figure if one was asked for, else the wall time.
  Quantity deciding() const { return plan.metric ? Quantity::kFigure : Quantity::kWall; }
  bool higher_is_better() const { return plan.metric && !plan.lower_is_better; }
};

// Fills *plan. 0, or 2 after one line about the first thing that is wrong.
int read_compare_request(const CompareRequest& request, ComparePlan* plan);

// The figure in a program's output: the first group (or all, if there is none) of the first line
// that matches and holds a number there. Thousands may be separated by commas.
std::optional<double> find_figure(const std::string& output, const std::regex& expression);

// Fills the complaints and remarks from the runs.
void judge_runs(Comparison* comparison);

// "exit status 3", "ended by SIGSEGV", "did not end within 5 s".
std::string describe_end(const RunResult& run, double timeout_s);

// What to do about it.
struct Advice {
  Outcome outcome = Outcome::kNothing;
  std::string lock;         // the lock to use, with kBetter
  std::string environment;  // the variables to set for it
  std::string sentence;
};
Advice advise_lock(const Comparison& comparison);

// The table and the sentence, or all of it as JSON.
std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

// Declares the subcommand's options.
void declare_compare(CLI::App* command, CompareRequest* request);

// 0 when every lock's runs ended as bare ones do, 1 when not or when the program cannot be
// measured, 2 for wrong arguments, 128 + the signal that interrupted it.
int compare_command(const CompareRequest& request);

}  // namespace relock
