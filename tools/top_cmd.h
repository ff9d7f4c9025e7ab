// relock top PID|FILE: a profile while it is being written.
#pragma once

#include <cstdint>
#include <string>

namespace relock {

struct TopOptions {
  std::string target;          // a process ID or a profile
  std::string interval = "1";  // seconds
  bool once = false;           // one frame on standard output
  std::uint32_t top = 20;      // rows of that frame's table
};

// Returns the command's exit status: 0 also after Ctrl-C and SIGTERM.
int top_command(const TopOptions& options);

}  // namespace relock
