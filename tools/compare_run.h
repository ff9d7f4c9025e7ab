// Runs a program once, in a session of its own, and measures it.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "tools/compare.h"

namespace relock {

class Runner {
 public:
  // Signals that end a comparison are blocked from here on and looked at while a program runs.
  // `path` is the file to run as command[0]; `preload` the value of LD_PRELOAD with relock in it,
  // `bare_preload` without.
  Runner(const ComparePlan& plan, std::string path, std::string preload, std::string bare_preload);

  enum class End { kMeasured, kNotStarted, kInterrupted };

  // Runs the program under `lock` ("": bare), for at most `timeout_s` (0: without limit). What it
  // leaves behind in its process group is killed. After kNotStarted errno says why, after
  // kInterrupted interrupted_by() by what.
  End run(const std::string& lock, double timeout_s, RunResult* result);

  int interrupted_by() const { return interrupted_by_; }

 private:
  struct Streams;

  [[noreturn]] void become_program(const std::string& lock, const Streams& streams, int report);
  int start(const std::string& lock, const Streams& streams);
  bool wait_for(pid_t child, double timeout_s, RunResult* result);
  void collect(const Streams& streams, RunResult* result) const;

  const ComparePlan& plan_;
  std::string path_;
  std::string preload_;
  std::string bare_preload_;
  sigset_t awaited_;
  sigset_t before_;
  int interrupted_by_ = 0;
};

}  // namespace relock
