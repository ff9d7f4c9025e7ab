// What `relock top` looks at: a running process, or a profile file and the process that writes it.
#pragma once

#include <sys/types.h>

#include <string>

namespace relock {

// A process of this machine, by its number here.
bool is_running(pid_t pid);

// The profile that the process writes into; empty when it has none yet or may not be looked at.
// A forked child still maps its parent's profile, which does not count.
std::string profile_of_process(pid_t pid);

class TopTarget {
 public:
  // `argument` is a process ID or a file. Returns an empty string, or what is wrong with it.
  std::string open(const std::string& argument);

  // The profile's path; empty while the process has not written one.
  const std::string& file() const { return file_; }
  // Whether the process still writes into the profile.
  bool running() const;
  // Looks again where the process writes to: it may have started another program.
  void follow();
  // How a person would call it, before there is a profile to say so.
  std::string title() const;

 private:
  std::string open_process(pid_t pid);
  std::string open_file(const std::string& path);

  pid_t pid_ = 0;  // 0: no process of this machine
  bool given_pid_ = false;
  std::string file_;
};

}  // namespace relock
