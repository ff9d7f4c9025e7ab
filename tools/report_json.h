// A report as JSON: README.md describes the form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/report_model.h"

namespace relock {

inline constexpr int kReportJsonVersion = 1;

nlohmann::ordered_json report_json(const Report& report);

// One line, or indented by two spaces; valid UTF-8 whatever the strings hold.
std::string json_text(const nlohmann::ordered_json& value, bool indented);

}  // namespace relock
