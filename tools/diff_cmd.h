// relock diff BEFORE AFTER: what got better and what got worse.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace relock {

struct DiffOptions {
  std::string before;
  std::string after;
  std::string format = "text";  // or json
  std::string by = "lock";
  std::optional<std::uint32_t> top;  // text shows 10 without it, json all
  std::vector<std::string> binaries;
  std::string output;  // empty: standard output
};

inline constexpr const char* kDiffFormats[] = {"text", "json"};

// Returns the command's exit status, as report_command does.
int diff_command(const DiffOptions& options);

}  // namespace relock
