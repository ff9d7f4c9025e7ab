// One frame of `relock top` as lines of text, for a terminal and for scripts alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/top_model.h"

namespace relock {

enum class TopSort : std::uint8_t { kWaited, kWaits, kMean, kLongest, kWaiting, kTotal };

struct TopSortKey {
  char key;
  TopSort sort;
  const char* text;
};
// What is sorted by at the press of which key.
inline constexpr TopSortKey kTopSortKeys[] = {
    {'w', TopSort::kWaited, "time waited"},  {'n', TopSort::kWaits, "number of waits"},
    {'m', TopSort::kMean, "mean wait"},      {'x', TopSort::kLongest, "longest wait"},
    {'c', TopSort::kWaiting, "waiting now"}, {'t', TopSort::kTotal, "total time waited"},
};

enum class TopState : std::uint8_t { kRunning, kEnded, kPaused };

struct TopView {
  TopSort sort = TopSort::kWaited;
  bool reversed = false;
  bool conditions = false;  // condition variables instead of locks
  bool stacks = false;      // of the selected lock
  bool help = false;
  bool keys = true;  // whether there is a keyboard to press them on
  TopState state = TopState::kRunning;
  std::size_t selected = 0;  // row; brought within the table by top_lines
  std::size_t first = 0;     // row at the top of the table, likewise
  std::string remark;        // shown instead of the keys
};

enum class TopStyle : std::uint8_t { kPlain, kTitle, kHeader, kSelected, kFaint };

struct TopLine {
  std::string text;
  TopStyle style = TopStyle::kPlain;
};

// At most `rows` lines of at most `columns`, with names as they come: what a terminal must not see
// is replaced.
std::vector<TopLine> top_lines(TopModel& model, TopView* view, std::size_t columns,
                               std::size_t rows);

}  // namespace relock
