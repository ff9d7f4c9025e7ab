// Makes a report of one or several profiles.
#pragma once

#include <string>
#include <vector>

#include "tools/profile_reader.h"
#include "tools/report_model.h"

namespace relock {

struct NamedProfile {
  std::string file;
  Profile profile;
};

Report build_report(const std::vector<NamedProfile>& profiles, NameSource& names, GroupBy by);

// One sentence for each setting in which the processes differ.
std::vector<std::string> setting_differences(const std::vector<ReportProcess>& processes);

}  // namespace relock
