// The manual page: tools/embedded/relock.1.in with the commands, locks and variables filled in from
// where they are defined.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace relock {

// The page in man(7)'s language. `date` stands in its footer.
std::string man_page(const CLI::App& app, const std::string& date);

// `relock --man`: prints the page, dated by SOURCE_DATE_EPOCH or today. Returns the exit status.
int man_command(const CLI::App& app);

}  // namespace relock
