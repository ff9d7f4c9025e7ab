#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "tests/unit/report_support.h"
#include "tools/profile_reader.h"
#include "tools/report_text.h"

using namespace relock;
using namespace relock::profile;

namespace {

// Enough of everything that every table has rows.
void fill(ProfileBuilder& builder) {
  const std::uint32_t waiter = builder.stack({0x1111, 0x2222, 0x3333});
  const std::uint32_t blocker = builder.stack({0x4444, 0x2222});
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint32_t lock = builder.lock(0x7000 + i * 64, static_cast<int>(i % 5));
    builder.wait(lock, waiter, i % 2 == 0 ? blocker : 0, 1000 * (i + 1));
  }
  begin_wait(builder.header(), builder.lock(0x7000), waiter, kWeightOne, 5);
  builder.module(0, 0x1000, 0x5000, "/nowhere/libserver.so");
}

std::string parse(std::vector<char> bytes) {
  Profile profile;
  return profile.parse(std::move(bytes));
}

template <typename Change>
std::string after(Change change) {
  ProfileBuilder builder;
  fill(builder);
  change(builder);
  return parse(builder.bytes());
}

}  // namespace

TEST_CASE("a profile comes back as it was written") {
  ProfileBuilder builder;
  const std::uint32_t waiter = builder.stack({0x10, 0x20, 0x30});
  const std::uint32_t blocker = builder.stack({0x40});
  const std::uint32_t lock = builder.lock(0xabcdef);
  builder.wait(lock, waiter, blocker, 5000);
  builder.wait(lock, waiter, blocker, 7000);
  builder.wait(lock, waiter, 0, 100);
  builder.count(lock, 9000, RELOCK_WAIT_TIMED_OUT, 8);

  Profile profile;
  REQUIRE(profile.parse(builder.bytes()) == "");
  CHECK(profile.header().pid == 4711);
  CHECK_FALSE(profile.finished());
  REQUIRE(profile.locks().size() == 1);
  const LockProfile& read = profile.locks()[0];
  CHECK(key_address(read.row.key) == 0xabcdef);
  CHECK(key_kind(read.row.key) == RELOCK_KIND_MUTEX);
  CHECK(read.row.contended == 4);
  CHECK(read.row.wait_ns == 21100);
  CHECK(read.row.max_wait_ns == 9000);
  CHECK(read.row.timeouts == 1);
  CHECK(read.row.acquisitions == 8);
  CHECK(read.row.histogram[6] == 1);   // 100 ns
  CHECK(read.row.histogram[12] == 2);  // 5000 and 7000
  CHECK(read.row.histogram[13] == 1);  // 9000
  REQUIRE(read.pairs.size() == 2);
  const StackPair& both = read.pairs[0].blocker != 0 ? read.pairs[0] : read.pairs[1];
  CHECK(both.samples == 2);
  CHECK(both.weighted_ns == 12000);
  CHECK(profile.frames(both.waiter) == std::vector<std::uint64_t>{0x10, 0x20, 0x30});
  CHECK(profile.frames(both.blocker) == std::vector<std::uint64_t>{0x40});
}

TEST_CASE("a wait without its release, and one under way, are read from the tickets") {
  ProfileBuilder builder;
  const std::uint32_t waiter = builder.stack({0x10});
  const std::uint32_t lock = builder.lock(0x5000);
  const std::uint32_t ended = begin_wait(builder.header(), lock, waiter, kWeightOne * 2, 1);
  end_ticket(builder.header(), ended, 400, true);
  begin_wait(builder.header(), lock, waiter, kWeightOne, 1);
  Profile profile;
  REQUIRE(profile.parse(builder.bytes()) == "");
  const LockProfile& read = profile.locks()[0];
  CHECK(read.under_way == 1);
  REQUIRE(read.pairs.size() == 1);
  CHECK(read.pairs[0].blocker == 0);
  CHECK(read.pairs[0].weighted_ns == 800);
}

TEST_CASE("a profile cut at any length is refused") {
  ProfileBuilder builder;
  fill(builder);
  const std::vector<char> whole = builder.bytes();
  REQUIRE(parse(whole) == "");
  for (std::size_t length = 0; length < whole.size();
       length += length < 2 * kHeaderBytes ? 1 : 9973) {
    const std::string wrong = parse(std::vector<char>(whole.begin(), whole.begin() + length));
    INFO("length " << length);
    REQUIRE(wrong != "");
    REQUIRE(wrong.find('\n') == std::string::npos);
  }
  std::vector<char> longer = whole;
  longer.push_back(0);
  CHECK(parse(longer) != "");
}

TEST_CASE("a profile with any bits turned is refused or printed, and nothing worse") {
  ProfileBuilder builder;
  fill(builder);
  const std::vector<char> whole = builder.bytes();
  std::vector<std::size_t> used;  // bytes that say something
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] != 0 || i < sizeof(Header)) used.push_back(i);
  }
  std::mt19937 random(12345);
  TestNames names;
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<char> bytes = whole;
    for (int flips = 0; flips <= round % 3; ++flips) {
      bytes[used[random() % used.size()]] ^= static_cast<char>(1u << random() % 8);
    }
    Profile profile;
    if (!profile.parse(std::move(bytes)).empty()) {
      ++refused;
      continue;
    }
    std::vector<NamedProfile> profiles;
    profiles.push_back({"changed.prof", std::move(profile)});
    const std::string text = report_text(build_report(profiles, names, GroupBy::kLock), {});
    REQUIRE(text.find("LOCKS") != std::string::npos);
  }
  CHECK(refused > 20);
  CHECK(refused < 400);
}

TEST_CASE("numbers that point outside the profile are refused") {
  CHECK(after([](ProfileBuilder&) {}) == "");
  CHECK(after([](ProfileBuilder& b) {
          b.header()->version = kFormatVersion + 1;
        }).find("profile of format") != std::string::npos);
  CHECK(after([](ProfileBuilder& b) { b.header()->file_bytes += 1; }) != "");
  CHECK(after([](ProfileBuilder& b) { b.header()->sections[kSectionPairs].offset = 8; }) != "");
  CHECK(after([](ProfileBuilder& b) { b.header()->sections[kSectionLocks].rows = ~0u; }) != "");
  CHECK(after([](ProfileBuilder& b) {
          std::memset(b.header()->command_line, 'x', sizeof b.header()->command_line);
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          std::memset(b.table<ModuleRow>(kSectionModules)->path, 'x', sizeof(ModuleRow::path));
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          b.table<ModuleRow>(kSectionModules)->build_id_bytes = 1000;
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          auto& stack = b.table<StackRow>(kSectionStacks)[7];
          stack.hash = 1;
          stack.first_frame = kFrameWords - 3;
          stack.frames = 4;
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          b.table<LockRow>(kSectionLocks)[b.lock(0x7000)].key |= std::uint64_t{200} << 56;
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          b.table<LockRow>(kSectionLocks)[b.lock(0x7000)].first_stack = kStackRows + 1;
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          b.table<PairRow>(kSectionPairs)[3].key = pair_key(b.lock(0x7000), kStackRows + 1, 0);
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          b.table<PairRow>(kSectionPairs)[3].key = pair_key(kLockRows + 5, 0, 0);
        }) != "");
  CHECK(after([](ProfileBuilder& b) {
          b.table<TicketRow>(kSectionTickets)[900] = {kTicketBegun | 256, ~0u, 0, 0, 0, 0, 0, {}};
        }) != "");
}

TEST_CASE("what is no profile is refused in one line") {
  char place[] = "/tmp/relock-unit.XXXXXX";
  REQUIRE(mkdtemp(place) != nullptr);
  const std::string directory = place;
  const std::string pipe = directory + "/pipe";
  const std::string text = directory + "/text";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::ofstream(text) << "relock";
  std::ofstream(directory + "/empty");
  Profile profile;
  CHECK(profile.load(directory) != "");
  CHECK(profile.load(pipe) == "not a regular file");  // and does not wait for a writer
  CHECK(profile.load(text) == "not a relock profile");
  CHECK(profile.load(directory + "/empty") == "not a relock profile: empty");
  CHECK(profile.load(directory + "/missing") == "No such file or directory");
  std::system(("rm -r " + directory).c_str());
}
