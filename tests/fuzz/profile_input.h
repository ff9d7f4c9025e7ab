// Turns a fuzzer's bytes into a profile file. A profile is megabytes of tables of which a few rows
// say something, so the bytes are either a whole file or changes to a valid one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace relock::fuzz {

// One change: a word of a row in use, set, turned or added to.
inline constexpr std::size_t kChangeBytes = 12;

// A profile with rows in every table.
const std::vector<char>& valid_profile();

// The first byte says which: 0 to 15 the rest is the file itself; else changes of kChangeBytes
// follow, and when it is 240 or more the file is also cut.
std::vector<char> profile_of(const std::uint8_t* data, std::size_t size);

// Reads the profile and makes every report of it. Aborts when a promise is broken: an error of more
// than one line, sums that do not add up, invalid JSON or UTF-8, lines too wide.
// Returns whether the profile was accepted.
bool check_profile(std::vector<char> bytes);

}  // namespace relock::fuzz
