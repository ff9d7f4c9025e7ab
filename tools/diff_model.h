// Two reports side by side: what got better and what got worse. Locks go by their names, since
// addresses differ from run to run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/report_model.h"

namespace relock {

struct DiffSide {
  std::uint64_t acquisitions = 0;  // at least; 0 unknown
  std::uint64_t waits = 0;
  std::uint64_t wait_ns = 0;
  std::uint64_t max_wait_ns = 0;
};

enum class Verdict { kBetter, kWorse, kSame, kNew, kGone };

struct DiffRow {
  std::string name;
  std::uint32_t kind = 0;
  Verdict verdict = Verdict::kSame;
  std::optional<DiffSide> before;
  std::optional<DiffSide> after;
  // How much longer the second run waited than it would have at the first one's rate: per
  // acquisition where both know them, else per second.
  std::int64_t change_ns = 0;
};

struct DiffRun {
  ReportProcess process;  // the first one
  std::size_t processes = 0;
  std::uint64_t duration_ns = 0;
  DiffSide total;  // of the locks
};

struct Diff {
  DiffRun before;
  DiffRun after;
  std::vector<std::string> differences;  // settings in which the runs differ
  DiffRow total;                         // of all locks
  std::vector<DiffRow> locks;            // the largest change first
  std::vector<DiffRow> conditions;
};

Diff diff_reports(const Report& before, const Report& after);

// Nanoseconds waited for each second or each acquisition; nothing where that is not known.
std::optional<double> wait_per_s(const std::optional<DiffSide>& side, std::uint64_t duration_ns);
std::optional<double> wait_per_acquisition(const std::optional<DiffSide>& side);
const char* verdict_word(Verdict verdict);

}  // namespace relock
