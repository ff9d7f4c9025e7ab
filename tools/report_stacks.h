// A lock's stacks as the text report shows them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/report_model.h"

namespace relock {

// A stack on one side of waits, and those on the other side of the same waits.
struct StackTree {
  std::uint32_t stack = kNone;
  std::uint64_t ns = 0;
  std::uint64_t samples = 0;
  std::vector<StackShare> others;
};

class StackText {
 public:
  explicit StackText(const Report& report) : report_(report) {}

  // The largest first on both levels. Stacks that are shown alike are one.
  std::vector<StackTree> trees(const ReportLock& lock, bool blockers_first);
  // The lines of a stack, innermost first, each at most `room` columns wide. Ends where a thread
  // or the program begins.
  std::vector<std::string> lines(std::uint32_t stack, std::size_t room) const;
  // The innermost function that is not a mere wrapper of a lock, with its line; empty when unknown.
  std::string function(std::uint32_t stack) const;

 private:
  std::uint32_t shown_as(std::uint32_t stack);
  std::size_t first_beyond_wrappers(const std::vector<std::uint32_t>& frames) const;
  std::size_t first_shown(const std::vector<std::uint32_t>& frames) const;
  std::string frame_line(const Frame& frame, std::size_t room) const;

  const Report& report_;
  std::map<std::uint32_t, std::uint32_t> shown_as_;
  std::map<std::string, std::uint32_t> by_text_;
};

}  // namespace relock
