// A report as folded stacks, for flame graph tools: "outermost;...;innermost NANOSECONDS" per line.
#pragma once

#include <string>

#include "tools/report_model.h"

namespace relock {

// Which side of the waits, and which waits: for locks, or for condition variables.
struct FlameOptions {
  bool blockers = false;
  bool conditions = false;
};

std::string report_folded(const Report& report, const FlameOptions& options);

}  // namespace relock
