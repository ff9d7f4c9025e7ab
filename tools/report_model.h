// What a report says, before it is written in any format: one or several profiles as locks, stacks
// and frames with names. README.md describes the same as JSON; units are nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interpose/profile/profile_format.h"
#include "tools/symbolize.h"

namespace relock {

inline constexpr std::uint32_t kNone = 0xffffffff;  // no such stack, frame or module

// What one entry of a report stands for: an object, all objects that were initialised at one
// place, or all waits at one place in the code.
enum class GroupBy { kLock, kInit, kSite };

struct ReportModule {
  ModuleId id;
  std::uint64_t start = 0;  // in the first process that had it
  std::uint64_t end = 0;
  std::uint64_t load_bias = 0;  // address in memory minus address in the file
  bool is_program = false;
  bool has_names = false;  // some address in it has one
};

// One function of a stack.
struct Frame {
  std::string name;    // never empty: module+0xoffset or 0xaddress where nothing is known
  std::string symbol;  // as in the symbol table; empty when unknown
  std::uint32_t module = kNone;
  std::uint64_t address = 0;  // in the module's file; in memory when there is no module
  std::string file;           // empty when unknown
  std::uint32_t line = 0;
  std::uint32_t start_line = 0;
  bool inlined = false;  // into the next frame of its stack
  bool named = false;    // false: `name` was made up from the address
};

// Waits in one stack, or (StackPair) in one stack because of another. `ns` and `waits` are the
// samples' share of the lock's exact totals.
struct StackShare {
  std::uint32_t stack = kNone;
  std::uint64_t ns = 0;
  std::uint64_t waits = 0;
  std::uint64_t samples = 0;
};
struct PairShare {
  std::uint32_t waiter = kNone;
  std::uint32_t blocker = kNone;
  std::uint64_t ns = 0;
  std::uint64_t waits = 0;
  std::uint64_t samples = 0;
};

using Histogram = std::array<std::uint64_t, profile::kHistogramBuckets>;

// Sampled hold times. What the samples stand for: `stands_for` acquisitions that held the lock for
// `stands_for_ns` together, so that their ratio is the mean.
struct HoldTimes {
  std::uint64_t samples = 0;
  std::uint64_t total_ns = 0;  // of the samples themselves, as are the next two
  std::uint64_t max_ns = 0;
  Histogram histogram{};
  std::uint64_t stands_for = 0;
  std::uint64_t stands_for_ns = 0;
};
struct HandOffs {            // waits that ended with the lock, by where its owner before ran
  std::uint64_t within = 0;  // one NUMA node
  std::uint64_t across = 0;
};

// What a lock's name is taken from.
enum class NamedBy { kSymbol, kInit, kWait, kAddress };

struct ReportLock {
  std::uint32_t id = 0;
  std::string name;
  std::string place;  // file:line of where it was made or first waited for; empty if named
                      // by its symbol or unknown
  NamedBy named_by = NamedBy::kAddress;
  std::string address;     // of one of several locks that have the same name; else empty
  std::uint32_t kind = 0;  // RelockObjectKind
  bool exact = true;       // false: estimated from samples
  std::uint64_t objects = 0;
  std::uint64_t acquisitions = 0;  // at least; 0 unknown
  std::uint64_t waits = 0;
  std::uint64_t wait_ns = 0;
  std::uint64_t max_wait_ns = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t try_failures = 0;
  std::uint64_t under_way = 0;
  std::uint64_t samples = 0;
  Histogram histogram{};
  std::optional<HoldTimes> hold;
  std::optional<HandOffs> hand_offs;
  std::vector<PairShare> pairs;  // the largest first
};

struct ReportProcess {
  std::string file;
  std::string comm;
  std::string exe;
  std::string command;
  std::uint32_t pid = 0;
  std::uint64_t start_unix_ns = 0;
  std::uint64_t duration_ns = 0;
  bool finished = false;
  bool filtered = false;        // it entered a seccomp filter
  bool stacks_refused = false;  // and that refuses what stacks need
  std::string mutex;
  std::string spin;
  std::string rwlock;
  std::string wait;
  std::uint32_t samples_per_s = 0;
  bool stacks_wanted = false;
  std::uint64_t samples = 0;
  std::uint64_t waits_unsampled = 0;
  std::uint64_t stacks_taken = 0;
  std::optional<std::uint64_t> thread_ns;
  std::optional<std::uint64_t> threads;  // most at once
  std::uint64_t waiting_threads = 0;     // that have waited at least once
};

struct ReportTotals {
  std::uint64_t wait_ns = 0;
  std::uint64_t waits = 0;
  std::uint64_t acquisitions = 0;
  std::uint64_t condition_wait_ns = 0;
  std::uint64_t condition_waits = 0;
  std::uint64_t duration_ns = 0;
  std::optional<std::uint64_t> thread_ns;
  std::uint64_t locks = 0;
  std::uint64_t conditions = 0;
};

struct Report {
  GroupBy by = GroupBy::kLock;
  std::vector<ReportProcess> processes;
  std::vector<std::string> differences;  // settings in which merged files differ
  ReportTotals totals;
  std::vector<ReportLock> locks;                   // the longest total wait first
  std::vector<ReportLock> conditions;              // condition variables, likewise
  std::vector<std::vector<std::uint32_t>> stacks;  // of frames, innermost first
  // For each stack the first one that reads the same: function, file and line of all frames.
  std::vector<std::uint32_t> reads_as;
  std::vector<Frame> frames;
  std::vector<ReportModule> modules;
  std::array<std::uint64_t, profile::kDropCount> dropped{};
  std::vector<MissingModule> missing_modules;
  std::vector<std::string> modules_without_lines;  // paths
};

// "mutex", "spinlock", "rwlock read", "rwlock write" or "cond".
const char* kind_name(std::uint32_t kind);

// What the counters of drops count, in words, and as keys of the JSON; null beyond the last.
const char* drop_text(std::uint32_t drop);
const char* drop_key(std::uint32_t drop);

// Mean of the sampled hold times; 0 without samples.
std::uint64_t mean_hold_ns(const ReportLock& lock);

// The waits by stack, the largest first, with stacks that read alike as one.
std::vector<StackShare> waiters_of(const Report& report, const ReportLock& lock);
std::vector<StackShare> blockers_of(const Report& report, const ReportLock& lock);
// The pairs, likewise.
std::vector<PairShare> pairs_of(const Report& report, const ReportLock& lock);

// Keeps the first `count` locks and condition variables; the totals stay.
void keep_hottest(Report* report, std::uint32_t count);

// Sums that stop at 2^64 - 1 instead of starting again at 0: a damaged file may hold any number.
std::uint64_t add_up(std::uint64_t a, std::uint64_t b);
// part * whole / total without losing digits; 0 when total is 0.
std::uint64_t scaled(std::uint64_t part, std::uint64_t whole, std::uint64_t total);

}  // namespace relock
