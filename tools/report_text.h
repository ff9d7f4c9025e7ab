// A report as text, to be read from the top down in a terminal of 100 columns.
#pragma once

#include <string>

#include "tools/report_model.h"

namespace relock {

inline constexpr std::size_t kReportColumns = 100;

struct TextOptions {
  std::uint32_t top = 10;       // locks that are shown with their stacks
  bool blockers_first = false;  // the stacks that held a lock, and below them those that waited
};

std::string report_text(const Report& report, const TextOptions& options);

}  // namespace relock
