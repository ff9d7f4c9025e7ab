#include "tools/report_stacks.h"

#include <algorithm>

#include "tools/lock_names.h"
#include "tools/lock_wrappers.h"
#include "tools/text_format.h"

namespace relock {

namespace {

constexpr std::size_t kFramesShown = 10;
constexpr std::size_t kMergeColumns = 200;

// Where threads and programs begin: nothing below these tells more.
bool is_start(const std::string& name) {
  return name == "main" || name == "start_thread" || name.rfind("__libc_start_call_main", 0) == 0;
}

template <typename Share>
void largest_first(std::vector<Share>* shares) {
  std::stable_sort(shares->begin(), shares->end(),
                   [](const Share& a, const Share& b) { return a.ns > b.ns; });
}

template <typename Share>
Share& with_stack(std::vector<Share>* shares, std::uint32_t stack) {
  const auto known = std::find_if(shares->begin(), shares->end(),
                                  [stack](const Share& share) { return share.stack == stack; });
  if (known != shares->end()) return *known;
  shares->emplace_back();
  shares->back().stack = stack;
  return shares->back();
}

}  // namespace

std::vector<StackTree> StackText::trees(const ReportLock& lock, bool blockers_first) {
  std::vector<StackTree> trees;
  for (const PairShare& pair : pairs_of(report_, lock)) {
    const std::uint32_t waiter = shown_as(pair.waiter);
    const std::uint32_t blocker = shown_as(pair.blocker);
    StackTree& tree = with_stack(&trees, blockers_first ? blocker : waiter);
    tree.ns = add_up(tree.ns, pair.ns);
    tree.samples = add_up(tree.samples, pair.samples);
    StackShare& other = with_stack(&tree.others, blockers_first ? waiter : blocker);
    other.ns = add_up(other.ns, pair.ns);
    other.samples = add_up(other.samples, pair.samples);
  }
  largest_first(&trees);
  for (StackTree& tree : trees) largest_first(&tree.others);
  return trees;
}

std::uint32_t StackText::shown_as(std::uint32_t stack) {
  if (stack == kNone) return kNone;
  const auto known = shown_as_.find(stack);
  if (known != shown_as_.end()) return known->second;
  std::string text;
  for (const std::string& frame : lines(stack, kMergeColumns)) text += frame + "\n";
  return shown_as_[stack] = by_text_.emplace(text, stack).first->second;
}

// std::lock_guard and the like say nothing that the function around them does not.
std::size_t StackText::first_beyond_wrappers(const std::vector<std::uint32_t>& frames) const {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = report_.frames[frames[i]];
    if (frame.named && !is_lock_wrapper(frame.name)) return i;
  }
  return 0;
}

// Of wrappers, those that were inlined into the function around them are left out.
std::size_t StackText::first_shown(const std::vector<std::uint32_t>& frames) const {
  const std::size_t limit = first_beyond_wrappers(frames);
  std::size_t first = 0;
  while (first < limit && report_.frames[frames[first]].inlined) ++first;
  return first;
}

std::string StackText::frame_line(const Frame& frame, std::size_t room) const {
  if (!frame.named) return printable(frame.name, room);
  std::string where = short_place(frame.file, frame.line);
  if (where.empty() && frame.module != kNone) {
    where = base_name(report_.modules[frame.module].id.path);
  }
  // The line is worth more than the end of the name.
  const std::size_t wanted = columns_of(where) + 2;
  const bool fits = wanted + 10 < room;
  const std::size_t name_room = fits ? room - wanted : room;
  const bool whole = columns_of(frame.name) <= name_room;
  const std::string name =
      printable(whole ? frame.name : without_parameters(frame.name), name_room);
  return fits && !where.empty() ? name + "  " + where : name;
}

std::vector<std::string> StackText::lines(std::uint32_t stack, std::size_t room) const {
  if (stack == kNone) return {"(unknown)"};
  const std::vector<std::uint32_t>& frames = report_.stacks[stack];
  std::vector<std::string> result;
  for (std::size_t i = first_shown(frames); i < frames.size(); ++i) {
    if (result.size() == kFramesShown) {
      result.push_back(format("... %zu more", frames.size() - i));
      break;
    }
    const Frame& frame = report_.frames[frames[i]];
    result.push_back(frame_line(frame, room));
    if (is_start(frame.name)) break;
  }
  return result;
}

std::string StackText::function(std::uint32_t stack) const {
  if (stack == kNone) return "";
  const std::vector<std::uint32_t>& frames = report_.stacks[stack];
  const Frame& frame = report_.frames[frames[first_beyond_wrappers(frames)]];
  return frame.named ? frame_line(frame, kMergeColumns) : frame.name;
}

}  // namespace relock
