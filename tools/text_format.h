// Numbers and names as a terminal shows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace relock {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// "1.75 ms": three digits and a unit.
std::string duration_text(std::uint64_t ns);
// 1,234,567
std::string count_text(std::uint64_t count);
// At most five characters: 12345, 123k, 4.56M.
std::string short_count(std::uint64_t count);
// "1 sample", "2 samples"
std::string counted(std::uint64_t count, const char* noun);
// part / whole * 100; 0 when whole is 0.
double percent(std::uint64_t part, std::uint64_t whole);
// "2026-11-30 20:22:12 UTC"
std::string date_text(std::uint64_t unix_ns);

// Names come from files and from programs. What could move a terminal's cursor, change its state
// or the direction of writing becomes '?', and what is wider than `columns` ends in "...".
// The text is valid UTF-8.
std::string printable(const std::string& text, std::size_t columns);
// The same, but a text that is too wide loses its beginning.
std::string printable_end(const std::string& text, std::size_t columns);
// How many columns the text takes.
std::size_t columns_of(const std::string& text);

}  // namespace relock
