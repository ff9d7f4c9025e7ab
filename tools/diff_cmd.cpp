#include "tools/diff_cmd.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/diff_print.h"
#include "tools/message.h"
#include "tools/report_cmd.h"
#include "tools/report_json.h"

namespace relock {

int diff_command(const DiffOptions& options) {
  std::vector<NamedProfile> profiles;
  const std::vector<std::string> names = {options.before, options.after};
  if (const int status = check_output(options.output, names); status != kOk) return status;
  if (const int status = load_profiles(names, &profiles); status != kOk) return status;
  ModuleFiles files;
  if (const int status = find_binaries(options.binaries, &files); status != kOk) return status;
  Symbolizer symbolizer(files);
  const GroupBy by = group_by(options.by);
  std::vector<NamedProfile> after;
  after.push_back(std::move(profiles[1]));
  profiles.pop_back();
  Diff diff =
      diff_reports(build_report(profiles, symbolizer, by), build_report(after, symbolizer, by));
  if (options.format == "text") {
    return write_result(diff_text(diff, options.top.value_or(10)), options.output);
  }
  for (std::vector<DiffRow>* rows : {&diff.locks, &diff.conditions}) {
    if (options.top.has_value() && rows->size() > *options.top) rows->resize(*options.top);
  }
  return write_result(json_text(diff_json(diff), true) + "\n", options.output);
}

}  // namespace relock
