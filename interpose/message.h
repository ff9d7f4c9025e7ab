// Messages to standard error, without stdio and without allocation: one write per line.
#pragma once

namespace relock {

// Called once, at start: remembers what descriptor 2 is.
void remember_standard_error();

// Whether it still is that: a program that has closed it may have a data file there.
bool standard_error_is_the_same();

// Writes "<line>\n" if standard error is what it was. errno is kept.
void say(const char* line);

}  // namespace relock
