#include "policy/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <type_traits>

#include "policy/topology.h"

namespace relock {

namespace {

constexpr std::size_t kShownValue = 80;  // characters of a bad value that a message repeats

constexpr LockRow kLockRows[] = {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) {name, fair, idea},
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
};

// ---- one value: text to field ------------------------------------------------------------

// The position of `text` among words separated by |, or -1.
int word_index(const char* words, const char* text) {
  const std::size_t length = strlen(text);
  for (int index = 0;; ++index) {
    const std::size_t word_length = strcspn(words, "|");
    if (word_length == length && memcmp(words, text, length) == 0) return index;
    words += word_length;
    if (*words == '\0') return -1;
    ++words;
  }
}

// Plain decimal digits, nothing else: no sign, no space, no octal surprise.
bool parse_number(const char* text, std::uint32_t* number) {
  std::uint64_t value = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
    if (value > UINT32_MAX) return false;
  }
  *number = static_cast<std::uint32_t>(value);
  return true;
}

bool parse_field(const OptionRow&, const char* text, LockKind* field) {
  return lock_by_name(text, field);
}

bool parse_field(const OptionRow& row, const char* text, std::uint32_t* field) {
  std::uint32_t number = 0;
  if (!parse_number(text, &number) || number < row.low || number > row.high) return false;
  *field = number;
  return true;
}

bool parse_field(const OptionRow&, const char* text, bool* field) {
  if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) return false;
  *field = *text == '1';
  return true;
}

template <std::size_t N>
bool parse_field(const OptionRow&, const char* text, Text<N>* field) {
  const std::size_t length = strlen(text);
  if (length >= N) return false;
  memcpy(field->data, text, length + 1);
  return true;
}

bool parse_field(const OptionRow& row, const char* text, TopologyText* field) {
  if (check_topology(text) != nullptr) return false;
  return parse_field(row, text, static_cast<Text<TopologyText::kCapacity>*>(field));
}

template <typename Enum>
requires std::is_enum_v<Enum>
bool parse_field(const OptionRow& row, const char* text, Enum* field) {
  const int index = word_index(row.accepted, text);
  if (index < 0) return false;
  *field = static_cast<Enum>(index);
  return true;
}

// ---- one value: field to text ------------------------------------------------------------

// The word at `index` among words separated by |.
void add_word(const char* words, int index, LineBuffer* out) {
  while (index > 0 && *words != '\0') {
    if (*words++ == '|') --index;
  }
  char word[32] = {};
  const std::size_t length = strcspn(words, "|");
  memcpy(word, words, length < sizeof word ? length : sizeof word - 1);
  out->add(word);
}

template <typename T>
void print_field(const OptionRow& row, const T& field, LineBuffer* out) {
  if constexpr (std::is_same_v<T, LockKind>) {
    out->add(lock_name(field));
  } else if constexpr (std::is_enum_v<T>) {
    add_word(row.accepted, static_cast<int>(field), out);
  } else if constexpr (std::is_integral_v<T>) {
    out->add_number(field);
  } else {
    out->add(field.c_str());
  }
}

template <typename T>
void print_accepted_of(const OptionRow& row, LineBuffer* out) {
  if constexpr (std::is_same_v<T, LockKind>) {
    for (int i = 0; i < kLockCount; ++i) {
      if (i > 0) out->add("|");
      out->add(kLockRows[i].name);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    out->add("0|1");
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    out->add_number(row.low);
    out->add("..");
    out->add_number(row.high);
    if (row.unit[0] != '\0') out->add(" ");
    out->add(row.unit);
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, TopologyText>) {
    out->add(row.accepted);
  } else {
    out->add(row.accepted);
    out->add(" (at most ");
    out->add_number(T::kCapacity - 1);
    out->add(" characters)");
  }
}

constexpr OptionRow kOptionRows[] = {
#define RELOCK_OPTION(type, field, name, initial, default_shown, accepted, low, high, unit, group, \
                      help)                                                                        \
  {name,                                                                                           \
   default_shown,                                                                                  \
   accepted,                                                                                       \
   low,                                                                                            \
   high,                                                                                           \
   unit,                                                                                           \
   group,                                                                                          \
   help,                                                                                           \
   [](const OptionRow& row, const char* text, Options* options) {                                  \
     return parse_field(row, text, &options->field);                                               \
   },                                                                                              \
   [](const OptionRow& row, const Options& options, LineBuffer* out) {                             \
     print_field(row, options.field, out);                                                         \
   },                                                                                              \
   print_accepted_of<type>},
#include "policy/options.def"
#undef RELOCK_OPTION
};

constexpr int kOptionCount = sizeof kOptionRows / sizeof kOptionRows[0];

// ---- the environment ---------------------------------------------------------------------

// A variable's value, from a function or from an array of NAME=value.
struct Environment {
  const char* (*get)(const char* name) = nullptr;
  char* const* variables = nullptr;

  const char* value(const char* name) const {
    if (get != nullptr) return get(name);
    const std::size_t length = strlen(name);
    for (char* const* entry = variables; entry != nullptr && *entry != nullptr; ++entry) {
      if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
        return *entry + length + 1;
      }
    }
    return nullptr;
  }
};

void warn_bad_value(const OptionRow& row, const char* value, void (*warn)(const char* line)) {
  LineBuffer line;
  line.add("relock: warning: ");
  line.add(row.name);
  line.add("=");
  line.add_foreign(value, kShownValue);
  line.add(": accepted: ");
  describe_accepted(row, &line);
  line.add(": using ");
  describe_default(row, &line);
  warn(line.data);
}

void load_all(Options* options, const Environment& environment, void (*warn)(const char* line)) {
  *options = Options{};
  // RELOCK_LOCK is the default of those that narrow it, so it must be known first.
  for (int pass = 0; pass < 2; ++pass) {
    for (const OptionRow& row : kOptionRows) {
      const bool is_base = strcmp(row.name, "RELOCK_LOCK") == 0;
      if (is_base != (pass == 0)) continue;
      const char* value = environment.value(row.name);
      if (value == nullptr || *value == '\0') continue;
      if (!row.parse(row, value, options)) warn_bad_value(row, value, warn);
    }
    if (pass == 0) {
      options->mutex = options->spin = options->lock;
      if (options->lock == LockKind::kGlibc) options->rwlock = RwlockKind::kGlibc;
    }
  }
}

constexpr int kLongestName = 40;

int smallest(int a, int b, int c) {
  const int least = a < b ? a : b;
  return least < c ? least : c;
}

// Edits (insert, delete, replace, swap neighbours) that turn one name into the other.
int edit_distance(const char* from, const char* to) {
  const int from_length = static_cast<int>(strnlen(from, kLongestName));
  const int to_length = static_cast<int>(strnlen(to, kLongestName));
  int rows[3][kLongestName + 1];
  for (int j = 0; j <= to_length; ++j) rows[0][j] = j;
  for (int i = 1; i <= from_length; ++i) {
    int* now = rows[i % 3];
    const int* last = rows[(i + 2) % 3];
    const int* before_last = rows[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= to_length; ++j) {
      const bool same = from[i - 1] == to[j - 1];
      now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] &&
          before_last[j - 2] + 1 < now[j]) {
        now[j] = before_last[j - 2] + 1;
      }
    }
  }
  return rows[from_length % 3][to_length];
}

}  // namespace

void LineBuffer::add(const char* text) {
  while (*text != '\0' && used + 1 < sizeof data) data[used++] = *text++;
  data[used] = '\0';
}

void LineBuffer::add_number(std::uint64_t number) {
  char digits[24];
  char* first = digits + sizeof digits - 1;
  *first = '\0';
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  add(first);
}

void LineBuffer::add_foreign(const char* text, std::size_t limit) {
  for (; *text != '\0' && limit > 0; ++text, --limit) {
    const unsigned char byte = static_cast<unsigned char>(*text);
    const char shown[2] = {byte < 0x20 || byte == 0x7f ? '?' : *text, '\0'};
    add(shown);
  }
  if (*text != '\0') add("...");
}

int option_count() { return kOptionCount; }

const OptionRow& option_row(int index) { return kOptionRows[index]; }

const OptionRow* find_option(const char* name) {
  for (const OptionRow& row : kOptionRows) {
    if (strcmp(row.name, name) == 0) return &row;
  }
  return nullptr;
}

const LockRow& lock_row(LockKind kind) { return kLockRows[static_cast<int>(kind)]; }

const char* lock_name(LockKind kind) { return lock_row(kind).name; }

bool lock_by_name(const char* name, LockKind* kind) {
  for (int i = 0; i < kLockCount; ++i) {
    if (strcmp(kLockRows[i].name, name) != 0) continue;
    *kind = static_cast<LockKind>(i);
    return true;
  }
  return false;
}

const char* wait_mode_name(WaitMode mode) {
  switch (mode) {
    case WaitMode::kSpin:
      return "spin";
    case WaitMode::kPark:
      return "park";
    case WaitMode::kAdaptive:
      return "adaptive";
  }
  return "?";
}

const char* rwlock_name(RwlockKind kind) { return kind == RwlockKind::kGlibc ? "glibc" : "rwsem"; }

void describe_accepted(const OptionRow& row, LineBuffer* out) { row.print_accepted(row, out); }

void describe_default(const OptionRow& row, LineBuffer* out) {
  if (row.default_shown != nullptr) {
    out->add(row.default_shown);
  } else {
    static constexpr Options kDefaults;
    row.print(row, kDefaults, out);
  }
}

void load_options(Options* options, const char* (*get)(const char* name),
                  void (*warn)(const char* line)) {
  load_all(options, Environment{get, nullptr}, warn);
}

const char* nearest_option(const char* name) {
  const char* nearest = nullptr;
  int least = 4;  // more edits than this and the name is another word
  for (const OptionRow& row : kOptionRows) {
    const int distance = edit_distance(name, row.name);
    if (distance >= least) continue;
    least = distance;
    nearest = row.name;
  }
  return nearest;
}

void warn_unknown_variables(char* const* environment, void (*warn)(const char* line)) {
  constexpr char kPrefix[] = "RELOCK_";
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, kPrefix, sizeof kPrefix - 1) != 0) continue;
    char name[kLongestName + 1] = {};
    const std::size_t length = strcspn(*entry, "=");
    memcpy(name, *entry, length < sizeof name ? length : sizeof name - 1);
    if (length < sizeof name && find_option(name) != nullptr) continue;
    LineBuffer line;
    line.add("relock: warning: ");
    line.add_foreign(name, kShownValue);
    line.add(": no such variable: ignored");
    const char* near = nearest_option(name);
    if (near != nullptr) {
      line.add(", did you mean ");
      line.add(near);
      line.add("?");
    }
    warn(line.data);
  }
}

void load_options_from_environment(Options* options, char* const* environment,
                                   void (*warn)(const char* line)) {
  *options = Options{};
  if (getauxval(AT_SECURE) != 0) return;
  if (environment == nullptr) environment = environ;
  load_all(options, Environment{nullptr, environment}, warn);
  warn_unknown_variables(environment, warn);
}

const char* foreign_variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace relock
