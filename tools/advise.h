// `relock advise`: which locks of a profile another backend would serve better, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/profile_reader.h"
#include "tools/symbolize.h"

namespace CLI {
class App;
}

namespace relock {

struct AdviseOptions {
  std::string file;
  std::string rules;  // where the rules are written; empty: nowhere but to standard output
  std::string cpus;   // of the machine that was recorded; empty: as many as this one has
  std::vector<std::string> binaries;
};

// What was measured of one lock, or of all that one rule would mean.
struct LockFacts {
  std::string name;         // for people
  std::string pattern;      // of a rule that means it, "symbol server:g_lock"; empty: no rule can
  std::uint32_t kind = 0;   // RelockObjectKind
  bool by_address = false;  // the pattern is by symbol, so spinlocks may have it too
  std::uint64_t objects = 0;
  std::uint64_t acquisitions = 0;  // at least
  std::uint64_t waits = 0;
  std::uint64_t wait_ns = 0;
  std::uint64_t max_wait_ns = 0;
  std::uint64_t hold_samples = 0;
  std::uint64_t hold_ns = 0;  // half of the sampled holds are shorter; 0 where none was sampled
  std::uint64_t within = 0;   // hand-offs inside a NUMA node
  std::uint64_t across = 0;   // and from one to another
};

// What ran, and on what.
struct RunFacts {
  std::string mutex;  // the locks in use
  std::string spin;
  std::string rwlock;
  std::string wait;
  std::uint32_t cpus = 1;
  std::uint32_t nodes = 1;
  std::uint32_t threads = 0;    // most at once; 0 unknown
  std::uint64_t thread_ns = 0;  // life of all threads; 0 unknown
  std::uint64_t duration_ns = 0;
};

struct LockAdvice {
  std::string lock;  // another one; empty: it would not gain
  std::string wait;  // another way to wait; empty: as it is
  std::string why;   // with numbers

  bool gains() const { return !lock.empty(); }
};

// One lock. Pure: all that it knows is in its arguments.
LockAdvice judge_lock(const LockFacts& lock, const RunFacts& run);

// The locks of a profile by the rule that would mean them, the longest total wait first.
std::vector<LockFacts> collect_facts(const Profile& profile, NameSource& names);

// Everything that is printed: a rules file whose comments are the sentences.
std::string advice_text(const std::string& file, const std::vector<LockFacts>& locks,
                        const RunFacts& run, int* rules);

void declare_advise(CLI::App* command, AdviseOptions* options);

// 0; 1 when the rules cannot be written; 2 for a file that is no profile or a wrong value.
int advise_command(const AdviseOptions& options);

}  // namespace relock
