#include <catch2/catch.hpp>
#include <numeric>

#include "tests/unit/report_support.h"

using namespace relock;
using namespace relock::profile;

namespace {

// Two threads that wait 70 to 30 for one lock and once for another, with known names.
struct Bank {
  ProfileBuilder builder;
  TestNames names;
  std::uint32_t transfer;
  std::uint32_t deposit;
  std::uint32_t audit;

  Bank() {
    builder.module(0, 0x1000, 0x9000, "/usr/bin/bank");
    std::strcpy(builder.header()->exe, "/usr/bin/bank");
    names.objects[0x7000] = "accounts_lock";
    names.function(0x1010, "transfer", "/src/bank.cpp", 12);
    names.inlined(0x1010, "std::mutex::lock()", "/usr/include/std_mutex.h", 100);
    names.function(0x1020, "deposit", "/src/bank.cpp", 30);
    names.function(0x1030, "audit", "/src/audit.cpp", 7);
    names.function(0x1040, "main", "/src/main.cpp", 99);
    names.function(0x1050, "make_account", "/src/bank.cpp", 50);
    transfer = builder.stack({0x1010, 0x1040});
    deposit = builder.stack({0x1020, 0x1040});
    audit = builder.stack({0x1030, 0x1040});
  }
  void wait(std::uint64_t lock) {
    builder.wait(builder.lock(lock), transfer, audit, 7000);
    builder.wait(builder.lock(lock), deposit, audit, 3000);
  }
};

std::uint64_t sum_ns(const std::vector<StackShare>& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const StackShare& share) { return sum + share.ns; });
}

}  // namespace

TEST_CASE("samples share a lock's exact totals, to the nanosecond") {
  Bank bank;
  bank.wait(0x7000);
  const std::uint32_t row = bank.builder.lock(0x7000);
  for (int i = 0; i < 5; ++i) bank.builder.count(row, 1000, RELOCK_WAIT_ACQUIRED, 9);  // no stacks
  const Report report = report_of(bank.builder, bank.names);
  REQUIRE(report.locks.size() == 1);
  const ReportLock& lock = report.locks[0];
  CHECK(lock.name == "accounts_lock (bank)");
  CHECK(lock.named_by == NamedBy::kSymbol);
  CHECK(lock.wait_ns == 15000);
  CHECK(lock.waits == 7);
  CHECK(lock.samples == 2);
  const std::vector<StackShare> waiters = waiters_of(report, lock);
  REQUIRE(waiters.size() == 2);
  CHECK(waiters[0].ns == 10500);  // 70 %
  CHECK(waiters[1].ns == 4500);
  CHECK(waiters[0].waits + waiters[1].waits == 7);
  const std::vector<StackShare> blockers = blockers_of(report, lock);
  REQUIRE(blockers.size() == 1);
  CHECK(blockers[0].ns == 15000);
  CHECK(report.totals.wait_ns == 15000);
  CHECK(report.totals.waits == 7);
}

TEST_CASE("a lock of which no wait was sampled keeps its time, in an unknown stack") {
  Bank bank;
  bank.builder.count(bank.builder.lock(0x7000), 1234, RELOCK_WAIT_ACQUIRED, 9);
  const Report report = report_of(bank.builder, bank.names);
  const std::vector<PairShare> pairs = pairs_of(report, report.locks[0]);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].waiter == kNone);
  CHECK(pairs[0].ns == 1234);
  CHECK(pairs[0].waits == 1);
  CHECK(pairs[0].samples == 0);
}

TEST_CASE("inlined calls are frames of their own, and a site is the caller of a wrapper") {
  Bank bank;
  bank.wait(0x7000);
  const Report report = report_of(bank.builder, bank.names);
  const std::vector<std::uint32_t>& stack = report.stacks[0];
  REQUIRE(stack.size() == 3);
  CHECK(report.frames[stack[0]].name == "std::mutex::lock()");
  CHECK(report.frames[stack[0]].inlined);
  CHECK(report.frames[stack[1]].name == "transfer");
  CHECK_FALSE(report.frames[stack[1]].inlined);
  CHECK(report.frames[stack[0]].address == report.frames[stack[1]].address);

  const Report sites = report_of(bank.builder, bank.names, GroupBy::kSite);
  REQUIRE(sites.locks.size() == 2);
  CHECK(sites.locks[0].name == "transfer");
  CHECK(sites.locks[0].place == "bank.cpp:12");
  CHECK(sites.locks[0].wait_ns == 7000);
  CHECK_FALSE(sites.locks[0].exact);
  CHECK(sites.locks[1].name == "deposit");
  CHECK(sites.totals.wait_ns == 10000);
}

TEST_CASE("objects on the heap are grouped by where they were made, or told apart") {
  Bank bank;
  for (const std::uint64_t address : {0x100000, 0x200000}) {
    remember_init_site(reinterpret_cast<const void*>(address),
                       reinterpret_cast<const void*>(0x1051));
    bank.wait(address);
  }
  const Report locks = report_of(bank.builder, bank.names);
  REQUIRE(locks.locks.size() == 2);
  CHECK(locks.locks[0].name == "made in make_account");
  CHECK(locks.locks[0].named_by == NamedBy::kInit);
  CHECK(locks.locks[0].address != locks.locks[1].address);
  CHECK(locks.locks[0].address.substr(0, 2) == "0x");
  const Report made = report_of(bank.builder, bank.names, GroupBy::kInit);
  REQUIRE(made.locks.size() == 1);
  CHECK(made.locks[0].objects == 2);
  CHECK(made.locks[0].wait_ns == 20000);
  CHECK(made.locks[0].place == "bank.cpp:50");
  CHECK(made.locks[0].address.empty());
}

TEST_CASE("several files add up: locks with a symbol by name, those on the heap each") {
  Bank bank;
  bank.wait(0x7000);
  bank.wait(0x300000);
  std::vector<char> first = bank.builder.bytes();
  bank.builder.header()->pid = 4712;
  std::vector<std::vector<char>> files;
  files.push_back(std::move(first));
  files.push_back(bank.builder.bytes());
  const Report report = report_of(std::move(files), bank.names);
  REQUIRE(report.processes.size() == 2);
  REQUIRE(report.locks.size() == 3);
  CHECK(report.locks[0].name == "accounts_lock (bank)");
  CHECK(report.locks[0].wait_ns == 20000);
  CHECK(report.locks[0].waits == 4);
  CHECK(report.locks[1].name == "waited for in transfer");
  CHECK(report.locks[1].address == "0x300000 of 4711");
  CHECK(report.locks[2].address == "0x300000 of 4712");
  CHECK(report.totals.wait_ns == 40000);
  CHECK(report.stacks.size() == 3);  // not twice
  CHECK(report.differences.empty());
}

TEST_CASE("files that were recorded in different ways are said to differ") {
  Bank bank;
  std::vector<std::vector<char>> files(1, bank.builder.bytes());
  std::strcpy(bank.builder.header()->mutex_lock, "tas");
  bank.builder.header()->samples_per_s = 5;
  bank.builder.header()->stacks_wanted = 0;
  files.push_back(bank.builder.bytes());
  const Report report = report_of(std::move(files), bank.names);
  REQUIRE(report.differences.size() == 3);
  CHECK(report.differences[0] == "mutex lock: cna in server[4711], tas in server[4711]");
  CHECK(holds(report.differences[1], "stacks: off in"));
  CHECK(holds(report.differences[2], "stacks per second: "));
}

TEST_CASE("modules whose files are not there are named, with what they were asked for") {
  Bank bank;
  bank.wait(0x7000);
  bank.names.lost.insert("/usr/bin/bank");
  const Report report = report_of(bank.builder, bank.names);
  REQUIRE(report.missing_modules.size() == 1);
  CHECK(report.missing_modules[0].id.path == "/usr/bin/bank");
  CHECK(report.frames[0].name == "bank+0x1010");
  CHECK_FALSE(report.frames[0].named);
  CHECK(report.locks[0].name == "waited for in bank+0x1010");
}

TEST_CASE("stacks that read alike are one, though their addresses differ") {
  Bank bank;
  bank.names.function(0x1011, "transfer", "/src/bank.cpp", 12);
  bank.names.inlined(0x1011, "std::mutex::lock()", "/usr/include/std_mutex.h", 100);
  bank.wait(0x7000);
  bank.builder.wait(bank.builder.lock(0x7000), bank.builder.stack({0x1011, 0x1040}), 0, 7000);
  const Report report = report_of(bank.builder, bank.names);
  CHECK(report.stacks.size() == 4);
  const std::vector<StackShare> waiters = waiters_of(report, report.locks[0]);
  REQUIRE(waiters.size() == 2);
  CHECK(waiters[0].ns == 14000);
  CHECK(sum_ns(waiters) == 17000);
  CHECK(sum_ns(blockers_of(report, report.locks[0])) == 17000);
}

TEST_CASE("hold times, hand-offs and thread time come with the report") {
  Bank bank;
  bank.wait(0x7000);
  LockRow& row = lock_row(bank.builder.header(), bank.builder.lock(0x7000));
  row.handoffs_within = 2;
  row.hold_samples = 2;
  row.hold_ns = 3000;
  row.max_hold_ns = 2000;
  row.hold_histogram[9] = row.hold_histogram[10] = 1;
  row.hold_weighted = 10;
  row.hold_weighted_ns = 18000;
  bank.builder.header()->thread_ns = 40000;
  bank.builder.header()->threads_most = 3;
  const Report report = report_of(bank.builder, bank.names);
  CHECK(mean_hold_ns(report.locks[0]) == 1800);
  CHECK(report.locks[0].hand_offs->within == 2);
  CHECK(report.totals.thread_ns == 40000u);
  CHECK(report.processes[0].threads == 3u);
}

TEST_CASE("sums stop at the largest number instead of starting again") {
  CHECK(add_up(UINT64_MAX, 1) == UINT64_MAX);
  CHECK(add_up(1, 2) == 3);
  CHECK(scaled(UINT64_MAX, UINT64_MAX, 1) == UINT64_MAX);
  CHECK(scaled(UINT64_MAX / 2, 10, UINT64_MAX) == 4);
  CHECK(scaled(1, 2, 0) == 0);
}
