#include "tools/report_cmd.h"

#include <cstdio>
#include <cstdlib>

#include "tools/message.h"
#include "tools/profile_reader.h"
#include "tools/report_text.h"
#include "tools/symbolize.h"

namespace relock {

int report_command(const ReportOptions& options) {
  Profile profile;
  const std::string wrong = profile.load(options.file);
  if (!wrong.empty()) return fail(kUsage, options.file, wrong);
  // A report reads the files of this machine and asks no server for debug information.
  unsetenv("DEBUGINFOD_URLS");
  Symbolizer symbolizer(profile);
  std::string text = report_text(profile, symbolizer, options.top);
  for (const std::string& path : symbolizer.changed_files()) {
    text += "no names from " + path + ": it is not the file that ran\n";
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return fail(kFailed, "standard output", "cannot be written");
  }
  return kOk;
}

}  // namespace relock
