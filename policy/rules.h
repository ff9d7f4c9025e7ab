// A file of rules that pick the lock of single objects (RELOCK_RULES). README.md has the grammar.
//
// Like everything in policy/ it never allocates: rules point into the text they were read from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/options.h"

namespace relock {

// What a rule looks at.
enum class RuleSubject : std::uint8_t {
  kSymbol,  // the symbol that the object lies in
  kModule,  // the module that it lies in; else that initialised it; else that first waited for it
  kInit,    // the function that initialised it
  kSite,    // the function whose call was the first that had to wait
};

// Which objects a rule is for: bits.
inline constexpr std::uint8_t kRuleMutex = 1;
inline constexpr std::uint8_t kRuleSpin = 2;
inline constexpr std::uint8_t kRuleRwlock = 4;

struct Rule {
  RuleSubject subject = RuleSubject::kSymbol;
  std::uint8_t objects = 0;
  bool has_wait = false;
  bool has_offset = false;
  LockKind lock = LockKind::kAuto;         // of mutexes and spinlocks
  RwlockKind rwlock = RwlockKind::kRwsem;  // of readers-writer locks
  WaitMode wait = WaitMode::kAdaptive;     // with has_wait
  std::uint32_t line = 0;                  // where it stands, from 1
  const char* module = "";                 // pattern for the module; empty: any
  const char* name = "";                   // pattern for the symbol; empty: `offset` alone tells
  std::uint64_t offset = 0;                // with has_offset: from the symbol or the module
};

struct RuleSet {
  // An object remembers its rule in seven bits; two values mean something else.
  static constexpr int kMost = 120;

  Rule rules[kMost];
  int count = 0;
  int errors = 0;
  bool any_site = false;
};

// Longer files are not read to the end.
inline constexpr std::size_t kMostRulesText = 64 * 1024;

// Told about each line that is no rule: its number and what is wrong with it.
using RuleComplaint = void (*)(void* context, std::uint32_t line, const char* what);

// Reads rules from `text` (terminated; it is changed: words get terminators of their own). What is
// wrong costs a complaint and the line; the rest of the file stands.
void parse_rules(char* text, RuleSet* set, RuleComplaint complain, void* context);

// Reads at most kMostRulesText bytes of a file into `text` (that many and one more) and parses it.
// Null, or why the file cannot be read.
const char* load_rules(const char* path, char* text, RuleSet* set, RuleComplaint complain,
                       void* context);

// Whether `text` matches a pattern in which * stands for any characters and ? for one.
bool matches_pattern(const char* pattern, const char* text);

// Whether a module's pattern means the file at `path`: its last part, or all of it when the pattern
// has a slash. An empty pattern means every module.
bool matches_module(const char* pattern, const char* path);

const char* rule_subject_name(RuleSubject subject);

}  // namespace relock
