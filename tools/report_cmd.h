// relock report FILE...: prints profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report_build.h"

namespace relock {

struct ReportOptions {
  std::vector<std::string> files;
  std::string format = "text";       // one of kReportFormats
  std::string by = "lock";           // one of kGroupings
  std::optional<std::uint32_t> top;  // locks that are shown; text shows 10 without it, others all
  bool blockers = false;             // text, folded, pprof: the stacks that held a lock
  bool conditions = false;  // folded, pprof: waits for condition variables instead of locks
  std::vector<std::string> binaries;
  std::string output;  // empty: standard output
};

inline constexpr const char* kReportFormats[] = {"text", "json", "folded", "pprof", "html"};
inline constexpr const char* kGroupings[] = {"lock", "init", "site"};

// Returns the command's exit status: 0, 1 when the result cannot be written, or 2 after one line on
// standard error.
int report_command(const ReportOptions& options);

// The parts that other commands share. Each returns 0, or the exit status after one line.
int load_profiles(const std::vector<std::string>& files, std::vector<NamedProfile>* profiles);
int find_binaries(const std::vector<std::string>& directories, ModuleFiles* files);
// `output` may be none of the profiles.
int check_output(const std::string& output, const std::vector<std::string>& files);
int write_result(const std::string& bytes, const std::string& output);
GroupBy group_by(const std::string& word);

}  // namespace relock
