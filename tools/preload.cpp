#include "tools/preload.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "policy/options.h"
#include "tools/check.h"
#include "tools/library_search.h"
#include "tools/message.h"
#include "tools/rules_check.h"

namespace relock {

namespace {

constexpr char kLibraryName[] = "librelock.so";

// Where it may be, seen from the command's own directory: beside it as built, or where `make
// install` and distributions put it. $LIB is lib/x86_64-linux-gnu and the like.
constexpr const char* kPlaces[] = {
    "$ORIGIN",        "$ORIGIN/../lib/relock", "$ORIGIN/../$LIB/relock", "$ORIGIN/../lib64/relock",
    "$ORIGIN/../lib", "$ORIGIN/../$LIB",       "$ORIGIN/../lib64"};

int refuse_value(const OptionRow& row, const char* value) {
  LineBuffer what;
  what.add(row.name);
  what.add("=");
  what.add_foreign(value, 80);
  LineBuffer why;
  why.add("accepted: ");
  describe_accepted(row, &why);
  why.add(": nothing was started");
  return fail(kUsage, what.data, why.data);
}

int refuse_name(const std::string& name) {
  LineBuffer what;
  what.add_foreign(name.c_str(), 80);
  std::string why = "no such variable: nothing was started";
  if (const char* near = nearest_option(name.c_str()))
    why += std::string(", did you mean ") + near + "?";
  return fail(kUsage, what.data, why);
}

int check_environment() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "RELOCK_", 7) != 0) continue;
    const char* value = strchr(*entry, '=');
    if (value == nullptr) continue;
    const std::string name(*entry, static_cast<std::size_t>(value - *entry));
    ++value;
    const OptionRow* row = find_option(name.c_str());
    if (row == nullptr) return refuse_name(name);
    Options ignored;
    if (*value != '\0' && !row->parse(*row, value, &ignored)) return refuse_value(*row, value);
  }
  return kOk;
}

std::string own_directory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return ".";
  const std::string self(path, static_cast<std::size_t>(length));
  return self.substr(0, self.rfind('/'));
}

}  // namespace

int set_variables(const RunRequest& request) {
  for (const auto& [name, value] : request.variables) {
    const OptionRow* row = find_option(name.c_str());
    Options ignored;
    if (row == nullptr) return refuse_name(name);
    // In the environment an empty value means unset; on a command line somebody wrote it.
    if (!row->parse(*row, value.c_str(), &ignored)) return refuse_value(*row, value.c_str());
    setenv(name.c_str(), value.c_str(), 1);
  }
  const int status = check_environment();
  return status != kOk ? status : check_rules();
}

int admit_program(const std::string& name, std::string* path) {
  int status = 0;
  *path = find_program(name, &status);
  if (status == 127) return fail(status, name, "no such program");
  if (status != 0) return fail(status, name, "not an executable file");
  const Finding finding = examine_program(*path);
  if (finding.verdict == Verdict::kWorks) return kOk;
  if (!finding.refused()) {
    warn(name, finding.sentence + ": started all the same");
    return kOk;
  }
  std::string why = finding.sentence + ": nothing was started; start it without relock";
  if (!finding.advice.empty()) why += ", or " + finding.advice;
  return fail(kUsage, name, why);
}

int preload_library() {
  const std::string base = own_directory();
  for (const char* place : kPlaces) {
    const std::string candidate = expand_origin(place, base) + "/" + kLibraryName;
    char resolved[PATH_MAX];
    if (realpath(candidate.c_str(), resolved) == nullptr) continue;
    std::string preload = resolved;
    if (preload.find_first_of(" :") != std::string::npos) {
      return fail(kFailed, preload, "LD_PRELOAD cannot name a path with a space or a colon");
    }
    const std::string others = foreign_variable("LD_PRELOAD");
    if (!others.empty()) preload += ":" + others;
    setenv("LD_PRELOAD", preload.c_str(), 1);
    return kOk;
  }
  return fail(kFailed, base,
              std::string(kLibraryName) + " is not here, nor in ../lib/relock or ../lib");
}

}  // namespace relock
