#include "world.h"

#include <algorithm>
#include <cstring>

#include "hashing.h"

namespace relock::explore {

World* World::active = nullptr;

namespace {
constexpr int kNoLimit = 1 << 20;
constexpr int kMainContext = -1;
}  // namespace

World::World(const Program& program, const Bounds& bounds, Search& search)
    : program_(program), bounds_(bounds), search_(search) {
  memory_.begin_search();
}

void World::reset() {
  memory_.begin_execution();
  const int together = static_cast<int>(program_.threads.size());
  thread_count_ = together + static_cast<int>(program_.later.size());
  for (int i = 0; i < thread_count_; ++i) {
    Thread& thread = threads_[i];
    thread.fiber.prepare(&World::thread_entry);
    thread.state = i < together ? State::kReady : State::kUnused;
    thread.history = mix(static_cast<std::uint64_t>(i) + 1, 0);
    thread.seen.clear();
    thread.fruitless = 0;
    thread.went_past_buffer = thread.burning = thread.begun = false;
    thread.asleep = thread.napping = thread.has_deadline = false;
    thread.result = WaitResult::kWoken;
  }
  current_ = kMainContext;
  learned_ = false;
  steps_ = 0;
  preemptions_left_ = bounds_.preemptions < 0 ? kNoLimit : bounds_.preemptions;
  delayed_left_ = bounds_.delayed_stores;
  stale_left_ = bounds_.weak ? bounds_.stale_loads : 0;
  spurious_left_ = bounds_.spurious;
  timeouts_left_ = bounds_.timeouts;
  burnouts_left_ = bounds_.burnouts;
  now_ns_ = 1'000'000'000;
  epoch_ = 0;
  check_state_ = 0;
  commit_hook_ = nullptr;
  futex_queue_.clear();
  deadlines_.clear();
  plain_.clear();
  failure_.clear();
  trace_.clear();
}

void World::run() {
  reset();
  active = this;
  running_ = false;
  program_.setup();
  running_ = true;
  schedule(Point::kBlocked);  // comes back when the execution is over
  running_ = false;
  if (failure_.empty() && finished_ && program_.finish) {
    try {
      program_.finish();
    } catch (const CheckFailed&) {  // failure_ says which
    }
  }
  active = nullptr;
}

void World::thread_entry() {
  World& world = *active;
  const auto index = static_cast<std::size_t>(world.current_);
  const std::size_t together = world.program_.threads.size();
  world.observe(0);
  (index < together ? world.program_.threads[index] : world.program_.later[index - together])();
  world.me().state = State::kDone;
  world.note("ends");
  world.schedule(Point::kBlocked);
}

// To the main context; the model threads' stacks are left as they are.
void World::leave_execution() {
  if (current_ == kMainContext) return;
  Thread& self = me();
  Fiber::pass(self.fiber, main_);
}

void World::fail(const std::string& reason) {
  if (failure_.empty()) failure_ = reason;
  if (running_) leave_execution();
  if (!running_) throw CheckFailed{};
  __builtin_unreachable();
}

void World::schedule(Point point) {
  finished_ = false;
  for (;;) {
    if (++steps_ > bounds_.steps) {
      fail("an execution does not end within " + std::to_string(bounds_.steps) + " steps");
    }
    collect(point);
    if (alternatives_.empty()) {
      if (!all_ended()) report_stuck();
      for (int i = 0; i < thread_count_; ++i) commit_all(i);
      finished_ = true;
      return leave_execution();
    }
    if (alternatives_.size() > 1 && search_.at_new_choice() &&
        !search_.enter(key(point), preemptions_left_)) {
      return leave_execution();
    }
    const int choice = search_.choose(static_cast<int>(alternatives_.size()));
    const Alternative chosen = alternatives_[static_cast<std::size_t>(choice)];
    if (chosen.step == Step::kRun) {
      const bool preempts = point == Point::kOperation && chosen.thread != current_;
      if (preempts) --preemptions_left_;
      return run_thread(chosen.thread);
    }
    apply(chosen);
  }
}

// What may happen next, the least surprising first.
void World::collect(Point point) {
  alternatives_.clear();
  const bool may_go_on = current_ != kMainContext && point != Point::kBlocked;
  if (may_go_on) alternatives_.push_back({Step::kRun, current_});
  if (point != Point::kOperation || preemptions_left_ > 0) {
    for (int i = 0; i < thread_count_; ++i) {
      if (!(may_go_on && i == current_) && enabled(i)) alternatives_.push_back({Step::kRun, i});
    }
  }
  collect_commits();
  if (alternatives_.empty()) {
    const int spinner = idle_spinner();
    if (spinner >= 0) alternatives_.push_back({Step::kIdle, spinner});
  }
  std::int64_t ns = 0;
  const bool time_waits = bounds_.idle_time && !alternatives_.empty();
  if (timeouts_left_ > 0 && !time_waits && next_deadline(ns))
    alternatives_.push_back({Step::kTime, -1});
  if (alternatives_.empty() || spurious_left_ == 0) return;
  for (int i = 0; i < thread_count_; ++i) {
    if (threads_[i].asleep && !threads_[i].napping) alternatives_.push_back({Step::kSpurious, i});
  }
}

// A store that its thread has done nothing after may as well be committed when it was issued.
void World::collect_commits() {
  for (int i = 0; i < thread_count_; ++i) {
    const int length = memory_.buffered(i);
    if (length == 0) continue;
    if (!threads_[i].went_past_buffer && enabled(i) && !(bounds_.weak && length > 1)) continue;
    alternatives_.push_back({Step::kCommit, i});
    for (int entry = 1; bounds_.weak && entry < length; ++entry) {
      if (memory_.may_commit(i, entry)) alternatives_.push_back({Step::kCommit, i, entry});
    }
  }
}

void World::apply(const Alternative& alternative) {
  const int thread = alternative.thread;
  switch (alternative.step) {
    case Step::kRun:
      break;
    case Step::kCommit:
      commit_buffered(thread, alternative.entry);
      break;
    case Step::kSpurious:
      --spurious_left_;
      note("T" + std::to_string(thread) + " is woken spuriously");
      wake(thread, WaitResult::kWoken);
      break;
    case Step::kIdle:
      ++threads_[thread].fruitless;
      if (threads_[thread].asleep) wake(thread, WaitResult::kTimedOut);
      threads_[thread].state = State::kReady;
      break;
    case Step::kTime:
      --timeouts_left_;
      next_deadline(now_ns_);
      note("time passes: it is " + std::to_string(now_ns_ / 1'000'000'000) + " s now");
      for (int i = 0; i < thread_count_; ++i) {
        Thread& sleeper = threads_[i];
        if (sleeper.asleep && sleeper.has_deadline && sleeper.deadline.ns <= now_ns_) {
          wake(i, WaitResult::kTimedOut);
        }
      }
      break;
  }
}

// Ends a sleep: the thread may be chosen from now on.
void World::wake(int thread, WaitResult result) {
  Thread& sleeper = threads_[thread];
  futex_queue_.erase(std::find(futex_queue_.begin(), futex_queue_.end(), thread));
  sleeper.asleep = sleeper.napping = sleeper.has_deadline = false;
  sleeper.state = State::kReady;
  sleeper.result = result;
}

void World::run_thread(int thread) {
  Thread& next = threads_[thread];
  next.begun = true;
  if (next.state == State::kSpinning || next.napping) {  // it sees a change
    next.fruitless = 0;
    if (next.asleep) wake(thread, WaitResult::kTimedOut);
    next.state = State::kReady;
  }
  if (thread == current_) return;
  Fiber& from = current_ == kMainContext ? main_ : me().fiber;
  current_ = thread;
  Fiber::pass(from, next.fiber);
}

bool World::enabled(int thread) {
  const Thread& each = threads_[thread];
  if (each.state == State::kReady) return each.begun || !bounds_.one_by_one || may_begin();
  return (each.state == State::kSpinning || each.napping) && sees_change(thread);
}

bool World::may_begin() {
  for (int i = 0; i < thread_count_; ++i) {
    if (threads_[i].begun && enabled(i)) return false;
  }
  return true;
}

bool World::sees_change(int thread) {
  for (const Seen& seen : threads_[thread].seen) {
    if (seen.cell == kClock) {
      if ((seen.deadline.ns <= now_ns_ ? 1u : 0u) != seen.value) return true;
    } else if (memory_.seen_by(thread, seen.cell) != seen.value) {
      return true;
    }
  }
  return false;
}

// Nobody can go on: the spinning thread that has had the fewest rounds gets another one, so that
// allowances run out. -1: none, or all have had theirs.
int World::idle_spinner() {
  int best = -1;
  for (int i = 0; i < thread_count_; ++i) {
    const Thread& each = threads_[i];
    if (each.state != State::kSpinning && !each.napping) continue;
    if (each.fruitless >= bounds_.idle_pauses + bounds_.free_pauses) continue;
    if (best < 0 || each.fruitless < threads_[best].fruitless) best = i;
  }
  return best;
}

bool World::all_ended() const {
  for (int i = 0; i < thread_count_; ++i) {
    const State state = threads_[i].state;
    if (state != State::kDone && state != State::kGone && state != State::kUnused) return false;
  }
  return true;
}

void World::report_stuck() {
  std::string sleeping;
  std::string spinning;
  for (int i = 0; i < thread_count_; ++i) {
    const Thread& each = threads_[i];
    if (each.state == State::kSpinning || each.napping) spinning += " T" + std::to_string(i);
    if (each.asleep && !each.napping) sleeping += " T" + std::to_string(i);
  }
  if (spinning.empty()) fail("lost wakeup: nobody will wake" + sleeping);
  fail("livelock: nothing will ever change for" + spinning +
       (sleeping.empty() ? "" : ", asleep are" + sleeping));
}

bool World::in_reach(const Deadline& deadline) const {
  return deadline.ns - now_ns_ > bounds_.nap_ns && deadline.ns <= bounds_.horizon_ns;
}

void World::mention(const Deadline& deadline) {
  if (!in_reach(deadline)) return;
  if (std::find(deadlines_.begin(), deadlines_.end(), deadline.ns) == deadlines_.end()) {
    deadlines_.push_back(deadline.ns);
  }
}

// The next moment that somebody has asked about. Which these are follows from the threads'
// histories, so the state need not name them.
bool World::next_deadline(std::int64_t& ns) const {
  bool found = false;
  std::int64_t best = 0;
  for (const std::int64_t each : deadlines_) {
    if (each <= now_ns_ || (found && each >= best)) continue;
    best = each;
    found = true;
  }
  if (found) ns = best;
  return found;
}

std::uint64_t World::key(Point point) {
  std::uint64_t key = mix(memory_.hash(), static_cast<std::uint64_t>(now_ns_));
  for (int i = 0; i < thread_count_; ++i) key = mix(key, thread_key(i));
  key = mix(key, check_state_);
  const auto left = static_cast<std::uint64_t>(delayed_left_ * 1000 + spurious_left_ * 100 +
                                               timeouts_left_ * 10 + burnouts_left_);
  key = mix(key, left * 2 + (epoch_ != 0 ? 1 : 0));
  if (stale_left_ > 0) {
    key = mix(key, memory_.early_hash() * 16 + static_cast<std::uint64_t>(stale_left_));
  }
  // Who runs matters only where switching away from it costs something.
  const int runs = point == Point::kOperation ? current_ : kMaxThreads + static_cast<int>(point);
  key = mix(key, static_cast<std::uint64_t>(runs));
  return plain_.empty() ? key : mix(key, plain_hash());
}

std::uint64_t World::thread_key(int thread) {
  const Thread& each = threads_[thread];
  std::uint64_t bits = static_cast<std::uint64_t>(each.state) | (each.asleep ? 8u : 0u) |
                       (each.went_past_buffer ? 16u : 0u) |
                       (static_cast<std::uint64_t>(each.result) << 5) |
                       (static_cast<std::uint64_t>(memory_.buffered(thread)) << 8) |
                       (static_cast<std::uint64_t>(each.fruitless) << 16);
  if (each.asleep) {
    std::uint64_t rank = 1;  // among those who sleep at the same address
    for (const int other : futex_queue_) {
      if (other == thread) break;
      if (threads_[other].address == each.address) ++rank;
    }
    bits |= rank << 32;
  }
  if (bounds_.weak) bits += memory_.buffer_hash(thread);
  return mix(each.history, bits);
}

std::uint64_t World::plain_hash() const {
  std::uint64_t hash = 0;
  for (const Plain& range : plain_) {
    for (std::size_t at = 0; at < range.bytes; at += sizeof hash) {
      std::uint64_t word = 0;
      std::memcpy(&word, range.begin + at, std::min(sizeof word, range.bytes - at));
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u + at + 1;
      hash ^= hash >> 31;
    }
  }
  return hash;
}

}  // namespace relock::explore
