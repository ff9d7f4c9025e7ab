#include "policy/rules.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>

namespace relock {

namespace {

constexpr const char* kSubjects[] = {"symbol", "module", "init", "site"};
constexpr int kMostWords = 8;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Cuts a line into words, which a # ends; "..." holds one together. False: a quote stays open.
bool split(char* line, char** words, int* count) {
  *count = 0;
  char* at = line;
  while (true) {
    while (is_blank(*at)) ++at;
    if (*at == '\0' || *at == '#') return true;
    const bool quoted = *at == '"';
    char* begin = quoted ? ++at : at;
    while (*at != '\0' && (quoted ? *at != '"' : !is_blank(*at))) ++at;
    if (quoted && *at == '\0') return false;
    if (*count < kMostWords) words[(*count)++] = begin;
    if (*at == '\0') return true;
    *at++ = '\0';
  }
}

bool find_word(const char* word, const char* const* known, int count, int* index) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(word, known[i]) != 0) continue;
    *index = i;
    return true;
  }
  return false;
}

// A number as in 64 or 0x40, up to the end of the text.
bool read_offset(const char* text, std::uint64_t* value) {
  const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (hex) text += 2;
  if (*text == '\0') return false;
  std::uint64_t sum = 0;
  for (; *text != '\0'; ++text) {
    const char lower = static_cast<char>(*text | 0x20);
    int digit = -1;
    if (*text >= '0' && *text <= '9') digit = *text - '0';
    if (hex && lower >= 'a' && lower <= 'f') digit = lower - 'a' + 10;
    if (digit < 0 || sum > (UINT64_MAX >> 5)) return false;
    sum = sum * (hex ? 16u : 10u) + static_cast<unsigned>(digit);
  }
  *value = sum;
  return true;
}

// [MODULE:]NAME[+OFFSET] or, for a module rule, MODULE.
const char* read_pattern(char* text, Rule* rule) {
  if (*text == '\0') return "the pattern is empty";
  if (rule->subject == RuleSubject::kModule) {
    rule->module = text;
    return nullptr;
  }
  if (strstr(text, "::") != nullptr || strchr(text, '(') != nullptr) {
    return "names are as in the symbol table (nm prints them), not demangled";
  }
  char* colon = strrchr(text, ':');
  if (colon != nullptr) {
    *colon = '\0';
    rule->module = text;
    text = colon + 1;
  }
  rule->name = text;
  char* plus = strrchr(text, '+');
  if (plus != nullptr && read_offset(plus + 1, &rule->offset)) {
    *plus = '\0';
    rule->has_offset = true;
  }
  if (*text != '\0') return nullptr;
  if (!rule->has_offset) return "no symbol is named";
  return *rule->module == '\0' ? "an offset alone needs its module, as in MODULE:+0x40" : nullptr;
}

const char* read_lock(const char* word, Rule* rule) {
  if (strcmp(word, rwlock_name(RwlockKind::kRwsem)) == 0) {
    rule->objects = kRuleRwlock;
    return nullptr;
  }
  if (!lock_by_name(word, &rule->lock)) return "no such lock (relock list names them)";
  rule->objects = kRuleMutex | kRuleSpin;
  if (rule->lock == LockKind::kGlibc) {
    rule->objects |= kRuleRwlock;
    rule->rwlock = RwlockKind::kGlibc;
  }
  return nullptr;
}

const char* read_objects(char* list, Rule* rule) {
  constexpr const char* kKinds[] = {"mutex", "spin", "rwlock"};
  std::uint8_t wanted = 0;
  for (char* word = list; word != nullptr;) {
    char* comma = strchr(word, ',');
    if (comma != nullptr) *comma = '\0';
    int kind = 0;
    if (!find_word(word, kKinds, 3, &kind)) return "kind= takes mutex, spin or rwlock";
    wanted = static_cast<std::uint8_t>(wanted | (1u << kind));
    word = comma == nullptr ? nullptr : comma + 1;
  }
  if ((wanted & ~rule->objects) != 0) return "the lock does not serve objects of this kind";
  rule->objects = wanted;
  return nullptr;
}

const char* read_setting(char* word, Rule* rule, bool* kind_given) {
  constexpr const char* kModes[] = {"spin", "park", "adaptive"};
  if (strncmp(word, "wait=", 5) == 0) {
    int mode = 0;
    if (!find_word(word + 5, kModes, 3, &mode)) return "wait= takes spin, park or adaptive";
    rule->wait = static_cast<WaitMode>(mode);
    rule->has_wait = true;
    return nullptr;
  }
  if (strncmp(word, "kind=", 5) != 0)
    return "after the lock only wait=MODE and kind=KIND are known";
  *kind_given = true;
  return read_objects(word + 5, rule);
}

// A spinlock has four bytes, a readers-writer lock bytes of two encodings: nothing in them can
// remember who initialised or first waited for them.
const char* check_objects(Rule* rule, bool kind_given) {
  const bool by_code = rule->subject == RuleSubject::kInit || rule->subject == RuleSubject::kSite;
  if (!by_code) return nullptr;
  if ((rule->objects & kRuleMutex) == 0 || (kind_given && rule->objects != kRuleMutex)) {
    return "rules by init and site are for mutexes alone";
  }
  rule->objects = kRuleMutex;
  return nullptr;
}

const char* read_rule(char** words, int count, Rule* rule) {
  int subject = 0;
  if (!find_word(words[0], kSubjects, 4, &subject)) {
    return "a rule begins with symbol, module, init or site";
  }
  rule->subject = static_cast<RuleSubject>(subject);
  if (count < 3) return "a rule needs a pattern and a lock: WHAT PATTERN LOCK";
  if (const char* wrong = read_pattern(words[1], rule)) return wrong;
  if (const char* wrong = read_lock(words[2], rule)) return wrong;
  bool kind_given = false;
  for (int i = 3; i < count; ++i) {
    if (const char* wrong = read_setting(words[i], rule, &kind_given)) return wrong;
  }
  return check_objects(rule, kind_given);
}

const char* read_line(char* line, std::uint32_t number, RuleSet* set) {
  char* words[kMostWords];
  int count = 0;
  if (!split(line, words, &count)) return "a quote is not closed";
  if (count == 0) return nullptr;
  Rule rule;
  rule.line = number;
  if (const char* wrong = read_rule(words, count, &rule)) return wrong;
  if (set->count == RuleSet::kMost) return "more than 120 rules";
  set->rules[set->count++] = rule;
  set->any_site = set->any_site || rule.subject == RuleSubject::kSite;
  return nullptr;
}

}  // namespace

void parse_rules(char* text, RuleSet* set, RuleComplaint complain, void* context) {
  *set = RuleSet{};
  std::uint32_t number = 0;
  for (char* line = text; line != nullptr;) {
    ++number;
    char* end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    if (const char* wrong = read_line(line, number, set)) {
      ++set->errors;
      complain(context, number, wrong);
    }
    line = end == nullptr ? nullptr : end + 1;
  }
}

const char* load_rules(const char* path, char* text, RuleSet* set, RuleComplaint complain,
                       void* context) {
  *set = RuleSet{};
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return strerrordesc_np(errno);
  std::size_t size = 0;
  ssize_t got = 0;
  while (size < kMostRulesText && (got = read(file, text + size, kMostRulesText - size)) > 0) {
    size += static_cast<std::size_t>(got);
  }
  const int error = errno;
  char more = 0;
  const bool too_long = size == kMostRulesText && read(file, &more, 1) == 1;
  close(file);
  if (got < 0) return strerrordesc_np(error);
  text[size] = '\0';
  if (memchr(text, '\0', size) != nullptr) return "not a text file";
  if (too_long) {  // the last line may be cut: it goes too
    char* last = strrchr(text, '\n');
    if (last != nullptr) last[1] = '\0';
  }
  parse_rules(text, set, complain, context);
  if (too_long) {
    ++set->errors;
    complain(context, 0, "longer than 64 KiB: the rest is not read");
  }
  return nullptr;
}

bool matches_pattern(const char* pattern, const char* text) {
  const char* star = nullptr;  // the last one passed, and where its match ends at least
  const char* star_text = nullptr;
  while (*text != '\0') {
    if (*pattern == '*') {
      star = pattern++;
      star_text = text;
    } else if (*pattern == *text || *pattern == '?') {
      ++pattern;
      ++text;
    } else if (star != nullptr) {
      pattern = star + 1;
      text = ++star_text;
    } else {
      return false;
    }
  }
  while (*pattern == '*') ++pattern;
  return *pattern == '\0';
}

bool matches_module(const char* pattern, const char* path) {
  if (*pattern == '\0') return true;
  if (strchr(pattern, '/') != nullptr) return matches_pattern(pattern, path);
  const char* slash = strrchr(path, '/');
  return matches_pattern(pattern, slash == nullptr ? path : slash + 1);
}

const char* rule_subject_name(RuleSubject subject) { return kSubjects[static_cast<int>(subject)]; }

}  // namespace relock
