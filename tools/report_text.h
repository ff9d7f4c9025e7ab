// A profile as text, to be read from the top down in a terminal of 100 columns.
#pragma once

#include <cstdint>
#include <string>

#include "tools/profile_reader.h"
#include "tools/symbolize.h"

namespace relock {

inline constexpr std::size_t kReportColumns = 100;

std::string report_text(const Profile& profile, NameSource& names, std::uint32_t top);

// "1.75 ms": three digits and a unit.
std::string duration_text(std::uint64_t ns);

}  // namespace relock
