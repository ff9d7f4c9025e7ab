// `relock run` and `relock record`: start a program with relock in front of its locks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace relock {

struct RunRequest {
  std::vector<std::pair<std::string, std::string>> variables;  // RELOCK_ name and value, in order
  std::vector<std::string> command;                            // program and its arguments
};

// Becomes the program, so that its exit status and its signals are its own. Returns only when it
// was not started: 2 for a bad value or a program that relock cannot work on, 126 or 127 when the
// program cannot be run, as a shell has it.
int run_command(const RunRequest& request);

// The same with a profile in `directory`, or where RELOCK_PROFILE_DIR says if that is empty. Waits
// for the program, says where the profile is, and ends as the program did, by the same signal too.
int record_command(const RunRequest& request, const std::string& directory);

// Replaces this process by the program in the file `path`; returns errno when that fails. Like
// execvp, hands a file without a known format to the shell.
int become(const std::string& path, const std::vector<std::string>& command);

}  // namespace relock
