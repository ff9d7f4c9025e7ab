// A difference of two runs as text of 100 columns, and as JSON (README.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/diff_model.h"

namespace relock {

inline constexpr int kDiffJsonVersion = 1;

// top: how many locks are shown.
std::string diff_text(const Diff& diff, std::uint32_t top);
nlohmann::ordered_json diff_json(const Diff& diff);

}  // namespace relock
