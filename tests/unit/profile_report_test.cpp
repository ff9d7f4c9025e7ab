#include <catch2/catch.hpp>
#include <sstream>

#include "tests/unit/report_support.h"
#include "tools/demangle.h"
#include "tools/lock_wrappers.h"
#include "tools/report_text.h"
#include "tools/text_format.h"

using namespace relock;
using namespace relock::profile;

namespace {

std::string report(ProfileBuilder& builder, NameSource& names, std::uint32_t top = 10) {
  TextOptions options;
  options.top = top;
  return report_text(report_of(builder, names), options);
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) width = std::max(width, columns_of(line));
  return width;
}

}  // namespace

TEST_CASE("durations have three digits and a unit") {
  CHECK(duration_text(0) == "0 ns");
  CHECK(duration_text(999) == "999 ns");
  CHECK(duration_text(1000) == "1.00 us");
  CHECK(duration_text(12345) == "12.3 us");
  CHECK(duration_text(999900) == "1.00 ms");
  CHECK(duration_text(123456789) == "123 ms");
  CHECK(duration_text(61500000000) == "61.5 s");
  CHECK(duration_text(5000000000000) == "5000 s");
}

TEST_CASE("the hottest lock comes first, with its stacks and who made them wait") {
  ProfileBuilder builder;
  TestNames names;
  builder.module(0, 1, 0x7800, "/usr/bin/server");
  names.objects[0x7000] = "accounts_lock";
  names.function(0x10, "transfer", "src/bank.cpp", 12);
  names.function(0x11, "transfer", "src/bank.cpp", 12);  // another call on the same line
  names.function(0x20, "main", "src/bank.cpp", 99);
  names.function(0x30, "audit", "audit.cpp", 7);
  names.function(0x99, "below_main");
  const std::uint32_t hot = builder.lock(0x7000);
  const std::uint32_t cool = builder.lock(0x8000);
  const std::uint32_t audit = builder.stack({0x30, 0x20, 0x99});
  builder.wait(cool, builder.stack({0x30, 0x20}), 0, 1000);
  builder.wait(hot, builder.stack({0x10, 0x20, 0x99}), audit, 3000000);
  builder.wait(hot, builder.stack({0x11, 0x20, 0x99}), audit, 1000000);
  builder.header()->flags = kFlagFinished;

  const std::string text = report(builder, names);
  CHECK(holds(text, "server[4711]"));
  CHECK(holds(text, "until the program ended"));
  CHECK(holds(text, "1. mutex accounts_lock (server)"));
  CHECK(holds(text, "2. mutex waited for in audit audit.cpp:7"));
  CHECK(holds(text,
              "100.0%  4.00 ms, 2 samples: waits in\n           transfer  bank.cpp:12\n"
              "           main  bank.cpp:99\n           100.0%  because of\n"
              "                   audit  audit.cpp:7"));
  CHECK_FALSE(holds(text, "below_main"));
  CHECK(holds(text, "dropped   nothing"));
  CHECK(holds(text, "No thread waited for a condition variable."));
  CHECK(holds(text, "look at   audit  audit.cpp:7\n            it held a lock during 100%"));
  CHECK(text.find("1. mutex accounts_lock") < text.find("2. mutex waited for"));

  const std::string one = report(builder, names, 1);
  CHECK(holds(one, "in 1 more (--top 2 shows them)"));
  CHECK_FALSE(holds(one, "2. mutex"));
}

TEST_CASE("condition variables have a section of their own") {
  ProfileBuilder builder;
  TestNames names;
  const std::uint32_t stack = builder.stack({0x10});
  builder.wait(builder.lock(0x7000, RELOCK_KIND_COND), stack, stack, 9000000);
  builder.wait(builder.lock(0x7100, RELOCK_KIND_RWLOCK_WRITE), stack, stack, 1000);
  const std::string text = report(builder, names);
  const std::size_t section = text.find("CONDITION VARIABLES");
  REQUIRE(section != std::string::npos);
  CHECK(text.find("rwlock write") < section);
  CHECK(text.find("1. cond ") > section);
  CHECK(holds(text, "woken by"));
  CHECK(holds(text, "  1  1.00 us 100.0%"));  // its share is of the locks' waits
}

TEST_CASE("what was left out is said") {
  ProfileBuilder builder;
  TestNames names;
  builder.header()->drops[kDropLocks] = 3;
  builder.header()->drops[kDropBudget] = 1234567;
  const std::string text = report(builder, names);
  CHECK(holds(text, "dropped   3 waits for locks beyond the table"));
  CHECK(holds(text, "1,234,567 samples over the rate"));
  CHECK(holds(text, "killed or still running"));
  CHECK(holds(text, "No thread waited for a lock."));
}

TEST_CASE("a report fits into 100 columns and prints no control characters") {
  ProfileBuilder builder;
  TestNames names;
  const std::string long_name = "std::map<" + std::string(300, 'x') + ">::find\x1b[31m";
  builder.module(0, 1, 0x10000, ("/bin/" + std::string(300, 'm')).c_str());
  names.function(0x10, long_name, "file.cpp", 1);
  names.function(0x20, long_name, std::string(120, 'f'), 2);
  names.function(0x30, std::string(80, '\xe4') + "\xe2\x80\xae" + long_name, "", 0);
  names.objects[0x7000] = long_name;
  std::memset(builder.header()->command_line, 'c', sizeof builder.header()->command_line - 1);
  const std::uint32_t lock = builder.lock(0x7000);
  const std::uint32_t stack = builder.stack({0x10, 0x20, 0x30, 0x40});
  builder.wait(lock, stack, stack, 123456789);
  LockRow& row = lock_row(builder.header(), lock);
  row.contended = row.timeouts = row.cancelled = 4000000000;
  row.histogram[26] = 4000000000;
  row.acquisitions = row.try_failures = ~0ull >> 1;
  row.max_wait_ns = ~0ull >> 1;
  row.wait_ns = ~0ull;
  row.objects = ~0u;
  const std::string text = report(builder, names);
  CHECK(widest(text) <= kReportColumns);
  CHECK_FALSE(holds(text, "\x1b"));
  CHECK(holds(text, "file.cpp:1\n"));  // the line is worth more than the end of the name
}
