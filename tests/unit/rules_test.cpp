// The grammar of RELOCK_RULES and what its patterns match.
#include "policy/rules.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

using namespace relock;

namespace {

struct Parsed {
  std::vector<char> text;
  std::unique_ptr<RuleSet> set = std::make_unique<RuleSet>();
  std::vector<std::string> complaints;  // "LINE: what"

  const Rule& operator[](int i) const { return set->rules[i]; }
};

void note(void* context, std::uint32_t line, const char* what) {
  static_cast<Parsed*>(context)->complaints.push_back(std::to_string(line) + ": " + what);
}

Parsed parse(const std::string& text) {
  Parsed parsed;
  parsed.text.assign(text.begin(), text.end());
  parsed.text.push_back('\0');
  parse_rules(parsed.text.data(), parsed.set.get(), note, &parsed);
  return parsed;
}

std::string complaint_of(const std::string& line) {
  const Parsed parsed = parse(line);
  CHECK(parsed.set->count == 0);
  return parsed.complaints.size() == 1 ? parsed.complaints[0] : "";
}

}  // namespace

TEST_CASE("rules: each subject, with everything a rule may say") {
  const Parsed rules = parse(
      "# a comment\n"
      "symbol g_lock ticket   # another\n"
      "\n"
      "symbol\tlibfoo.so*:cache_*+0x40 cna wait=park kind=mutex\r\n"
      "module \"/opt/my program/lib?.so\" auto\n"
      "init make_lock qspinlock wait=spin\n"
      "site server:+4096 glibc\n"
      "symbol table rwsem\n"
      "module libbar.so glibc kind=rwlock,spin");
  CHECK(rules.complaints.empty());
  REQUIRE(rules.set->count == 7);
  CHECK(rules.set->any_site);

  CHECK(rules[0].subject == RuleSubject::kSymbol);
  CHECK(rules[0].name == std::string("g_lock"));
  CHECK(rules[0].module == std::string());
  CHECK(rules[0].lock == LockKind::kTicket);
  CHECK(rules[0].objects == (kRuleMutex | kRuleSpin));
  CHECK_FALSE(rules[0].has_wait);
  CHECK_FALSE(rules[0].has_offset);
  CHECK(rules[0].line == 2);

  CHECK(rules[1].module == std::string("libfoo.so*"));
  CHECK(rules[1].name == std::string("cache_*"));
  CHECK(rules[1].offset == 0x40);
  CHECK(rules[1].wait == WaitMode::kPark);
  CHECK(rules[1].objects == kRuleMutex);
  CHECK(rules[1].line == 4);

  CHECK(rules[2].subject == RuleSubject::kModule);
  CHECK(rules[2].module == std::string("/opt/my program/lib?.so"));
  CHECK(rules[3].subject == RuleSubject::kInit);
  CHECK(rules[3].wait == WaitMode::kSpin);
  CHECK(rules[3].objects == kRuleMutex);
  CHECK(rules[4].subject == RuleSubject::kSite);
  CHECK(rules[4].module == std::string("server"));
  CHECK(rules[4].name == std::string());
  CHECK(rules[4].offset == 4096);
  CHECK(rules[4].objects == kRuleMutex);
  CHECK(rules[5].objects == kRuleRwlock);
  CHECK(rules[5].rwlock == RwlockKind::kRwsem);
  CHECK(rules[6].objects == (kRuleRwlock | kRuleSpin));
  CHECK(rules[6].rwlock == RwlockKind::kGlibc);
}

TEST_CASE("rules: what is wrong is named with its line, and the rest stands") {
  const Parsed rules = parse("symbol a tas\nsymbol b\nsymbol c ticket\nlock d tas\n\nmodule e cna");
  REQUIRE(rules.complaints.size() == 2);
  CHECK(rules.complaints[0].find("2: a rule needs a pattern and a lock") == 0);
  CHECK(rules.complaints[1].find("4: a rule begins with symbol, module, init or site") == 0);
  CHECK(rules.set->errors == 2);
  REQUIRE(rules.set->count == 3);
  CHECK(rules[1].name == std::string("c"));
}

TEST_CASE("rules: each mistake has its words") {
  CHECK(complaint_of("symbol a nosuch").find("no such lock") != std::string::npos);
  CHECK(complaint_of("symbol a tas wait=never").find("wait= takes") != std::string::npos);
  CHECK(complaint_of("symbol a tas kind=cond").find("kind= takes") != std::string::npos);
  CHECK(complaint_of("symbol a tas kind=rwlock").find("does not serve") != std::string::npos);
  CHECK(complaint_of("symbol a rwsem kind=mutex").find("does not serve") != std::string::npos);
  CHECK(complaint_of("symbol a tas park").find("only wait=MODE and kind=KIND") !=
        std::string::npos);
  CHECK(complaint_of("init a tas kind=spin").find("mutexes alone") != std::string::npos);
  CHECK(complaint_of("site a rwsem").find("mutexes alone") != std::string::npos);
  CHECK(complaint_of("symbol ns::lock tas").find("not demangled") != std::string::npos);
  CHECK(complaint_of("init f(int) tas").find("not demangled") != std::string::npos);
  CHECK(complaint_of("symbol \"\" tas").find("empty") != std::string::npos);
  CHECK(complaint_of("symbol \"a tas").find("quote") != std::string::npos);
  CHECK(complaint_of("symbol +4 tas").find("needs its module") != std::string::npos);
  CHECK(complaint_of("symbol lib.so: tas").find("no symbol") != std::string::npos);
}

TEST_CASE("rules: an offset that is none belongs to the name") {
  const Parsed rules = parse("symbol a+b tas\nsymbol a+0xzz tas\nsymbol a+ tas");
  REQUIRE(rules.set->count == 3);
  CHECK(rules[0].name == std::string("a+b"));
  CHECK_FALSE(rules[1].has_offset);
  CHECK(rules[2].name == std::string("a+"));
}

TEST_CASE("rules: no more than an object can remember") {
  std::string text;
  for (int i = 0; i < RuleSet::kMost + 5; ++i) text += "symbol a tas\n";
  const Parsed rules = parse(text);
  CHECK(rules.set->count == RuleSet::kMost);
  CHECK(rules.set->errors == 5);
  CHECK(rules.complaints[0].find("more than 120 rules") != std::string::npos);
}

TEST_CASE("rules: patterns") {
  CHECK(matches_pattern("abc", "abc"));
  CHECK_FALSE(matches_pattern("abc", "abcd"));
  CHECK_FALSE(matches_pattern("abcd", "abc"));
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("*", "anything"));
  CHECK(matches_pattern("a*c", "abcbc"));
  CHECK_FALSE(matches_pattern("a*c", "abcb"));
  CHECK(matches_pattern("*Mutex*", "_ZN7rocksdb4port5MutexC1Eb"));
  CHECK(matches_pattern("a?c", "abc"));
  CHECK_FALSE(matches_pattern("a?c", "ac"));
  CHECK(matches_pattern("**a**", "a"));
  CHECK_FALSE(matches_pattern("", "a"));
  // Quadratic at worst.
  CHECK_FALSE(matches_pattern("*a*a*a*a*a*a*a*a*b", std::string(2000, 'a').c_str()));

  CHECK(matches_module("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"));
  CHECK_FALSE(matches_module("libc.so", "/lib/x86_64-linux-gnu/libc.so.6"));
  CHECK(matches_module("/lib/*/libc.so.?", "/lib/x86_64-linux-gnu/libc.so.6"));
  CHECK(matches_module("", "/any"));
  CHECK(matches_module("server", "server"));
}

TEST_CASE("rules: files") {
  char path[] = "/tmp/relock-rules.XXXXXX";
  close(mkstemp(path));
  std::vector<char> text(kMostRulesText + 1);
  Parsed parsed;
  const auto load = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    parsed.complaints.clear();
    return load_rules(path, text.data(), parsed.set.get(), note, &parsed);
  };
  CHECK(load("symbol a tas") == nullptr);
  CHECK(parsed.set->count == 1);
  CHECK(load("") == nullptr);
  CHECK(parsed.set->count == 0);
  CHECK(load(std::string("symbol a tas\0x", 14)) == std::string("not a text file"));
  std::string lines;
  while (lines.size() < kMostRulesText + 100) lines += "# padding padding padding\n";
  CHECK(load("symbol a tas\n" + lines + "symbol b tas\n") == nullptr);
  CHECK(parsed.set->count == 1);
  REQUIRE(parsed.complaints.size() == 1);
  CHECK(parsed.complaints[0] == "0: longer than 64 KiB: the rest is not read");
  unlink(path);
  CHECK(load_rules("/nonexistent/rules", text.data(), parsed.set.get(), note, &parsed) ==
        std::string("No such file or directory"));
  CHECK(load_rules("/tmp", text.data(), parsed.set.get(), note, &parsed) ==
        std::string("Is a directory"));
}
