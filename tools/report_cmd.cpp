#include "tools/report_cmd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tools/message.h"
#include "tools/report_folded.h"
#include "tools/report_html.h"
#include "tools/report_json.h"
#include "tools/report_pprof.h"
#include "tools/report_text.h"
#include "tools/symbolize.h"

namespace relock {

namespace {

using FileId = std::pair<dev_t, ino_t>;

bool file_id(const std::string& path, FileId* id) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return false;
  *id = {file.st_dev, file.st_ino};
  return true;
}

std::string written(const Report& report, const ReportOptions& options) {
  const FlameOptions flame{options.blockers, options.conditions};
  if (options.format == "json") return json_text(report_json(report), true) + "\n";
  if (options.format == "html") return report_html(report);
  if (options.format == "folded") return report_folded(report, flame);
  if (options.format == "pprof") return gzipped(report_pprof(report, flame));
  TextOptions text;
  text.top = options.top.value_or(text.top);
  text.blockers_first = options.blockers;
  return report_text(report, text);
}

// Formats for other programs have no place for remarks.
void warn_about(const Report& report, const ReportOptions& options) {
  if (options.format != "folded" && options.format != "pprof") return;
  for (const std::string& difference : report.differences) {
    warn("the files differ in their settings", difference);
  }
  for (const MissingModule& module : report.missing_modules) {
    warn("no names from " + module.id.path, module.reason + " (--binaries DIRECTORY)");
  }
}

}  // namespace

int load_profiles(const std::vector<std::string>& files, std::vector<NamedProfile>* profiles) {
  std::set<FileId> seen;
  profiles->resize(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    NamedProfile& named = (*profiles)[i];
    named.file = files[i];
    const std::string wrong = named.profile.load(files[i]);
    if (!wrong.empty()) return fail(kUsage, files[i], wrong);
    FileId id;
    if (file_id(files[i], &id) && !seen.insert(id).second) {
      return fail(kUsage, files[i], "given twice: its waits would count twice");
    }
  }
  return kOk;
}

int check_output(const std::string& output, const std::vector<std::string>& files) {
  FileId written;
  if (output.empty() || !file_id(output, &written)) return kOk;
  for (const std::string& file : files) {
    FileId read;
    if (file_id(file, &read) && read == written) {
      return fail(kUsage, output, "is one of the profiles: give another file");
    }
  }
  return kOk;
}

int find_binaries(const std::vector<std::string>& directories, ModuleFiles* files) {
  // A report reads the files of this machine and asks no server for debug information.
  unsetenv("DEBUGINFOD_URLS");
  for (const std::string& directory : directories) {
    const std::string wrong = files->add_directory(directory);
    if (!wrong.empty()) return fail(kUsage, "--binaries " + directory, wrong);
  }
  return kOk;
}

int write_result(const std::string& bytes, const std::string& output) {
  std::FILE* file = output.empty() ? stdout : std::fopen(output.c_str(), "we");
  if (file == nullptr) return fail(kFailed, output, std::strerror(errno));
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  written = std::fflush(file) == 0 && written;
  if (!output.empty()) written = std::fclose(file) == 0 && written;
  if (written) return kOk;
  return fail(kFailed, output.empty() ? "standard output" : output, "cannot be written");
}

GroupBy group_by(const std::string& word) {
  return word == "init" ? GroupBy::kInit : word == "site" ? GroupBy::kSite : GroupBy::kLock;
}

int report_command(const ReportOptions& options) {
  if (options.format == "pprof" && options.output.empty() && isatty(STDOUT_FILENO) != 0) {
    return fail(kUsage, "--format pprof", "a terminal cannot show it: give -o FILE or redirect it");
  }
  const int writable = check_output(options.output, options.files);
  if (writable != kOk) return writable;
  std::vector<NamedProfile> profiles;
  if (const int status = load_profiles(options.files, &profiles); status != kOk) return status;
  ModuleFiles files;
  if (const int status = find_binaries(options.binaries, &files); status != kOk) return status;
  Symbolizer symbolizer(files);
  Report report = build_report(profiles, symbolizer, group_by(options.by));
  if (options.top.has_value() && options.format != "text") keep_hottest(&report, *options.top);
  warn_about(report, options);
  return write_result(written(report, options), options.output);
}

}  // namespace relock
