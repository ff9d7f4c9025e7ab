// A rules file before a program is started with it.
#pragma once

#include <string>

namespace relock {

// Reads the file that RELOCK_RULES names, if it names one, and makes its path absolute, since the
// program may change its directory. 0, or 2 after one line about the first thing that is wrong.
int check_rules();

}  // namespace relock
