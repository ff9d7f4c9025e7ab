// Which functions only pass a lock call on: Mutex::Lock, std::lock_guard and their like. They are
// in everybody's stacks; the line to look at is their caller's.
#pragma once

#include <string>

namespace relock {

// `function`: a demangled name.
bool is_lock_wrapper(const std::string& function);

// The name without its parameters, as "find(...)", when it has some.
std::string without_parameters(const std::string& function);

}  // namespace relock
