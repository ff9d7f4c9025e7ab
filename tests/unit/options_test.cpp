// policy/options: every row of the table, good and bad values, unknown variables.

#include "policy/options.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policy/topology.h"

namespace {

using relock::LineBuffer;
using relock::LockKind;
using relock::OptionRow;
using relock::Options;
using relock::WaitMode;

std::map<std::string, std::string> variables;
std::vector<std::string> warnings;

const char* get_variable(const char* name) {
  auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

void keep_warning(const char* line) { warnings.emplace_back(line); }

Options load(std::map<std::string, std::string> environment) {
  variables = std::move(environment);
  warnings.clear();
  Options options;
  relock::load_options(&options, get_variable, keep_warning);
  return options;
}

std::string printed(const OptionRow& row, const Options& options) {
  LineBuffer line;
  row.print(row, options, &line);
  return line.data;
}

std::string accepted(const OptionRow& row) {
  LineBuffer line;
  describe_accepted(row, &line);
  return line.data;
}

std::string default_of(const OptionRow& row) {
  LineBuffer line;
  describe_default(row, &line);
  return line.data;
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> parts(1);
  for (char c : words) {
    if (c == '|') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool is_number(const OptionRow& row) { return row.high > 1; }
bool is_text(const OptionRow& row) {
  return row.accepted != nullptr && strchr(row.accepted, ' ') != nullptr;
}

TEST_CASE("options: an empty environment gives the defaults without a word", "[unit]") {
  const Options options = load({});
  REQUIRE(warnings.empty());
  CHECK(options.lock == relock::kDefaultLock);
  CHECK(options.mutex == relock::kDefaultLock);
  CHECK(options.spin == relock::kDefaultLock);
  CHECK(options.wait == WaitMode::kAdaptive);
  CHECK(std::string(options.topology.c_str()) == "auto");
  CHECK(options.spin_pauses == 200);
  CHECK(options.profile_rate == 10000);
  CHECK(options.promote_us == 500);
  CHECK(options.profile_stacks);
  CHECK_FALSE(options.profile);
  CHECK(options.log_file.empty());
}

TEST_CASE("options: names are unique and every row has help and a group", "[unit]") {
  std::set<std::string> names;
  for (int i = 0; i < relock::option_count(); ++i) {
    const OptionRow& row = relock::option_row(i);
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(std::string(row.name).rfind("RELOCK_", 0) == 0);
    CHECK(strlen(row.help) > 0);
    CHECK(strlen(row.group) > 0);
    CHECK(relock::find_option(row.name) == &row);
    CHECK_FALSE(accepted(row).empty());
    CHECK_FALSE(default_of(row).empty());
  }
  CHECK(relock::find_option("RELOCK_NOTHING") == nullptr);
}

TEST_CASE("options: every accepted word is read back as it was written", "[unit]") {
  for (int i = 0; i < relock::option_count(); ++i) {
    const OptionRow& row = relock::option_row(i);
    if (is_number(row) || is_text(row)) continue;
    for (const std::string& word : split(accepted(row))) {
      if (row.accepted != nullptr && word.find(' ') != std::string::npos) continue;
      INFO(row.name << "=" << word);
      const Options options = load({{row.name, word}});
      CHECK(warnings.empty());
      CHECK(printed(row, options) == word);
    }
  }
}

TEST_CASE("options: a number is taken at its bounds and refused beyond them", "[unit]") {
  for (int i = 0; i < relock::option_count(); ++i) {
    const OptionRow& row = relock::option_row(i);
    if (!is_number(row)) continue;
    const std::string initial = printed(row, Options{});
    for (std::uint64_t good : {row.low, row.high}) {
      INFO(row.name << "=" << good);
      CHECK(printed(row, load({{row.name, std::to_string(good)}})) == std::to_string(good));
      CHECK(warnings.empty());
    }
    std::vector<std::string> bad = {std::to_string(std::uint64_t{row.high} + 1),
                                    "-1",
                                    "+5",
                                    " 7",
                                    "7 ",
                                    "0x10",
                                    "1e3",
                                    "99999999999999999999",
                                    "4294967297"};
    if (row.low > 0) bad.push_back(std::to_string(row.low - 1));
    for (const std::string& value : bad) {
      INFO(row.name << "=" << value);
      CHECK(printed(row, load({{row.name, value}})) == initial);
      CHECK(warnings.size() == 1);
    }
  }
}

TEST_CASE("options: an empty value counts as unset", "[unit]") {
  for (int i = 0; i < relock::option_count(); ++i) {
    const OptionRow& row = relock::option_row(i);
    CHECK(printed(row, load({{row.name, ""}})) == printed(row, Options{}));
    CHECK(warnings.empty());
  }
}

TEST_CASE("options: a bad value names what is accepted and what is used", "[unit]") {
  const Options options = load({{"RELOCK_WAIT", "busy"}});
  CHECK(options.wait == WaitMode::kAdaptive);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "relock: warning: RELOCK_WAIT=busy: accepted: spin|park|adaptive: using adaptive");
  load({{"RELOCK_LOG_INTERVAL", "daily"}});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "relock: warning: RELOCK_LOG_INTERVAL=daily: accepted: 0..86400 seconds: "
        "using 0 (at exit only)");
}

TEST_CASE("options: a word must match whole and in its case", "[unit]") {
  for (const char* value : {"Park", "par", "parks", "spin|park", "|", "park|"}) {
    INFO(value);
    CHECK(load({{"RELOCK_WAIT", value}}).wait == WaitMode::kAdaptive);
    CHECK(warnings.size() == 1);
  }
  for (const char* value : {"2", "yes", "01", "true"}) {
    INFO(value);
    CHECK_FALSE(load({{"RELOCK_PROFILE", value}}).profile);
    CHECK(warnings.size() == 1);
  }
}

TEST_CASE("options: RELOCK_LOCK is the default of the variables that narrow it", "[unit]") {
  Options options = load({{"RELOCK_LOCK", "ticket"}});
  CHECK(options.lock == LockKind::kTicket);
  CHECK(options.mutex == LockKind::kTicket);
  CHECK(options.spin == LockKind::kTicket);
  options = load({{"RELOCK_LOCK", "ticket"}, {"RELOCK_SPIN", "glibc"}});
  CHECK(options.mutex == LockKind::kTicket);
  CHECK(options.spin == LockKind::kGlibc);
  options = load({{"RELOCK_LOCK", "qspinlock"}, {"RELOCK_MUTEX", "nonsense"}});
  CHECK(options.mutex == LockKind::kQspinlock);
  CHECK(warnings.size() == 1);
  options = load({{"RELOCK_MUTEX", "glibc"}});
  CHECK(options.mutex == LockKind::kGlibc);
  CHECK(options.spin == relock::kDefaultLock);
}

TEST_CASE("options: text is copied, and refused when it is too long", "[unit]") {
  std::string path = "/tmp/somewhere";
  Options options = load({{"RELOCK_PROFILE_DIR", path}});
  variables["RELOCK_PROFILE_DIR"].assign(path.size(), 'x');
  CHECK(std::string(options.profile_dir.c_str()) == path);
  const std::string longest(decltype(options.log_file)::kCapacity - 1, 'a');
  CHECK(std::string(load({{"RELOCK_LOG_FILE", longest}}).log_file.c_str()) == longest);
  CHECK(warnings.empty());
  CHECK(load({{"RELOCK_LOG_FILE", longest + "a"}}).log_file.empty());
  CHECK(warnings.size() == 1);
}

TEST_CASE("options: a warning stays one short clean line whatever the value", "[unit]") {
  load({{"RELOCK_LOCK", std::string(100000, 'q')}});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].size() < 500);
  CHECK(warnings[0].find(": using ") != std::string::npos);
  load({{"RELOCK_LOCK", "a\nb\x1b[31mc"}});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("RELOCK_LOCK=a?b?[31mc:") != std::string::npos);
}

TEST_CASE("options: a malformed topology is refused here already", "[unit]") {
  CHECK(std::string(load({{"RELOCK_TOPOLOGY", "0-3,4-7"}}).topology.c_str()) == "0-3,4-7");
  CHECK(warnings.empty());
  CHECK(std::string(load({{"RELOCK_TOPOLOGY", "0-3,3-7"}}).topology.c_str()) == "auto");
  CHECK(warnings.size() == 1);
}

std::vector<std::string> unknown_warnings(std::vector<std::string> entries) {
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  warnings.clear();
  relock::warn_unknown_variables(environment.data(), keep_warning);
  return warnings;
}

TEST_CASE("options: unknown variables are named, with the nearest name", "[unit]") {
  CHECK(unknown_warnings({"PATH=/bin", "RELOCK_LOCK=tas", "RELOC=1", "XRELOCK_LOCK=1"}).empty());
  auto lines = unknown_warnings({"RELOCK_LOKC=tas", "RELOCK_SOMETHING_ELSE=1"});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "relock: warning: RELOCK_LOKC: no such variable: ignored, did you mean RELOCK_LOCK?");
  CHECK(lines[1] == "relock: warning: RELOCK_SOMETHING_ELSE: no such variable: ignored");
  lines = unknown_warnings({"RELOCK_" + std::string(5000, 'A') + "=1"});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() < 200);
}

TEST_CASE("options: a prefix of a known name is not that name", "[unit]") {
  CHECK(unknown_warnings({"RELOCK_PROFIL=1"}).size() == 1);
  CHECK(unknown_warnings({"RELOCK_PROFILES=1"}).size() == 1);
  CHECK(unknown_warnings({"RELOCK_=1"}).size() == 1);
}

TEST_CASE("options: the environment given to a constructor is read directly", "[unit]") {
  char lock[] = "RELOCK_LOCK=ticket";
  char longer[] = "RELOCK_LOCKS=glibc";
  char* environment[] = {longer, lock, nullptr};
  warnings.clear();
  Options options;
  relock::load_options_from_environment(&options, environment, keep_warning);
  CHECK(options.mutex == LockKind::kTicket);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("RELOCK_LOCKS: no such variable") != std::string::npos);
}

TEST_CASE("options: lock names and kinds match both ways", "[unit]") {
  for (int i = 0; i < relock::kLockCount; ++i) {
    LockKind kind{};
    REQUIRE(relock::lock_by_name(relock::lock_name(static_cast<LockKind>(i)), &kind));
    CHECK(static_cast<int>(kind) == i);
  }
  LockKind kind = LockKind::kTicket;
  CHECK_FALSE(relock::lock_by_name("", &kind));
  CHECK_FALSE(relock::lock_by_name("tick", &kind));
  CHECK(kind == LockKind::kTicket);
}

TEST_CASE("options: the words of the wait modes are those of the table", "[unit]") {
  for (WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    CHECK(load({{"RELOCK_WAIT", relock::wait_mode_name(mode)}}).wait == mode);
    CHECK(warnings.empty());
  }
}

}  // namespace
