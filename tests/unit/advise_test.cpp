// What relock advise says of locks whose numbers are known, and the rules that it writes.
#include "tools/advise.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/rules.h"
#include "tests/unit/profile_builder.h"

using namespace relock;

namespace {

// 2000 waits of 100 us in 10 s of threads' time, held for 1 us.
LockFacts busy_lock() {
  LockFacts lock;
  lock.name = "g_lock";
  lock.pattern = "symbol server:g_lock";
  lock.by_address = true;
  lock.objects = 1;
  lock.acquisitions = 100'000;
  lock.waits = 2'000;
  lock.wait_ns = 200'000'000;
  lock.max_wait_ns = 1'000'000;
  lock.hold_samples = 500;
  lock.hold_ns = 1'000;
  lock.within = 2'000;
  return lock;
}

RunFacts run_with(const std::string& lock) {
  RunFacts run;
  run.mutex = run.spin = lock;
  run.rwlock = "rwsem";
  run.wait = "adaptive";
  run.cpus = 4;
  run.threads = 4;
  run.thread_ns = 10'000'000'000;
  run.duration_ns = 2'500'000'000;
  return run;
}

bool says(const LockAdvice& advice, const std::string& words) {
  return advice.why.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("advise: a lock that suits is left alone") {
  const LockAdvice advice = judge_lock(busy_lock(), run_with("tas"));
  CHECK_FALSE(advice.gains());
  CHECK(says(advice, "tas suits that"));
}

TEST_CASE("advise: too little to gain is too little") {
  LockFacts lock = busy_lock();
  lock.wait_ns = 40'000'000;  // 0.4 %
  CHECK(says(judge_lock(lock, run_with("glibc")), "too little to gain: its waits are 0.40 %"));
  lock = busy_lock();
  lock.waits = 99;
  CHECK(says(judge_lock(lock, run_with("glibc")), "too little to gain: only 99 waits"));
}

TEST_CASE("advise: hand-offs across nodes ask for cna, where there are nodes") {
  LockFacts lock = busy_lock();
  lock.across = 900;
  lock.within = 1'100;
  RunFacts run = run_with("qspinlock");
  CHECK_FALSE(judge_lock(lock, run).gains());
  run.nodes = 2;
  const LockAdvice advice = judge_lock(lock, run);
  CHECK(advice.lock == "cna");
  CHECK(says(advice, "45 % of 2000 hand-offs went from one of 2 NUMA nodes to another"));
  run.mutex = "cna";
  CHECK_FALSE(judge_lock(lock, run).gains());
  lock.across = 400;
  lock.within = 1'600;
  run.mutex = "qspinlock";
  CHECK_FALSE(judge_lock(lock, run).gains());
}

TEST_CASE("advise: ordered locks suffer from more threads than CPUs") {
  RunFacts run = run_with("ticket");
  CHECK_FALSE(judge_lock(busy_lock(), run).gains());
  run.threads = 16;
  const LockAdvice advice = judge_lock(busy_lock(), run);
  CHECK(advice.lock == "tas");
  CHECK(says(advice, "16 threads on 4 CPUs"));
  run.mutex = "tas";
  CHECK_FALSE(judge_lock(busy_lock(), run).gains());
}

TEST_CASE("advise: short holds under the C library's lock gain from pauses") {
  CHECK(judge_lock(busy_lock(), run_with("glibc")).lock == "auto");
  LockFacts lock = busy_lock();
  lock.hold_ns = 50'000;
  CHECK_FALSE(judge_lock(lock, run_with("glibc")).gains());
  lock.hold_samples = 0;
  CHECK(says(judge_lock(lock, run_with("glibc")), "no hold time was sampled"));
}

TEST_CASE("advise: long holds make pauses a waste") {
  LockFacts lock = busy_lock();
  lock.hold_ns = 300'000;
  RunFacts run = run_with("tas");
  const LockAdvice advice = judge_lock(lock, run);
  CHECK(advice.lock == "tas");
  CHECK(advice.wait == "park");
  CHECK(says(advice, "half of its holds take 150 us or more (500 samples)"));
  run.wait = "park";
  CHECK(says(judge_lock(lock, run), "no lock can shorten that"));
}

TEST_CASE("advise: a starved waiter asks for order") {
  LockFacts lock = busy_lock();
  lock.max_wait_ns = 400'000'000;
  CHECK(judge_lock(lock, run_with("tas")).lock == "ticket");
  RunFacts run = run_with("tas");
  run.threads = 5;
  CHECK(judge_lock(lock, run).lock == "pv-qspinlock");
}

TEST_CASE("advise: many CPUs at one word ask for a queue") {
  RunFacts run = run_with("tas");
  run.cpus = 32;
  run.threads = 32;
  CHECK(judge_lock(busy_lock(), run).lock == "qspinlock");
  run.threads = 64;
  CHECK_FALSE(judge_lock(busy_lock(), run).gains());
}

TEST_CASE("advise: what no rule can name is not promised") {
  LockFacts lock = busy_lock();
  lock.pattern.clear();
  CHECK(says(judge_lock(lock, run_with("glibc")), "nothing is known of it that a rule could name"));
  lock = busy_lock();
  lock.kind = RELOCK_KIND_SPIN;
  RunFacts run = run_with("ticket");
  run.threads = 16;
  CHECK(judge_lock(lock, run).lock == "tas");
  lock.by_address = false;
  lock.pattern = "init server:make_lock";
  CHECK_FALSE(judge_lock(lock, run).gains());
  CHECK(says(judge_lock(lock, run), "set RELOCK_SPIN=tas for all"));
}

TEST_CASE("advise: what is printed is a rules file") {
  LockFacts named = busy_lock();
  LockFacts made = busy_lock();
  made.name = "made in Pool::Pool(int)";
  made.pattern = "init \"my server:_ZN4PoolC1Ei\"";
  made.by_address = false;
  LockFacts quiet = busy_lock();
  quiet.waits = 5;
  RunFacts run = run_with("ticket");
  run.threads = 16;
  int count = 0;
  std::string text = advice_text("relock.server.1.prof", {named, made, quiet}, run, &count);
  CHECK(count == 2);
  CHECK(text.find("stays: too little to gain: only 5 waits") != std::string::npos);
  const auto set = std::make_unique<RuleSet>();
  std::vector<char> bytes(text.begin(), text.end());
  bytes.push_back('\0');
  parse_rules(
      bytes.data(), set.get(), [](void*, std::uint32_t, const char* what) { FAIL(what); }, nullptr);
  REQUIRE(set->count == 2);
  CHECK(set->rules[0].subject == RuleSubject::kSymbol);
  CHECK(set->rules[0].objects == kRuleMutex);
  CHECK(set->rules[0].lock == LockKind::kTas);
  CHECK(set->rules[1].subject == RuleSubject::kInit);
  CHECK(set->rules[1].module == std::string("my server"));
  CHECK(set->rules[1].name == std::string("_ZN4PoolC1Ei"));

  text = advice_text("x\n\033[2J", {quiet}, run, &count);
  CHECK(count == 0);
  CHECK(text.find("No lock would gain") != std::string::npos);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    CHECK((text[at] == '#' || text[at] == '\n'));
  }
}

namespace {

struct Names : NameSource {
  std::map<std::uint64_t, std::string> symbols;  // 64 bytes each

  std::vector<CodeName> code(const ModuleId&, std::uint64_t) override { return {}; }
  DataName data(const ModuleId&, std::uint64_t address) override {
    const auto next = symbols.upper_bound(address);
    if (next == symbols.begin()) return {};
    const auto known = std::prev(next);
    if (address - known->first >= 64) return {};
    return {"shown " + known->second, address - known->first, known->second};
  }
  std::vector<MissingModule> missing() const override { return {}; }
  bool has_lines(const ModuleId&) override { return false; }
};

}  // namespace

TEST_CASE("advise: patterns mean the object, its maker or its first waiter") {
  profile::ProfileBuilder builder;
  builder.module(0, 0x1000, 0x9000, "/opt/server");
  Names names;
  names.symbols = {{0x1100, "make_lock"},
                   {0x1200, "lock_here"},
                   {0x1300, "jumps"},
                   {0x5000, "g_lock"},
                   {0x5100, "row"}};
  const std::uint32_t inside = builder.stack({0x1210, 0x1150});
  const std::uint32_t jumped = builder.stack({0x1300, 0x1210});
  const std::uint32_t nameless = builder.stack({0x1805});
  const auto add = [&](std::uint64_t address, std::uint64_t init_site, std::uint32_t stack) {
    const std::uint32_t row = builder.lock(address);
    profile::lock_row(builder.header(), row).init_site = init_site;
    builder.wait(row, stack, 0, 1'000'000);
  };
  add(0x5000, 0x1110, inside);
  add(0x5120, 0, inside);
  add(0x6000, 0, inside);
  add(0x700000, 0x1108, inside);
  add(0x700100, 0x1140, inside);
  add(0x700200, 0x1900, inside);
  add(0x700300, 0, inside);
  add(0x700400, 0, jumped);
  add(0x700500, 0, nameless);
  Profile profile;
  REQUIRE(profile.parse(builder.bytes()) == "");
  std::map<std::string, std::uint64_t> waits;
  for (const LockFacts& lock : collect_facts(profile, names)) waits[lock.pattern] = lock.waits;
  const std::map<std::string, std::uint64_t> expected = {{"symbol server:g_lock", 1},
                                                         {"symbol server:row+0x20", 1},
                                                         {"symbol server:+0x6000", 1},
                                                         {"init server:make_lock", 2},
                                                         {"init server:+0x1900", 1},
                                                         {"site server:lock_here", 2},
                                                         {"", 1}};
  CHECK(waits == expected);
}
