// Which addresses the rules mean: symbols and functions are turned into ranges when the program
// starts and when a library is opened, so that a waiting thread only compares numbers.
#pragma once

#include <cstdint>

#include "policy/rules.h"

namespace relock {

// The rules of this process. Written once, in the constructor.
extern RuleSet g_rules;

// No rule: what comes after the last one.
inline constexpr int kNoRule = RuleSet::kMost;

// Resolves the rules in all modules that are loaded now. One thread only.
void resolve_rules_at_start();

// The same for modules that a call of dlopen has brought, from their files.
void resolve_rules_of_new_modules();

// The first rule of this subject and for this kind of object (a bit) that means the address; for a
// module rule, that the address lies in. kNoRule if there is none. Code addresses are those that a
// call returns to. Neither allocates nor makes a system call; a module that nobody has announced is
// resolved on the way from the symbols that it has in memory.
int rule_for_address(RuleSubject subject, std::uint8_t kind, const void* address);

// The same for symbol and module rules from what was known at start alone, so that the answer never
// changes.
int fixed_rule_for_object(RuleSubject subject, std::uint8_t kind, const void* address);

// Whether the address lies in a module at all.
bool lies_in_module(const void* address);

// In a forked child: the thread that was adding to the tables is not here.
void forget_resolving_thread();

// For RELOCK_VERBOSE.
int resolved_ranges();

}  // namespace relock
