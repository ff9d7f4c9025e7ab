// `relock top` on a terminal, by ncurses.
#pragma once

#include <string>

#include "tools/top_session.h"

namespace relock {

// What the terminal on standard output can do.
enum class TerminalKind { kMissing, kUnknown, kDumb, kScreen };
TerminalKind terminal_kind();

// Frames until the user quits or a signal asks for it; the terminal is then as it was. Returns an
// empty string, or why the terminal could not be used.
std::string run_screen(TopSession& session);

// Frames one below the other, for a terminal whose cursor cannot be placed, until the process ends
// or a signal asks to quit.
void run_roll(TopSession& session);

}  // namespace relock
