// Names as the programmer wrote them.
#pragma once

#include <string>

namespace relock {

// A C++ or Rust (v0 and legacy) symbol as its source spells it; anything else unchanged.
std::string demangled(const char* symbol);

// The text with every byte that is not part of valid UTF-8 replaced by U+FFFD: names come from
// files and programs that may hold anything, and reports promise UTF-8.
std::string valid_utf8(const std::string& text);

}  // namespace relock
