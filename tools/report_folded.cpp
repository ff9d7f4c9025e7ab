#include "tools/report_folded.h"

#include <algorithm>
#include <map>

namespace relock {

namespace {

// A semicolon ends a frame and a newline the line. The count stands behind the last space, so
// spaces inside a name are kept, but not at its ends.
std::string frame_text(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 127;
    text += c == ';' ? ':' : control ? ' ' : c;
  }
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "?";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string stack_line(const Report& report, std::uint32_t stack) {
  if (stack == kNone) return "[no stack]";
  std::string line;
  const std::vector<std::uint32_t>& frames = report.stacks[stack];
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!line.empty()) line += ';';
    line += frame_text(report.frames[*frame].name);
  }
  return line;
}

}  // namespace

std::string report_folded(const Report& report, const FlameOptions& options) {
  std::map<std::string, std::uint64_t> totals;
  for (const ReportLock& lock : options.conditions ? report.conditions : report.locks) {
    for (const StackShare& share :
         options.blockers ? blockers_of(report, lock) : waiters_of(report, lock)) {
      std::uint64_t& total = totals[stack_line(report, share.stack)];
      total = add_up(total, share.ns);
    }
  }
  std::string text;
  for (const auto& [stack, ns] : totals) {
    if (ns != 0) text += stack + " " + std::to_string(ns) + "\n";
  }
  return text;
}

}  // namespace relock
