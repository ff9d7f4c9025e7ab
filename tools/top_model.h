// What `relock top` shows: a profile's counters, and how far they have come since the last reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/lock_names.h"
#include "tools/profile_reader.h"

namespace relock {

// The same lock in every reading: its key, where it was made, and which of several such it is.
using TopLockId = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;

// Waits count as time waited from their start on, not only when they have ended.
struct TopCounters {
  std::uint64_t wait_ns = 0;
  std::uint64_t waits = 0;
  std::uint64_t acquisitions = 0;  // as far as it is known
};

struct TopLock {
  TopLockId id;
  std::uint32_t kind = 0;
  TopCounters total;
  TopCounters fresh;  // of the interval
  std::uint64_t longest_ns = 0;
  std::uint64_t waiting = 0;  // sampled waits under way
};

// Waits of a lock in one stack because of another. Stacks are the profile's; 0: unknown.
struct TopPair {
  std::uint32_t waiter = 0;
  std::uint32_t blocker = 0;
  double share = 0;  // of the lock's waiting, 0 to 1
};

class TopModel {
 public:
  explicit TopModel(NameSource& names) : names_(names) {}

  // Reads the profile. `now_ns` is CLOCK_MONOTONIC while the process runs, 0 when it has ended.
  // Returns an empty string, or what is wrong; the reading before is kept then.
  std::string read(const std::string& file, std::uint64_t now_ns);
  // Forgets the reading before: rates are those of the whole run until the next one.
  void restart();

  const profile::Header& header() const { return profile_.header(); }
  bool finished() const { return profile_.finished(); }
  std::uint64_t recorded_ns() const { return since_start_ns_; }
  // What the rates are taken over.
  std::uint64_t interval_ns() const { return interval_ns_; }
  bool whole_run() const { return before_ns_ == 0; }

  const std::vector<TopLock>& locks() const { return locks_; }
  // "mutex cache_lock (server)"
  std::string name(const TopLock& lock);
  // The pairs of stacks of the interval, the heaviest first; of the whole run when none is new.
  std::vector<TopPair> pairs(const TopLock& lock) const;
  // One line for each function, innermost first.
  std::vector<std::string> stack(std::uint32_t stack);

 private:
  void compare(std::uint64_t now_ns);
  void add_functions(std::uint64_t address, std::uint32_t generation,
                     std::vector<std::string>* lines);

  NameSource& names_;
  Profile profile_;
  std::uint64_t time_ns_ = 0;    // of the reading
  std::uint64_t before_ns_ = 0;  // of the one before; 0: none
  std::uint64_t since_start_ns_ = 0;
  std::uint64_t interval_ns_ = 0;
  struct Known {
    TopCounters counters;
    std::vector<StackPair> pairs;
  };
  std::map<TopLockId, Known> before_;
  std::map<TopLockId, Known> current_;
  std::vector<TopLock> locks_;
  std::map<TopLockId, const profile::LockRow*> rows_;
  struct Name {
    std::string text;
    std::uint32_t first_stack = 0;  // what it was made from: a later reading may know more
  };
  std::map<TopLockId, Name> lock_names_;
};

}  // namespace relock
