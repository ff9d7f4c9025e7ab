#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/fuzz/profile_input.h"
#include "tools/demangle.h"
#include "tools/diff_print.h"
#include "tools/report_build.h"
#include "tools/report_folded.h"
#include "tools/report_html.h"
#include "tools/report_json.h"
#include "tools/report_pprof.h"
#include "tools/report_text.h"
#include "tools/text_format.h"

namespace relock::fuzz {

namespace {

// Names that are unpleasant, and for some addresses none.
struct HostileNames : NameSource {
  std::vector<CodeName> code(const ModuleId&, std::uint64_t address) override {
    if (address % 3 == 0) return {};
    const std::string name = address % 5 == 0 ? "a;b\n\"\xff\x1b[31m</script> 7" : "std::lock";
    return {{name, "_Zsym", "dir/file\xc3.cpp", 1, 1, true}, {"outer", "", "", 0, 0, false}};
  }
  DataName data(const ModuleId&, std::uint64_t address) override {
    return {address % 2 == 0 ? "object \xfe" : "", address % 64};
  }
  std::vector<MissingModule> missing() const override {
    return {{{"/lib/\xff\n", "ab"}, "not found"}};
  }
  bool has_lines(const ModuleId&) override { return false; }
};

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void check_lines(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    demand(columns_of(line) <= kReportColumns, "lines of at most 100 columns");
  }
  demand(valid_utf8(text) == text, "text of valid UTF-8");
  demand(text.find('\x1b') == std::string::npos, "no control characters");
}

void check_sums(const Report& report, const ReportLock& lock) {
  for (const auto& shares : {waiters_of(report, lock), blockers_of(report, lock)}) {
    std::uint64_t ns = 0;
    std::uint64_t waits = 0;
    for (const StackShare& share : shares) {
      ns = add_up(ns, share.ns);
      waits = add_up(waits, share.waits);
    }
    const bool none = shares.empty() && lock.waits == 0;
    demand(none || ns == lock.wait_ns, "stacks add up to the lock's time");
    demand(none || waits == lock.waits, "stacks add up to the lock's waits");
  }
}

void check_report(const Report& report) {
  for (const ReportLock& lock : report.locks) check_sums(report, lock);
  for (const ReportLock& lock : report.conditions) check_sums(report, lock);
  TextOptions options;
  options.top = 20;
  check_lines(report_text(report, options));
  options.blockers_first = true;
  check_lines(report_text(report, options));
  const std::string json = json_text(report_json(report), false);
  demand(valid_utf8(json) == json, "JSON of valid UTF-8");
  demand(nlohmann::json::accept(json), "valid JSON");
  // The page's own tags; nothing in the data may begin one.
  const std::string page = report_html(report);
  const auto tags = std::count(page.begin(), page.end(), '<');
  static const auto own_tags = tags;
  demand(tags == own_tags, "no tag from a name");
  std::istringstream folded(report_folded(report, {true, false}));
  for (std::string line; std::getline(folded, line);) {
    const std::size_t space = line.rfind(' ');
    demand(space != std::string::npos && space > 0 &&
               line.find_first_not_of("0123456789", space + 1) == std::string::npos,
           "folded lines end in a number");
  }
  demand(!gzipped(report_pprof(report, {})).empty(), "pprof");
}

std::vector<NamedProfile> as_files(Profile profile) {
  std::vector<NamedProfile> files(1);
  files[0].file = "fuzzed\xff.prof";
  files[0].profile = std::move(profile);
  return files;
}

}  // namespace

bool check_profile(std::vector<char> bytes) {
  Profile profile;
  const std::string wrong = profile.parse(std::move(bytes));
  demand(wrong.find('\n') == std::string::npos, "an error of one line");
  if (!wrong.empty()) return false;
  std::vector<NamedProfile> files = as_files(std::move(profile));
  HostileNames names;
  for (const GroupBy by : {GroupBy::kLock, GroupBy::kInit, GroupBy::kSite}) {
    check_report(build_report(files, names, by));
  }
  static const Report valid = [] {
    Profile good;
    demand(good.parse(valid_profile()).empty(), "the valid profile is accepted");
    HostileNames good_names;
    return build_report(as_files(std::move(good)), good_names, GroupBy::kLock);
  }();
  const Diff diff = diff_reports(valid, build_report(files, names, GroupBy::kLock));
  check_lines(diff_text(diff, 20));
  demand(nlohmann::json::accept(json_text(diff_json(diff), true)), "valid JSON of a difference");
  return true;
}

}  // namespace relock::fuzz
