// Messages to standard error, without stdio and without allocation: one write per line.
#pragma once

namespace relock {

// Writes "<line>\n". errno is kept.
void say(const char* line);

}  // namespace relock
