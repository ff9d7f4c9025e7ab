#include "replay_string.h"

#include <charconv>
#include <cstddef>
#include <string_view>

namespace relock::explore {

namespace {

constexpr int kMostSwitches = 1000;
constexpr int kMostAlternatives = 1000;
constexpr std::size_t kMostChoices = 1'000'000;

// The whole of `text` is a number from `low` to `high`.
bool parse_number(std::string_view text, int low, int high, int& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && value >= low && value <= high;
}

// "2" or "14x2". Empty: it was added to the choices.
std::string add_choice(std::string_view item, std::vector<int>& choices) {
  const std::size_t cross = item.find('x');
  const bool repeated = cross != std::string_view::npos;
  int times = 1;
  int taken = 0;
  if ((repeated &&
       !parse_number(item.substr(0, cross), 1, static_cast<int>(kMostChoices), times)) ||
      !parse_number(repeated ? item.substr(cross + 1) : item, 0, kMostAlternatives, taken)) {
    return "'" + std::string(item) + "' is not a choice";
  }
  if (choices.size() + static_cast<std::size_t>(times) > kMostChoices) {
    return "more than " + std::to_string(kMostChoices) + " choices";
  }
  choices.insert(choices.end(), static_cast<std::size_t>(times), taken);
  return {};
}

}  // namespace

ReplayString parse_replay(const std::string& text) {
  ReplayString result;
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == 'p') {
    const std::size_t colon = rest.find(':');
    const std::string_view number = rest.substr(1, colon == rest.npos ? colon : colon - 1);
    result.has_preemptions = true;
    if (colon == rest.npos || !parse_number(number, -1, kMostSwitches, result.preemptions)) {
      result.error = "it does not begin with p, a number of switches and a colon";
      return result;
    }
    rest.remove_prefix(colon + 1);
  }
  for (;;) {
    const std::size_t comma = rest.find(',');
    result.error = add_choice(rest.substr(0, comma), result.choices);
    if (!result.error.empty() || comma == rest.npos) return result;
    rest.remove_prefix(comma + 1);
  }
}

std::string print_choices(const std::vector<int>& choices) {
  std::size_t length = choices.size();
  while (length > 0 && choices[length - 1] == 0) --length;
  std::string text;
  for (std::size_t i = 0; i < length;) {
    std::size_t run = i;
    while (run < length && choices[run] == choices[i]) ++run;
    if (!text.empty()) text += ',';
    if (run - i > 1) text += std::to_string(run - i) + "x";
    text += std::to_string(choices[i]);
    i = run;
  }
  return text.empty() ? "0" : text;
}

}  // namespace relock::explore
