// relock report FILE: prints a profile.
#pragma once

#include <cstdint>
#include <string>

namespace relock {

struct ReportOptions {
  std::string file;
  std::uint32_t top = 10;  // locks that are shown with their stacks
};

// Returns the command's exit status: 0, or 2 after one line on standard error.
int report_command(const ReportOptions& options);

}  // namespace relock
