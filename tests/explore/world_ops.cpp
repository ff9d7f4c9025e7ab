// The operations that a platform offers, as steps of the model.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hashing.h"
#include "world.h"

namespace relock::explore {

namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t raw_load(const void* address, int bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, address, static_cast<std::size_t>(bytes));
  return value;
}

void raw_store(void* address, int bytes, std::uint64_t value) {
  std::memcpy(address, &value, static_cast<std::size_t>(bytes));
}

std::uint64_t apply_update(Update how, std::uint64_t old, std::uint64_t operand, int bytes) {
  std::uint64_t result = operand;
  switch (how) {
    case Update::kExchange:
      break;
    case Update::kAdd:
      result = old + operand;
      break;
    case Update::kSub:
      result = old - operand;
      break;
    case Update::kOr:
      result = old | operand;
      break;
    case Update::kAnd:
      result = old & operand;
      break;
  }
  return bytes == 4 ? result & 0xffffffffu : result;
}

const char* name_of(Update how) {
  switch (how) {
    case Update::kExchange:
      return "exchange";
    case Update::kAdd:
      return "fetch_add";
    case Update::kSub:
      return "fetch_sub";
    case Update::kOr:
      return "fetch_or";
    case Update::kAnd:
      return "fetch_and";
  }
  return "update";
}

}  // namespace

std::string World::cell_name(const void* address) const {
  for (int i = 0; i < thread_count_; ++i) {
    if (threads_[i].fiber.holds(address)) {
      return "T" + std::to_string(i) + ".stack[" +
             hex(reinterpret_cast<std::uint64_t>(address) % Fiber::kStackBytes) + "]";
    }
  }
  const std::string name = memory_.name_of(address);
  return name.empty() ? hex(reinterpret_cast<std::uint64_t>(address)) : name;
}

void World::note(const std::string& text) {
  if (!tracing_) return;
  trace_ += "  T" + std::to_string(current_) + "  " + text + "\n";
}

// Brings the current thread to an operation on a cell: whoever else may go first, goes first.
int World::arrive(const void* address, int bytes, Access access) {
  const int index = memory_.cell_at(address, bytes);
  Cell& cell = memory_.cell(index);
  const std::uint32_t bit = 1u << current_;
  if (access != Access::kWrite) cell.read_by |= bit;
  if (access != Access::kRead) cell.written_by |= bit;
  if (!cell.shared && cell.read_by != 0 && cell.written_by != 0) {
    const std::uint32_t both = cell.read_by | cell.written_by;
    if ((both & (both - 1)) != 0) {
      cell.shared = true;
      learned_ = true;
    }
  }
  Thread& self = me();
  self.burning = self.burning && access == Access::kRead;
  if (!self.burning && (cell.shared || search_.replaying())) {
    schedule(Point::kOperation);
  } else {
    if (++steps_ > bounds_.steps) fail("an execution does not end");
    (void)search_.choose(1);  // keeps replay strings independent of which cells are shared
  }
  check_access(index, current_);
  return index;
}

void World::check_access(int index, int thread) {
  const void* address = memory_.cell(index).address;
  if (memory_.poisoned(index)) {
    fail("T" + std::to_string(thread) + " touches " + cell_name(address) +
         " after it was destroyed");
  }
  for (int i = 0; i < thread_count_; ++i) {
    const Thread& owner = threads_[i];
    if (i == thread || !owner.fiber.holds(address) || owner.fiber.uses(address)) continue;
    if (i == current_ || owner.state == State::kGone) continue;
    fail("T" + std::to_string(thread) + " touches " + cell_name(address) + ", in a frame that T" +
         std::to_string(i) + " has left");
  }
}

void World::commit(int index, std::uint64_t value) {
  const std::uint64_t old = memory_.committed(index);
  memory_.commit(index, value);
  if (commit_hook_ != nullptr) commit_hook_(current_, memory_.cell(index).address, old, value);
}

void World::commit_buffered(int thread, int entry) {
  const int index = memory_.buffered_cell(thread, entry);
  check_access(index, thread);
  const std::uint64_t old = memory_.committed(index);
  memory_.commit_buffered(thread, entry);
  if (!memory_.has_buffered(thread)) threads_[thread].went_past_buffer = false;
  const std::uint64_t now = memory_.committed(index);
  const void* address = memory_.cell(index).address;
  if (tracing_) {
    note("(T" + std::to_string(thread) + "'s store to " + cell_name(address) +
         " becomes visible: " + hex(now) + ")");
  }
  if (commit_hook_ != nullptr) commit_hook_(thread, address, old, now);
}

void World::commit_all(int thread) {
  while (memory_.has_buffered(thread)) commit_buffered(thread, 0);
}

void World::saw(int cell, std::uint64_t value) {
  for (Seen& seen : me().seen) {
    if (seen.cell != cell) continue;
    seen.value = value;
    return;
  }
  me().seen.push_back({cell, value, {}});
}

void World::observe(std::uint64_t value) {
  std::uint64_t& history = me().history;
  history = mix(history, value + 1);
  if (!plain_.empty()) history = mix(history, plain_hash());
}

std::uint64_t World::load(const void* address, int bytes, MemoryOrder order) {
  if (!running_) return raw_load(address, bytes);
  const int index = arrive(address, bytes, Access::kRead);
  if (memory_.has_buffered(current_)) me().went_past_buffer = true;
  const bool weak = bounds_.weak;
  const std::uint64_t value = weak ? weak_load(index, order) : memory_.seen_by(current_, index);
  saw(index, value);
  observe(value);
  if (tracing_) {
    const bool early = weak && value != memory_.seen_by(current_, index);
    note(cell_name(address) + ": load " + hex(value) + (early ? " (done early)" : ""));
  }
  return value;
}

void World::store(void* address, int bytes, std::uint64_t value, bool low_byte, MemoryOrder order) {
  if (!running_) return raw_store(address, low_byte ? 1 : bytes, value);
  const int index = arrive(address, bytes, Access::kWrite);
  bool delayed = memory_.has_buffered(current_);
  const bool ordered = order == MemoryOrder::kSeqCst;
  if (!delayed && !ordered) {
    const bool possible = delayed_left_ > 0 && (memory_.cell(index).shared || search_.replaying());
    delayed = search_.choose(possible ? 2 : 1) == 1;
    if (delayed) --delayed_left_;
  }
  memory_.buffer(current_, index, value, low_byte, order != MemoryOrder::kRelaxed);
  if (tracing_) {
    note(cell_name(address) + (low_byte ? ": store byte " : ": store ") + hex(value) +
         (delayed && !ordered ? " (buffered)" : ""));
  }
  if (ordered || !delayed) commit_all(current_);
  for (Seen& seen : me().seen) {  // what it wrote itself is no news to it
    if (seen.cell == index) seen.value = memory_.seen_by(current_, index);
  }
  observe(delayed ? 1 : 0);
}

std::uint64_t World::update(void* address, int bytes, Update how, std::uint64_t operand,
                            MemoryOrder order) {
  if (!running_) {
    const std::uint64_t old = raw_load(address, bytes);
    raw_store(address, bytes, apply_update(how, old, operand, bytes));
    return old;
  }
  const int index = arrive(address, bytes, Access::kBoth);
  commit_before(index, order);
  const std::uint64_t old = memory_.committed(index);
  const std::uint64_t now = apply_update(how, old, operand, bytes);
  commit(index, now);
  has_updated(index, order);
  saw(index, now);
  observe(old);
  if (tracing_) {
    note(cell_name(address) + ": " + name_of(how) + " " + hex(operand) + ", " + hex(old) + " -> " +
         hex(now));
  }
  return old;
}

bool World::compare_exchange(void* address, int bytes, std::uint64_t& expected,
                             std::uint64_t desired, MemoryOrder order) {
  if (!running_) {
    const std::uint64_t old = raw_load(address, bytes);
    const bool same = old == expected;
    if (same) raw_store(address, bytes, desired);
    expected = old;
    return same;
  }
  const int index = arrive(address, bytes, Access::kBoth);
  commit_before(index, MemoryOrder::kRelaxed);
  const std::uint64_t old = memory_.committed(index);
  const bool same = old == expected;
  if (same) {
    commit_before(index, order);
    commit(index, desired);
  }
  has_updated(index, same ? order : MemoryOrder::kAcquire);
  saw(index, same ? desired : old);
  observe(old);
  if (tracing_) {
    note(cell_name(address) + ": compare_exchange " + hex(expected) + " -> " + hex(desired) +
         (same ? "" : " fails, it is " + hex(old)));
  }
  expected = old;
  return same;
}

void World::pause() {
  if (!running_) return;
  Thread& self = me();
  if (++steps_ > bounds_.steps) fail("an execution does not end");
  if (self.seen.empty()) return;  // a delay, not a look at something
  if (self.burning) return observe(0);
  note("pauses");
  if (sees_change(current_)) {
    self.fruitless = 0;
    schedule(Point::kYield);
  } else if (self.fruitless < bounds_.free_pauses) {
    ++self.fruitless;
    schedule(Point::kYield);
  } else {
    if (burnouts_left_ > 0 && search_.choose(2) == 1) {
      --burnouts_left_;
      self.burning = true;
      note("spins on until its allowance is used up");
      return observe(1);
    }
    self.state = State::kSpinning;
    schedule(Point::kBlocked);
  }
  self.seen.clear();
  observe(static_cast<std::uint64_t>(self.fruitless));
}

WaitResult World::futex_wait(void* address, std::uint32_t expected, std::uint32_t bitset,
                             const Deadline* deadline) {
  if (!running_) return WaitResult::kValueChanged;
  me().burning = false;
  Cell& slept_on = memory_.cell(memory_.cell_at(address, 4));
  learned_ = learned_ || !slept_on.shared;
  slept_on.shared = true;  // a wake may come from elsewhere even if nobody writes the cell
  const int index = arrive(address, 4, Access::kRead);
  barrier();
  const std::uint64_t value = memory_.committed(index);
  observe(value);
  if (value != expected) {
    if (tracing_) note(cell_name(address) + ": futex_wait refuses, it is " + hex(value));
    return WaitResult::kValueChanged;
  }
  if (deadline != nullptr) {
    if (deadline->ns <= now_ns_) return WaitResult::kTimedOut;
    mention(*deadline);
  }
  Thread& self = me();
  if (tracing_) note(cell_name(address) + ": futex_wait for bits " + hex(bitset) + " sleeps");
  self.state = State::kSleeping;
  self.asleep = true;
  self.napping = deadline != nullptr && deadline->ns - now_ns_ <= bounds_.nap_ns;
  self.has_deadline = deadline != nullptr && in_reach(*deadline);
  if (deadline != nullptr) self.deadline = *deadline;
  self.address = address;
  self.bitset = bitset;
  if (self.napping) saw(index, value);
  futex_queue_.push_back(current_);
  schedule(Point::kBlocked);
  barrier();  // so is every switch from one thread to another
  self.seen.clear();
  observe(static_cast<std::uint64_t>(self.result) * 100 +
          static_cast<std::uint64_t>(self.fruitless));
  if (tracing_) {
    note(cell_name(address) +
         (self.result == WaitResult::kTimedOut ? ": futex_wait times out" : ": futex_wait ends"));
  }
  return self.result;
}

int World::futex_wake(const void* address, int count, std::uint32_t bitset) {
  if (!running_) return 0;
  schedule(Point::kOperation);
  barrier();
  int woken = 0;
  for (std::size_t i = 0; i < futex_queue_.size() && woken < count;) {
    const int sleeper = futex_queue_[i];
    if (threads_[sleeper].address == address && (threads_[sleeper].bitset & bitset) != 0) {
      wake(sleeper, WaitResult::kWoken);
      ++woken;
    } else {
      ++i;
    }
  }
  observe(static_cast<std::uint64_t>(woken));
  if (tracing_) {
    note(cell_name(address) + ": futex_wake of bits " + hex(bitset) + " wakes " +
         std::to_string(woken));
  }
  return woken;
}

std::int64_t World::now_ns() {
  if (!running_) return now_ns_;
  schedule(Point::kOperation);
  observe(static_cast<std::uint64_t>(now_ns_));
  return now_ns_;
}

bool World::expired(const Deadline& deadline) {
  if (!running_) return deadline.ns <= now_ns_;
  mention(deadline);
  schedule(Point::kOperation);
  const bool result = deadline.ns <= now_ns_;
  me().seen.push_back({kClock, result ? 1u : 0u, deadline});
  observe(result ? 1 : 0);
  if (tracing_) note(result ? "deadline has passed" : "deadline has not passed");
  return result;
}

std::uint32_t World::choose(std::uint32_t n) {
  if (!running_ || n <= 1) return 0;
  schedule(Point::kOperation);
  const int taken = search_.choose(n <= 4 ? static_cast<int>(n) : 2);
  const std::uint32_t value = n <= 4 || taken == 1 ? static_cast<std::uint32_t>(taken) : n;
  const std::uint32_t result = n <= 4 ? value : (taken == 1 ? 0 : n - 1);
  observe(result);
  if (tracing_) note("choose(" + std::to_string(n) + ") gives " + std::to_string(result));
  return result;
}

int World::pick(int n) {
  if (!running_) return 0;
  const int taken = search_.choose(n);
  observe(static_cast<std::uint64_t>(taken));
  return taken;
}

// What destroys an object is a call into the kernel or the allocator: own stores come first.
void World::poison(const void* begin, std::size_t bytes) {
  if (running_) commit_all(current_);
  memory_.poison(begin, bytes);
}

void World::start_thread(int index) {
  schedule(Point::kOperation);
  barrier();
  const int thread = index + static_cast<int>(program_.threads.size());
  threads_[thread].state = State::kReady;
  memory_.catch_up(thread);
  observe(0);
}

void World::become_forked_child() {
  schedule(Point::kOperation);
  note("is now alone in a forked child");
  for (int i = 0; i < thread_count_; ++i) {
    if (i == current_ || threads_[i].state == State::kUnused) continue;
    threads_[i].state = State::kGone;
    threads_[i].asleep = threads_[i].napping = false;
    memory_.drop_buffer(i);  // the parent will see those stores
  }
  futex_queue_.clear();
  barrier();
  ++epoch_;
  observe(epoch_);
}

bool World::is_waiting(int thread) {
  const Thread& each = threads_[thread];
  return each.asleep || (each.state == State::kSpinning && !sees_change(thread));
}

void World::watch(const void* begin, std::size_t bytes) {
  plain_.push_back({static_cast<const std::uint8_t*>(begin), bytes});
}

}  // namespace relock::explore
