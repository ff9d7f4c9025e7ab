// The settings of one process: a typed snapshot of the RELOCK_ variables, made once.
//
// Everything expands from options.def and locks/lock_list.def. This code runs inside foreign
// programs before their main: it never allocates, and a wrong value costs one line and the default.
#pragma once

#include <cstddef>
#include <cstdint>

#include "locks/budget.h"

namespace relock {

enum class LockKind : std::uint8_t {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) k##ident,
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
};

inline constexpr int kLockCount = 0
#define RELOCK_LOCK_ROW(ident, name, fair, idea) +1  // NOLINT(bugprone-macro-parentheses)
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
    ;

// The lock that serves when no variable names one.
inline constexpr LockKind kDefaultLock = LockKind::kAuto;

enum class RwlockKind : std::uint8_t { kGlibc, kRwsem };
enum class VmMode : std::uint8_t { kAuto, kYes, kNo };

// A copy of a variable's text: setenv and clearenv may take the original away.
template <std::size_t N>
struct Text {
  static constexpr std::size_t kCapacity = N;

  constexpr Text() = default;
  constexpr Text(const char* text) {  // NOLINT: options.def initialises with plain literals
    for (std::size_t i = 0; i + 1 < N && text[i] != '\0'; ++i) data[i] = text[i];
  }
  const char* c_str() const { return data; }
  bool empty() const { return data[0] == '\0'; }

  char data[N] = {};
};

// Text that topology.h understands.
struct TopologyText : Text<512> {
  using Text::Text;
};

struct Options {
#define RELOCK_OPTION(type, field, name, initial, default_shown, accepted, low, high, unit, group, \
                      help)                                                                        \
  type field = initial;
#include "policy/options.def"
#undef RELOCK_OPTION
};

// A row of options.def as data, for help texts and for checking one value.
struct OptionRow {
  const char* name;
  const char* default_shown;
  const char* accepted;
  std::uint32_t low;
  std::uint32_t high;
  const char* unit;
  const char* group;
  const char* help;
  // Stores the value and returns true, or leaves *options alone and returns false.
  bool (*parse)(const OptionRow& row, const char* text, Options* options);
  // Writes the field of *options as a user would write it.
  void (*print)(const OptionRow& row, const Options& options, struct LineBuffer* out);
  // Writes what is accepted, in a form fit for "accepted: ...".
  void (*print_accepted)(const OptionRow& row, struct LineBuffer* out);
};

// A row of lock_list.def as data.
struct LockRow {
  const char* name;
  const char* fair;
  const char* idea;
};

// One line under construction; what does not fit is cut off. Always terminated.
struct LineBuffer {
  void add(const char* text);
  void add_number(std::uint64_t number);
  // At most `limit` characters of text that somebody else wrote: control characters become '?'.
  void add_foreign(const char* text, std::size_t limit);

  char data[1024] = {};
  std::size_t used = 0;
};

int option_count();
const OptionRow& option_row(int index);
const OptionRow* find_option(const char* name);  // null when there is no such variable
const LockRow& lock_row(LockKind kind);
const char* lock_name(LockKind kind);
bool lock_by_name(const char* name, LockKind* kind);
const char* wait_mode_name(WaitMode mode);
const char* rwlock_name(RwlockKind kind);

// "glibc|tas|ticket", "0..64 threads" and the like; and the default as help shows it.
void describe_accepted(const OptionRow& row, LineBuffer* out);
void describe_default(const OptionRow& row, LineBuffer* out);

// Fills *options: defaults first, then whatever `get` returns (null or empty: unset). A bad value
// gives one line through `warn` and keeps the default. `warn` gets the line without a newline.
void load_options(Options* options, const char* (*get)(const char* name),
                  void (*warn)(const char* line));

// A warning for each NAME=value in `environment` (terminated by null) whose name starts with
// RELOCK_ and is not in the table, with the nearest name as a hint.
void warn_unknown_variables(char* const* environment, void (*warn)(const char* line));

// The nearest name to a mistyped one, or null when none is near.
const char* nearest_option(const char* name);

// Both of the above for this process. `environment` is what a constructor receives as its third
// argument: libc's environ is not set yet when a library linked with -z initfirst starts. Null:
// environ. A process with more rights than its user (AT_SECURE) gets the defaults, silently.
void load_options_from_environment(Options* options, char* const* environment,
                                   void (*warn)(const char* line));

// A variable that is not ours (PATH, LD_PRELOAD, ...), for the command; "" when it is unset.
const char* foreign_variable(const char* name);

}  // namespace relock
