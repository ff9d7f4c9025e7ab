#include "tools/text_format.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <ctime>

namespace relock {

namespace {

// One character of valid UTF-8 at `at`, which moves behind it.
char32_t next_character(const std::string& text, std::size_t* at) {
  const auto lead = static_cast<unsigned char>(text[*at]);
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t character = bytes == 1 ? lead : lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes && *at + i < text.size(); ++i) {
    character = character << 6 | (static_cast<unsigned char>(text[*at + i]) & 0x3fu);
  }
  *at = std::min(*at + bytes, text.size());
  return character;
}

bool is_control(char32_t c) {
  const bool direction = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  const bool line_end = c == 0x2028 || c == 0x2029;
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || direction || line_end || c == 0x200e || c == 0x200f;
}

// Never less than a terminal takes: from here on letters may be two columns wide.
std::size_t width(char32_t c) { return c >= 0x1100 ? 2 : 1; }

}  // namespace

std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  const int length = std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return std::string(text, std::min<std::size_t>(length < 0 ? 0 : length, sizeof text - 1));
}

std::string duration_text(std::uint64_t ns) {
  constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  auto value = static_cast<double>(ns);
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return format("%.*f %s", digits, value, kUnits[unit]);
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string short_count(std::uint64_t count) {
  if (count < 100000) return std::to_string(count);
  constexpr std::array kUnits = {"k", "M", "G", "T", "P", "E"};
  double value = static_cast<double>(count) / 1000;
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return format("%.*f%s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, kUnits[unit]);
}

std::string counted(std::uint64_t count, const char* noun) {
  return count_text(count) + " " + noun + (count == 1 ? "" : "s");
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string date_text(std::uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1000000000);
  char text[64] = "";
  std::tm broken{};
  if (gmtime_r(&seconds, &broken) != nullptr) {
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &broken);
  }
  return text;
}

std::size_t columns_of(const std::string& text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) columns += width(next_character(text, &at));
  return columns;
}

std::string printable(const std::string& text, std::size_t columns) {
  std::string result;
  std::size_t used = 0;
  std::size_t cut = 0;  // where "..." still fits
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t character = next_character(text, &at);
    const bool shown = !is_control(character);
    const std::size_t wide = shown ? width(character) : 1;
    if (used + wide > columns) return result.substr(0, cut) + (columns < 3 ? "" : "...");
    used += wide;
    if (shown) {
      result.append(text, start, at - start);
    } else {
      result += '?';
    }
    if (used + 3 <= columns) cut = result.size();
  }
  return result;
}

std::string printable_end(const std::string& text, std::size_t columns) {
  if (columns_of(text) <= columns || columns < 3) return printable(text, columns);
  std::size_t left = columns_of(text);
  std::size_t at = 0;
  while (at < text.size() && left > columns - 3) left -= width(next_character(text, &at));
  return "..." + printable(text.substr(at), columns - 3);
}

}  // namespace relock
