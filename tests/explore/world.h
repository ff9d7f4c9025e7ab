// One execution: model threads, their memory, the futex queue and the clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explorer.h"
#include "fiber.h"
#include "locks/platform.h"
#include "memory.h"
#include "search.h"

namespace relock::explore {

// Thrown by fail() in Program::finish, where no model thread has to be left.
struct CheckFailed {};

enum class Update : std::uint8_t { kExchange, kAdd, kSub, kOr, kAnd };

class World {
 public:
  World(const Program& program, const Bounds& bounds, Search& search);

  // Runs one execution to its end, or to the point where the search has seen enough of it.
  void run();

  const std::string& failure() const { return failure_; }
  const std::string& trace() const { return trace_; }
  void keep_trace(bool keep) { tracing_ = keep; }
  // A cell turned out to be shared: what was explored under the old knowledge does not count.
  bool learned() const { return learned_; }

  // ---- what ExplorePlatform calls ----
  std::uint64_t load(const void* address, int bytes, MemoryOrder order);
  void store(void* address, int bytes, std::uint64_t value, bool low_byte, MemoryOrder order);
  std::uint64_t update(void* address, int bytes, Update how, std::uint64_t operand,
                       MemoryOrder order);
  bool compare_exchange(void* address, int bytes, std::uint64_t& expected, std::uint64_t desired,
                        MemoryOrder order);
  void pause();
  WaitResult futex_wait(void* address, std::uint32_t expected, std::uint32_t bitset,
                        const Deadline* deadline);
  int futex_wake(const void* address, int count, std::uint32_t bitset);
  std::int64_t now_ns();
  bool expired(const Deadline& deadline);
  std::uint32_t choose(std::uint32_t n);
  std::uint32_t epoch() const { return epoch_; }

  // ---- what model threads call ----
  [[noreturn]] void fail(const std::string& reason);
  int this_thread() const { return current_; }
  void start_thread(int index);
  void become_forked_child();
  void check_state(std::uint64_t value) { check_state_ = value; }
  void on_commit(CommitHook hook) { commit_hook_ = hook; }
  bool is_waiting(int thread);
  int pick(int n);
  int looked_at(int value) {
    if (running_) observe(static_cast<std::uint64_t>(value));
    return value;
  }
  void step() {
    schedule(Point::kOperation);
    observe(0);
  }
  void poison(const void* begin, std::size_t bytes);
  Memory& memory() { return memory_; }
  void watch(const void* begin, std::size_t bytes);

  static World* active;

 private:
  enum class State : std::uint8_t { kUnused, kReady, kSpinning, kSleeping, kDone, kGone };
  enum class Access : std::uint8_t { kRead, kWrite, kBoth };
  enum class Point : std::uint8_t { kOperation, kYield, kBlocked };
  enum class Step : std::uint8_t { kRun, kCommit, kIdle, kTime, kSpurious };
  struct Alternative {
    Step step;
    int thread;
    int entry = 0;  // of its buffer
  };
  struct Seen {
    int cell;  // kClock: the result of expired()
    std::uint64_t value;
    Deadline deadline;
  };
  struct Thread {
    Fiber fiber;
    State state = State::kUnused;
    std::uint64_t history = 0;
    std::vector<Seen> seen;
    int fruitless = 0;
    bool went_past_buffer = false;
    bool burning = false;
    bool begun = false;
    bool asleep = false;  // in the futex queue
    bool napping = false;
    bool has_deadline = false;
    Deadline deadline;
    WaitResult result = WaitResult::kWoken;
    const void* address = nullptr;
    std::uint32_t bitset = 0;
  };
  struct Plain {
    const std::uint8_t* begin;
    std::size_t bytes;
  };
  static constexpr int kClock = -1;

  static void thread_entry();
  void reset();
  void leave_execution();
  Thread& me() { return threads_[current_]; }

  // world.cpp: scheduling
  void schedule(Point point);
  void collect(Point point);
  void collect_commits();
  void apply(const Alternative& alternative);
  void run_thread(int thread);
  bool enabled(int thread);
  bool may_begin();
  bool sees_change(int thread);
  void wake(int thread, WaitResult result);
  int idle_spinner();
  bool all_ended() const;
  [[noreturn]] void report_stuck();
  bool in_reach(const Deadline& deadline) const;
  void mention(const Deadline& deadline);
  bool next_deadline(std::int64_t& ns) const;
  std::uint64_t key(Point point);
  std::uint64_t thread_key(int thread);
  std::uint64_t plain_hash() const;

  // world_ops.cpp: the operations
  int arrive(const void* address, int bytes, Access access);
  void check_access(int index, int thread);
  void commit(int index, std::uint64_t value);
  void commit_buffered(int thread, int entry);
  void commit_all(int thread);
  void commit_before(int index, MemoryOrder order);
  void has_updated(int index, MemoryOrder order);
  std::uint64_t weak_load(int index, MemoryOrder order);
  void barrier();
  void saw(int cell, std::uint64_t value);
  void observe(std::uint64_t value);
  void note(const std::string& text);
  std::string cell_name(const void* address) const;

  const Program& program_;
  const Bounds& bounds_;
  Search& search_;
  Memory memory_;
  Thread threads_[kMaxThreads];
  Fiber main_;
  int thread_count_ = 0;
  int current_ = -1;
  bool running_ = false;   // model threads run; else setup or finish
  bool finished_ = false;  // all threads have ended
  bool learned_ = false;
  bool tracing_ = false;
  int steps_ = 0;
  int preemptions_left_ = 0;
  int delayed_left_ = 0;
  int stale_left_ = 0;
  int spurious_left_ = 0;
  int timeouts_left_ = 0;
  int burnouts_left_ = 0;
  std::int64_t now_ns_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint64_t check_state_ = 0;
  CommitHook commit_hook_ = nullptr;
  std::vector<int> futex_queue_;         // threads, in the order of arrival
  std::vector<std::int64_t> deadlines_;  // that somebody has mentioned and that are in reach
  std::vector<Plain> plain_;
  std::vector<Alternative> alternatives_;
  std::vector<std::uint64_t> earlier_;
  std::string failure_;
  std::string trace_;
};

}  // namespace relock::explore
