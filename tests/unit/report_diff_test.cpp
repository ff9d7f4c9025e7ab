#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/report_support.h"
#include "tools/diff_print.h"
#include "tools/report_json.h"
#include "tools/text_format.h"

using namespace relock;
using namespace relock::profile;
using nlohmann::json;

namespace {

struct Run {
  ProfileBuilder builder;
  TestNames names;
  std::uint32_t stack;

  explicit Run(std::uint64_t seconds) {
    builder.module(0, 0x1000, 0x9000, "/usr/bin/server");
    builder.header()->start_monotonic_ns = 1;
    builder.header()->last_monotonic_ns = 1 + seconds * 1000000000;
    names.objects[0x7000] = "hot";
    names.objects[0x7100] = "other";
    names.function(0x1010, "put", "a.cpp", 1);
    names.function(0x1020, "get", "a.cpp", 2);
    stack = builder.stack({0x1010});
  }
  void lock(std::uint64_t address, std::uint64_t wait_ns, std::uint64_t acquisitions) {
    const std::uint32_t row = builder.lock(address);
    builder.wait(row, stack, 0, wait_ns);
    lock_row(builder.header(), row).acquisitions = acquisitions;
  }
  Report report() { return report_of(builder, names); }
};

const DiffRow& row_of(const std::vector<DiffRow>& rows, const std::string& name) {
  for (const DiffRow& row : rows) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  return rows[0];
}

}  // namespace

TEST_CASE("diff: a longer run with the same waiting per acquisition is no worse") {
  Run before(1);
  Run after(3);
  before.lock(0x7000, 1000000, 1000);
  after.lock(0x7000, 3000000, 3000);
  const Diff diff = diff_reports(before.report(), after.report());
  REQUIRE(diff.locks.size() == 1);
  CHECK(diff.locks[0].name == "hot (server)");
  CHECK(diff.locks[0].verdict == Verdict::kSame);
  CHECK(diff.locks[0].change_ns == 0);
  CHECK(diff.total.verdict == Verdict::kSame);
}

TEST_CASE("diff: better, worse, new and gone, the largest change first") {
  Run before(1);
  Run after(1);
  before.lock(0x7000, 8000000, 1000);
  before.lock(0x7100, 1000000, 1000);
  after.lock(0x7000, 4000000, 2000);  // half the time for twice the work
  after.lock(0x7100, 1500000, 1000);
  before.builder.wait(before.builder.lock(0x7200, RELOCK_KIND_SPIN), before.stack, 0, 700000);
  after.builder.wait(after.builder.lock(0x7300, RELOCK_KIND_SPIN), after.stack, 0, 600000);
  before.names.objects[0x7200] = "old";
  after.names.objects[0x7300] = "young";
  const Diff diff = diff_reports(before.report(), after.report());
  REQUIRE(diff.locks.size() == 4);
  CHECK(diff.locks[0].name == "hot (server)");
  CHECK(diff.locks[0].verdict == Verdict::kBetter);
  CHECK(diff.locks[0].change_ns == 4000000 - 16000000);
  const DiffRow& other = row_of(diff.locks, "other (server)");
  CHECK(other.verdict == Verdict::kWorse);
  CHECK(other.change_ns == 500000);
  CHECK(row_of(diff.locks, "old (server)").verdict == Verdict::kGone);
  CHECK(row_of(diff.locks, "young (server)").verdict == Verdict::kNew);

  const std::string text = diff_text(diff, 3);
  CHECK(holds(text, "better  8.00 us  2.00 us   -75.0%   8.00 ms  4.00 ms   -50.0%  mutex hot"));
  CHECK(holds(text, "1 more (--top 4 shows them)"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(columns_of(line) <= 100);

  const json document = json::parse(json_text(diff_json(diff), true));
  CHECK(document["schema"] == "relock-diff");
  CHECK(document["version"] == 1);
  CHECK(document["locks"][0]["verdict"] == "better");
  CHECK(document["locks"][0]["before"]["wait_ns_per_acquisition"] == 8000.0);
  CHECK(document["locks"][0]["after"]["wait_ns_per_s"] == 4000000.0);
  CHECK(document["after"]["wait_ns"] == 6100000);
}

TEST_CASE("diff: locks on the heap are found again by where they are waited for") {
  Run before(1);
  Run after(1);
  const std::uint32_t put = before.stack;
  const std::uint32_t get = before.builder.stack({0x1020});
  const std::uint32_t row = before.builder.lock(0x100000);
  before.builder.wait(row, put, 0, 600000);  // the first to wait, and the most
  before.builder.wait(row, get, 0, 400000);
  const std::uint32_t get_after = after.builder.stack({0x1020});
  const std::uint32_t row_after = after.builder.lock(0x200000);
  after.builder.wait(row_after, get_after, 0, 500000);
  after.builder.wait(row_after, after.stack, 0, 400000);
  const Diff diff = diff_reports(before.report(), after.report());
  REQUIRE(diff.locks.size() == 1);
  CHECK(diff.locks[0].before.has_value());
  CHECK(diff.locks[0].after.has_value());
  CHECK(diff.locks[0].verdict == Verdict::kBetter);
}

TEST_CASE("diff: runs with different settings are said to differ") {
  Run before(1);
  Run after(1);
  std::strcpy(after.builder.header()->mutex_lock, "tas");
  const Diff diff = diff_reports(before.report(), after.report());
  REQUIRE(diff.differences.size() == 1);
  CHECK(holds(diff_text(diff, 10), "note      the runs differ in mutex lock: cna in"));
}
