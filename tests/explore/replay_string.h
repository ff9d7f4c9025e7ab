// The text form of one schedule, as failures print it and --replay takes it.
//
//   p<switches>:<choices>   the bound on switches that the schedule was found with, and the number
//                           of the alternative taken at each choice, from 0, separated by commas;
//                           14x0 stands for fourteen times 0. After the last one it is always 0.
#pragma once

#include <string>
#include <vector>

namespace relock::explore {

struct ReplayString {
  bool has_preemptions = false;  // without p<switches>: the case's own bound holds
  int preemptions = 0;           // -1: no bound
  std::vector<int> choices;
  std::string error;  // empty, or what is wrong with the text
};

// What --replay accepts, for messages.
inline constexpr const char* kAcceptedReplay =
    "p<switches>:<choices> as a failure prints it, for example p2:14x0,1,3x0,2";

ReplayString parse_replay(const std::string& text);

// The choices without trailing zeros, equal neighbours taken together.
std::string print_choices(const std::vector<int>& choices);

}  // namespace relock::explore
