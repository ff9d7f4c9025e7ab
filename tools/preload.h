// What must be right before a program is started: values, the program itself, the library's place.
#pragma once

#include <string>

#include "tools/run.h"

namespace relock {

// Checks every RELOCK_ variable that the program would see and sets those of the request. Returns
// 0, or the status to end with after one line about the first thing that is wrong.
int set_variables(const RunRequest& request);

// Finds the program; refuses or warns as its finding demands. 0 and *path, or the status.
int admit_program(const std::string& name, std::string* path);

// Puts librelock.so, found next to this command, in front of LD_PRELOAD. 0 or the status.
int preload_library();

}  // namespace relock
