#include "tools/lock_wrappers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

namespace relock {

namespace {

// Where the parameter list at the end of a name begins, or npos. What may follow one: const, &,
// [clone .cold].
std::size_t parameters_at(std::string_view name) {
  std::size_t end = name.rfind(')');
  if (end == std::string_view::npos) return end;
  int depth = 0;
  for (std::size_t at = end + 1; at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) {
      const bool is_name = name.substr(at, 11) == "(anonymous " || at == 0 || name[at - 1] == ' ';
      return is_name ? std::string_view::npos : at;
    }
  }
  return std::string_view::npos;
}

// The last part of a qualified name, without template arguments.
std::string_view last_part(std::string_view name) {
  int depth = 0;
  std::size_t end = name.size();
  if (!name.empty() && name.back() == '>') {
    for (std::size_t at = name.size(); at-- > 0;) {
      if (name[at] == '>') ++depth;
      if (name[at] == '<' && --depth == 0) {
        end = at;
        break;
      }
    }
  }
  name = name.substr(0, end);
  const std::size_t colon = name.rfind("::");
  return colon == std::string_view::npos ? name : name.substr(colon + 2);
}

// lock_shared and LockShared become "lock", "shared".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  bool was_upper = true;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool upper = std::isupper(byte) != 0;
    if ((upper && !was_upper) || c == '_') words.emplace_back();
    if (std::isalpha(byte) != 0) words.back() += static_cast<char>(std::tolower(byte));
    was_upper = upper;
  }
  std::erase(words, "");
  return words;
}

template <std::size_t N>
bool any_of(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::string without_parameters(const std::string& function) {
  const std::size_t at = parameters_at(function);
  if (at == std::string::npos || function.compare(at, 2, "()") == 0) return function;
  return function.substr(0, at) + "(...)";
}

bool is_lock_wrapper(const std::string& function) {
  // A template's name begins with what it returns.
  constexpr std::array<std::string_view, 14> kLibraries = {
      "std::",     "void std::",  "bool std::", "<std::",     "core::", "<core::", "alloc::",
      "__gthread", "__gnu_cxx::", "pthread_",   "__pthread_", "mtx_",   "cnd_",    "lock_api::"};
  for (const std::string_view prefix : kLibraries) {
    if (std::string_view(function).substr(0, prefix.size()) == prefix) return true;
  }
  constexpr std::array<std::string_view, 11> kEndings = {"lock",   "unlock", "trylock", "rdlock",
                                                         "wrlock", "mutex",  "locker",  "spinlock",
                                                         "relock", "cond",   "guard"};
  constexpr std::array<std::string_view, 12> kAdditions = {"shared", "exclusive", "read", "write",
                                                           "timed",  "slow",      "fast", "guard",
                                                           "impl",   "internal",  "wait", "inline"};
  const std::string_view whole(function);
  std::vector<std::string> words = words_of(last_part(whole.substr(0, parameters_at(whole))));
  while (words.size() > 1 && any_of(kAdditions, words.back())) words.pop_back();
  return !words.empty() && any_of(kEndings, words.back());
}

}  // namespace relock
