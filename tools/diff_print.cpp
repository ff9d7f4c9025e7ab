#include "tools/diff_print.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/lock_wrappers.h"
#include "tools/report_text.h"
#include "tools/text_format.h"

namespace relock {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kNameColumn = 64;

std::string rate_text(const std::optional<double>& ns) {
  return ns.has_value() ? duration_text(static_cast<std::uint64_t>(std::llround(*ns))) : "-";
}

// "-65.1%", "+12.0%", "x12.3" from tenfold on; "-" when one of them is not known.
std::string change_text(const std::optional<double>& before, const std::optional<double>& after) {
  if (!before.has_value() || !after.has_value()) return "-";
  if (*before == 0) return *after == 0 ? "0.0%" : "-";
  const double ratio = *after / *before;
  if (ratio >= 99999.5) return ">x99999";
  if (ratio >= 10) return format("x%.*f", ratio >= 999.5 ? 0 : 1, ratio);
  return format("%+.1f%%", (ratio - 1) * 100);
}

class DiffText {
 public:
  DiffText(const Diff& diff, std::uint32_t top) : diff_(diff), top_(top) {}

  std::string text() {
    line("relock diff: " + diff_.before.process.file + " -> " + diff_.after.process.file);
    write_run("before", diff_.before);
    write_run("after", diff_.after);
    for (const std::string& difference : diff_.differences) {
      line("  note      the runs differ in " + difference);
    }
    write_total();
    write_rows(diff_.locks, "LOCKS, by how much their waiting changed");
    write_rows(diff_.conditions, "CONDITION VARIABLES, likewise (waits for a signal)");
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += printable(text, kReportColumns) + "\n"; }

  void write_run(const char* label, const DiffRun& run) {
    const ReportProcess& process = run.process;
    line(format("  %-10s", label) + duration_text(run.duration_ns) + ", waited " +
         duration_text(run.total.wait_ns) + " in " + count_text(run.total.waits) +
         " waits: " + (process.command.empty() ? process.exe : process.command));
  }

  void write_total() {
    const DiffRow& total = diff_.total;
    const auto s_before = wait_per_s(total.before, diff_.before.duration_ns);
    const auto s_after = wait_per_s(total.after, diff_.after.duration_ns);
    const auto taken_before = wait_per_acquisition(total.before);
    const auto taken_after = wait_per_acquisition(total.after);
    line(format("  %-10s", verdict_word(total.verdict)) + "waiting per acquisition " +
         rate_text(taken_before) + " -> " + rate_text(taken_after) + " (" +
         change_text(taken_before, taken_after) + ")");
    line("            waiting per second " + rate_text(s_before) + " -> " + rate_text(s_after) +
         " (" + change_text(s_before, s_after) + ")");
  }

  void write_rows(const std::vector<DiffRow>& rows, const char* title) {
    if (rows.empty()) return;
    out_ += "\n";
    line(title);
    line("          waiting per acquisition     waiting per second");
    line(format("  %-6s %8s %8s %8s  %8s %8s %8s  %s", "", "before", "after", "change", "before",
                "after", "change", "lock"));
    const std::size_t shown = std::min<std::size_t>(rows.size(), top_);
    for (std::size_t i = 0; i < shown; ++i) write_row(rows[i]);
    if (shown < rows.size()) {
      line("  " + count_text(rows.size() - shown) + " more (--top " + count_text(rows.size()) +
           " shows them)");
    }
  }

  void write_row(const DiffRow& row) {
    const auto s_before = wait_per_s(row.before, diff_.before.duration_ns);
    const auto s_after = wait_per_s(row.after, diff_.after.duration_ns);
    const auto taken_before = wait_per_acquisition(row.before);
    const auto taken_after = wait_per_acquisition(row.after);
    const std::string kind = std::string(kind_name(row.kind)) + " ";
    line(format("  %-6s %8s %8s %8s  %8s %8s %8s  ", verdict_word(row.verdict),
                rate_text(taken_before).c_str(), rate_text(taken_after).c_str(),
                change_text(taken_before, taken_after).c_str(), rate_text(s_before).c_str(),
                rate_text(s_after).c_str(), change_text(s_before, s_after).c_str()) +
         kind +
         printable_end(without_parameters(row.name), kReportColumns - kNameColumn - kind.size()));
  }

  const Diff& diff_;
  std::uint32_t top_;
  std::string out_;
};

Json number_or_null(const std::optional<double>& number) {
  return number.has_value() ? Json(*number) : Json();
}

Json per(std::uint64_t count, std::uint64_t whole, double factor) {
  if (whole == 0) return nullptr;
  return static_cast<double>(count) / static_cast<double>(whole) * factor;
}

Json side_json(const std::optional<DiffSide>& side, std::uint64_t duration_ns) {
  if (!side.has_value()) return nullptr;
  return {{"waits", side->waits},
          {"wait_ns", side->wait_ns},
          {"max_wait_ns", side->max_wait_ns},
          {"acquisitions", side->acquisitions},
          {"wait_ns_per_s", number_or_null(wait_per_s(side, duration_ns))},
          {"wait_ns_per_acquisition", number_or_null(wait_per_acquisition(side))},
          {"waits_per_s", per(side->waits, duration_ns, 1e9)},
          {"waits_per_acquisition", per(side->waits, side->acquisitions, 1)}};
}

Json run_json(const DiffRun& run) {
  Json json = side_json(run.total, run.duration_ns);
  json["file"] = run.process.file;
  json["command"] = run.process.command;
  json["duration_ns"] = run.duration_ns;
  return json;
}

Json rows_json(const Diff& diff, const std::vector<DiffRow>& rows) {
  Json json = Json::array();
  for (const DiffRow& row : rows) {
    json.push_back({{"name", row.name},
                    {"kind", kind_name(row.kind)},
                    {"verdict", verdict_word(row.verdict)},
                    {"change_ns", row.change_ns},
                    {"before", side_json(row.before, diff.before.duration_ns)},
                    {"after", side_json(row.after, diff.after.duration_ns)}});
  }
  return json;
}

}  // namespace

std::string diff_text(const Diff& diff, std::uint32_t top) { return DiffText(diff, top).text(); }

Json diff_json(const Diff& diff) {
  return {{"schema", "relock-diff"},
          {"version", kDiffJsonVersion},
          {"verdict", verdict_word(diff.total.verdict)},
          {"change_ns", diff.total.change_ns},
          {"before", run_json(diff.before)},
          {"after", run_json(diff.after)},
          {"differences", diff.differences},
          {"locks", rows_json(diff, diff.locks)},
          {"conditions", rows_json(diff, diff.conditions)}};
}

}  // namespace relock
