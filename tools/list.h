#pragma once

namespace relock {

// Prints every lock and every variable; 0, or 1 when standard output does not take it.
int list_command();

}  // namespace relock
