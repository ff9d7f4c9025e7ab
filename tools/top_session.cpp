#include "tools/top_session.h"

#include <time.h>

#include <algorithm>

#include "tools/text_format.h"

namespace relock {

namespace {

constexpr int kTries = 3;
constexpr std::uint64_t kIntervals_ns[] = {100000000,   200000000,   500000000,
                                           1000000000,  2000000000,  5000000000,
                                           10000000000, 30000000000, 60000000000};

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::string TopSession::open(const std::string& argument) {
  std::string wrong = target_.open(argument);
  if (wrong.empty() && has_profile()) wrong = read();
  return wrong;
}

// A profile that is being written may be caught between two writes that belong together.
std::string TopSession::read() {
  std::string wrong;
  for (int i = 0; i < kTries; ++i) {
    const bool running = target_.running();
    if (!running && !ended()) {
      view_.state = TopState::kEnded;
      model_.restart();
    }
    wrong = model_.read(target_.file(), running ? monotonic_ns() : 0);
    if (wrong.empty() || !running) break;
    const timespec moment = {0, 20000000};
    nanosleep(&moment, nullptr);
  }
  return wrong;
}

void TopSession::update() {
  if (view_.state != TopState::kRunning) return;
  // Nothing new: perhaps the process has become another program.
  const std::uint64_t event_ns = has_profile() ? model_.header().last_monotonic_ns : 0;
  if (event_ns == last_event_ns_) target_.follow();
  last_event_ns_ = event_ns;
  if (has_profile()) {
    view_.remark = read();
  } else if (!target_.running()) {
    view_.state = TopState::kEnded;
  }
}

std::vector<TopLine> TopSession::frame(std::size_t columns, std::size_t rows) {
  if (has_profile()) return top_lines(model_, &view_, columns, rows);
  const std::string what = ended() ? " has ended, and no thread of it had to wait for a lock"
                                   : " runs, and no thread has had to wait for a lock yet";
  std::vector<TopLine> lines = {{printable("relock top: " + target_.title() + what, columns)}};
  if (view_.keys) lines.push_back({printable("q quits", columns), TopStyle::kFaint});
  if (lines.size() > rows) lines.resize(rows);
  return lines;
}

void TopSession::move(std::ptrdiff_t rows) {
  const auto now = static_cast<std::ptrdiff_t>(view_.selected);
  view_.selected = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, now + rows));
}

void TopSession::change_interval(bool longer) {
  if (longer) {
    for (const std::uint64_t known : kIntervals_ns) {
      if (known > interval_ns_) {
        interval_ns_ = known;
        break;
      }
    }
  } else {
    for (auto known = std::rbegin(kIntervals_ns); known != std::rend(kIntervals_ns); ++known) {
      if (*known < interval_ns_) {
        interval_ns_ = *known;
        break;
      }
    }
  }
  view_.remark = "interval " + duration_text(interval_ns_);
}

void TopSession::move_by_key(int key, std::ptrdiff_t page) {
  switch (key) {
    case 'k':
      return move(-1);
    case 'j':
      return move(1);
    case 'b':
      return move(-page);
    case 'f':
      return move(page);
    case 'g':
      view_.selected = 0;
      break;
    case 'G':
      view_.selected = SIZE_MAX / 2;
      break;
    default:
      break;
  }
}

void TopSession::hold() {
  if (ended()) return;
  view_.state = view_.state == TopState::kPaused ? TopState::kRunning : TopState::kPaused;
}

void TopSession::change_view(int key) {
  switch (key) {
    case 'r':
      view_.reversed = !view_.reversed;
      break;
    case '?':
    case 'h':
      view_.help = !view_.help;
      break;
    case 'v':
      view_.conditions = !view_.conditions;
      view_.selected = 0;
      break;
    case '\n':
    case '\r':
      view_.stacks = !view_.stacks;
      break;
    default:
      break;
  }
}

bool TopSession::press(int key, std::size_t page) {
  for (const TopSortKey& known : kTopSortKeys) {
    if (known.key == key) view_.sort = known.sort;
  }
  if (key == 'q') return false;
  if (key == ' ') hold();
  if (key == '+' || key == '-') change_interval(key == '+');
  change_view(key);
  move_by_key(key, static_cast<std::ptrdiff_t>(page));
  return true;
}

}  // namespace relock
