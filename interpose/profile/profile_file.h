// Creates the profile file of this process and maps it.
#pragma once

#include "interpose/profile/profile_format.h"
#include "interpose/profile/text.h"

namespace relock::profile {

// The mapped file. Made at the first call in a process; other threads wait until it is there.
// Null when there can be none (said in one line on standard error, once), or when this very thread
// was interrupted while making it.
Header* open_profile();

// Takes this process's file away again, if it is still the one that was made.
void remove_profile();

// Ends recording and gives the blocks back in which nothing was written: a profile with one lock
// takes 8 to 40 KiB. Only for a process whose other threads have ended: on a full disk, writing
// to a block that was given back would kill it.
void close_profile(Header* header);

// Fixes where profiles go. 0, or an errno value after having said in one line why no file can be
// created there.
int choose_profile_directory();

using Path = Text<2200>;

// `given` from the root on, as seen from the current directory of this moment.
Path absolute_path(const char* given);

// One line on standard error, unless the program has put something else in its place.
void say(const char* line);

}  // namespace relock::profile
