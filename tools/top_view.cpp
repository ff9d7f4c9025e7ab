#include "tools/top_view.h"

#include <algorithm>
#include <functional>

#include "tools/text_format.h"

namespace relock {

using namespace profile;

namespace {

constexpr std::size_t kStackLines = 9;      // of a pair of stacks, with its heading
constexpr std::size_t kLeastTableRows = 4;  // that the stacks leave to the table
constexpr char kKeys[] =
    "q quit  w n m x c t sort  r reverse  arrows, Enter stacks  v conditions  space pause  h help";
constexpr const char* kHelp[] = {
    "w  by time waited in the interval       n  by number of waits",
    "m  by mean wait                         x  by longest wait of the run",
    "c  by waits under way now               t  by time waited in the whole run",
    "r  the other way round                  v  condition variables, or locks",
    "arrows, PgUp, PgDn, Home, End  choose   Enter  stacks of the chosen lock",
    "space  hold still, go on                + -  longer, shorter interval",
    "q  quit                                 h  this, or away with it",
    "",
    "WAITED/s  time that threads spent waiting, per second: 2 s are two threads at all times",
    "SHARE     of all waiting in the interval   NOW  sampled waits that have not ended",
    "MEAN      of the interval's waits          LONGEST, TOTAL  since recording began",
};

double per_second(std::uint64_t count, std::uint64_t interval_ns) {
  return interval_ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(interval_ns);
}
std::uint64_t mean_ns(const TopLock& lock) {
  return lock.fresh.waits == 0 ? 0 : lock.fresh.wait_ns / lock.fresh.waits;
}
std::string rate_text(double rate) {
  if (rate >= 9.95 || rate == 0) return short_count(static_cast<std::uint64_t>(rate + 0.5));
  return rate < 0.005 ? "<0.01" : format("%.2f", rate);
}
std::string time_rate_text(std::uint64_t ns, std::uint64_t interval_ns) {
  return duration_text(static_cast<std::uint64_t>(per_second(ns, interval_ns) + 0.5));
}
// 12:03:44, without hours when there are none.
std::string clock_text(std::uint64_t ns) {
  const auto s = static_cast<unsigned long long>(ns / 1000000000);
  if (s < 3600) return format("%llu:%02llu", s / 60, s % 60);
  return format("%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
}

// A column of the table; those with a higher `width` appear from that terminal width on.
struct Column {
  const char* title;
  int width;
  std::size_t from_columns;
  std::string (*text)(const TopLock& lock, const TopCounters& all, std::uint64_t interval_ns);
};
const Column kColumns[] = {
    {"WAITED/s", 8, 0,
     [](const TopLock& lock, const TopCounters&, std::uint64_t interval_ns) {
       return time_rate_text(lock.fresh.wait_ns, interval_ns);
     }},
    {"SHARE", 6, 50,
     [](const TopLock& lock, const TopCounters& all, std::uint64_t) {
       return format("%.1f%%", percent(lock.fresh.wait_ns, all.wait_ns));
     }},
    {"WAITS/s", 7, 0,
     [](const TopLock& lock, const TopCounters&, std::uint64_t interval_ns) {
       return rate_text(per_second(lock.fresh.waits, interval_ns));
     }},
    {"MEAN", 7, 60,
     [](const TopLock& lock, const TopCounters&, std::uint64_t) {
       return lock.fresh.waits == 0 ? "-" : duration_text(mean_ns(lock));
     }},
    {"NOW", 4, 40,
     [](const TopLock& lock, const TopCounters&, std::uint64_t) {
       return std::to_string(lock.waiting);
     }},
    {"LONGEST", 7, 90,
     [](const TopLock& lock, const TopCounters&, std::uint64_t) {
       return duration_text(lock.longest_ns);
     }},
    {"TOTAL", 7, 100,
     [](const TopLock& lock, const TopCounters&, std::uint64_t) {
       return duration_text(lock.total.wait_ns);
     }},
};

double sort_value(const TopLock& lock, TopSort sort) {
  switch (sort) {
    case TopSort::kWaits:
      return static_cast<double>(lock.fresh.waits);
    case TopSort::kMean:
      return static_cast<double>(mean_ns(lock));
    case TopSort::kLongest:
      return static_cast<double>(lock.longest_ns);
    case TopSort::kWaiting:
      return static_cast<double>(lock.waiting);
    case TopSort::kTotal:
      return static_cast<double>(lock.total.wait_ns);
    case TopSort::kWaited:
      break;
  }
  return static_cast<double>(lock.fresh.wait_ns);
}

const char* sort_text(TopSort sort) {
  for (const TopSortKey& key : kTopSortKeys) {
    if (key.sort == sort) return key.text;
  }
  return "";
}

class FrameText {
 public:
  FrameText(TopModel& model, TopView* view, std::size_t columns, std::size_t rows)
      : model_(model), view_(*view), columns_(columns), rows_(rows) {}

  std::vector<TopLine> lines() {
    choose_locks();
    write_head();
    if (view_.help) {
      for (const char* text : kHelp) add(std::string("  ") + text);
    } else {
      write_table();
      if (view_.stacks && !locks_.empty()) write_stacks();
    }
    if (view_.keys) write_foot();
    if (lines_.size() > rows_) lines_.resize(rows_);
    return std::move(lines_);
  }

 private:
  void add(const std::string& text, TopStyle style = TopStyle::kPlain) {
    lines_.push_back({printable(text, columns_), style});
  }

  void choose_locks() {
    for (const TopLock& lock : model_.locks()) {
      if ((lock.kind == kCondKind) != view_.conditions) continue;
      if (lock.total.waits == 0 && lock.waiting == 0) continue;
      locks_.push_back(&lock);
      all_.wait_ns += lock.fresh.wait_ns;
      all_.waits += lock.fresh.waits;
      waiting_ += lock.waiting;
    }
    // Equal ones, as idle locks are, in the order of the whole run.
    std::stable_sort(locks_.begin(), locks_.end(), [](const TopLock* a, const TopLock* b) {
      return a->total.wait_ns > b->total.wait_ns;
    });
    std::stable_sort(locks_.begin(), locks_.end(), [&](const TopLock* a, const TopLock* b) {
      const double left = sort_value(*a, view_.sort);
      const double right = sort_value(*b, view_.sort);
      return view_.reversed ? left < right : left > right;
    });
    view_.selected = locks_.empty() ? 0 : std::min(view_.selected, locks_.size() - 1);
  }

  void write_head() {
    const Header& header = model_.header();
    const std::string who = std::string(header.comm) + "[" + std::to_string(header.pid) + "]";
    std::string state = "running";
    if (view_.state == TopState::kPaused) state = "held still";
    if (view_.state == TopState::kEnded) state = model_.finished() ? "ended" : "ended, or killed";
    add("relock top: " + who + " " + state + ", " + clock_text(model_.recorded_ns()) +
            " recorded   mutex " + header.mutex_lock + ", spinlock " + header.spin_lock +
            ", rwlock " + header.rwlock + "; waiting " + header.wait,
        TopStyle::kTitle);
    const std::uint64_t interval_ns = model_.interval_ns();
    add(rate_text(per_second(all_.waits, interval_ns)) + " waits/s, " +
        time_rate_text(all_.wait_ns, interval_ns) + " waited per second, " +
        format("%.2f", per_second(all_.wait_ns, interval_ns) / 1e9) +
        " threads waiting on average, " + std::to_string(waiting_) + " now");
    add(std::string(view_.conditions ? "condition variables" : "locks") + " by " +
        sort_text(view_.sort) + (view_.reversed ? ", least first" : "") + ", rates over the " +
        (model_.whole_run() ? "whole run" : "last " + duration_text(interval_ns)));
    add("");
  }

  std::size_t foot_rows() const { return view_.keys ? 1 : 0; }

  // How many rows the table gets, and which: the selected one is always among them.
  std::size_t place_table() {
    const std::size_t used = lines_.size() + foot_rows();
    std::size_t room = rows_ > used ? rows_ - used : 0;
    if (view_.stacks && room > kLeastTableRows) {
      room = std::max(kLeastTableRows,
                      room > kStackLines * 2 ? room - kStackLines * 2 : std::size_t{0});
    }
    if (room == 0) return 0;
    if (view_.selected < view_.first) view_.first = view_.selected;
    if (view_.selected >= view_.first + room) view_.first = view_.selected - room + 1;
    if (view_.first + room > locks_.size()) {
      view_.first = locks_.size() > room ? locks_.size() - room : 0;
    }
    return std::min(room, locks_.size() - view_.first);
  }

  void write_table() {
    std::string head;
    for (const Column& column : kColumns) {
      if (columns_ >= column.from_columns) head += format("%*s ", column.width, column.title);
    }
    head += std::string(" ") + (view_.conditions ? "OBJECT" : "LOCK");
    if (columns_ < 4096 && head.size() < columns_) head.resize(columns_, ' ');
    add(head, TopStyle::kHeader);
    if (locks_.empty()) {
      add(view_.conditions ? "  no thread has waited for a condition variable"
                           : "  no thread has waited for a lock");
    }
    const std::size_t shown = place_table();
    for (std::size_t i = view_.first; i < view_.first + shown; ++i) write_row(*locks_[i], i);
  }

  void write_row(const TopLock& lock, std::size_t index) {
    std::string text;
    for (const Column& column : kColumns) {
      if (columns_ < column.from_columns) continue;
      text += format("%*s ", column.width, column.text(lock, all_, model_.interval_ns()).c_str());
    }
    const bool idle = lock.fresh.waits == 0 && lock.waiting == 0;
    const bool selected = view_.keys && index == view_.selected;
    add(text + " " + model_.name(lock), selected ? TopStyle::kSelected
                                        : idle   ? TopStyle::kFaint
                                                 : TopStyle::kPlain);
  }

  // The heaviest pairs of stacks of the selected lock, waiter on the left, blocker on the right.
  void write_stacks() {
    const TopLock& lock = *locks_[view_.selected];
    const std::vector<TopPair> pairs = model_.pairs(lock);
    add("");
    if (pairs.empty()) return add("  no stack of this one was taken", TopStyle::kFaint);
    for (const TopPair& pair : pairs) {
      if (lines_.size() + foot_rows() + 2 > rows_) return;
      write_pair(pair);
    }
  }

  void write_pair(const TopPair& pair) {
    const std::size_t half = columns_ / 2 > 2 ? columns_ / 2 - 2 : 1;
    const std::string left_title = format("%5.1f%% waits in", pair.share * 100);
    const char* right_title = view_.conditions ? "woken by" : "because of";
    add(left_title + std::string(half > left_title.size() ? half - left_title.size() : 0, ' ') +
            "  " + right_title,
        TopStyle::kHeader);
    const std::vector<std::string> waiter = model_.stack(pair.waiter);
    const std::vector<std::string> blocker = model_.stack(pair.blocker);
    const std::size_t count = std::min(std::max(waiter.size(), blocker.size()), kStackLines - 1);
    for (std::size_t i = 0; i < count && lines_.size() + foot_rows() < rows_; ++i) {
      std::string left = i < waiter.size() ? printable(waiter[i], half - 1) : "";
      left.resize(left.size() + half - std::min(half, columns_of(left)), ' ');
      add(left + "  " + (i < blocker.size() ? printable(blocker[i], half) : ""));
    }
  }

  void write_foot() {
    if (rows_ < 6) return;
    if (lines_.size() > rows_ - 1) lines_.resize(rows_ - 1);
    while (lines_.size() < rows_ - 1) add("");
    add(view_.remark.empty() ? kKeys : view_.remark, TopStyle::kFaint);
  }

  TopModel& model_;
  TopView& view_;
  std::size_t columns_;
  std::size_t rows_;
  std::vector<TopLine> lines_;
  std::vector<const TopLock*> locks_;
  TopCounters all_;
  std::uint64_t waiting_ = 0;
};

}  // namespace

std::vector<TopLine> top_lines(TopModel& model, TopView* view, std::size_t columns,
                               std::size_t rows) {
  return FrameText(model, view, columns, rows).lines();
}

}  // namespace relock
