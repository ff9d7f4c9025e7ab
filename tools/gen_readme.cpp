// Puts the tables of locks and variables into the README: copies a text from standard input to
// standard output and replaces what stands between the lines `<!-- table: NAME -->` and
// `<!-- end -->`. `make readme` runs it.

#include <iostream>
#include <string>

#include "policy/options.h"

namespace {

using relock::LineBuffer;

void print_locks() {
  std::cout << "| name | order | what it is |\n|---|---|---|\n";
  for (int i = 0; i < relock::kLockCount; ++i) {
    const auto kind = static_cast<relock::LockKind>(i);
    const relock::LockRow& row = relock::lock_row(kind);
    std::cout << "| `" << row.name << "` | " << row.fair << " | " << row.idea
              << (kind == relock::kDefaultLock ? "; the default" : "") << " |\n";
  }
}

// A column's separator may be part of what a variable accepts.
std::string escaped(const char* text) {
  std::string result;
  for (; *text != '\0'; ++text) result += *text == '|' ? std::string("\\|") : std::string(1, *text);
  return result;
}

void print_variables() {
  std::cout << "| variable | default | accepted | what it is |\n|---|---|---|---|\n";
  for (int i = 0; i < relock::option_count(); ++i) {
    const relock::OptionRow& row = relock::option_row(i);
    LineBuffer initial;
    LineBuffer accepted;
    relock::describe_default(row, &initial);
    relock::describe_accepted(row, &accepted);
    std::cout << "| `" << row.name << "` | " << escaped(initial.data) << " | "
              << escaped(accepted.data) << " | " << escaped(row.help) << " |\n";
  }
}

}  // namespace

int main() {
  bool copying = true;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "<!-- end -->") copying = true;
    if (copying) std::cout << line << "\n";
    if (line.rfind("<!-- table: ", 0) != 0) continue;
    copying = false;
    if (line == "<!-- table: locks -->") print_locks();
    if (line == "<!-- table: variables -->") print_variables();
  }
  return std::cout.flush() && copying ? 0 : 1;
}
