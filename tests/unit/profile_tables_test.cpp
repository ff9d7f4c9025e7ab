#include <catch2/catch.hpp>
#include <thread>

#include "interpose/profile/sampler.h"
#include "tests/unit/profile_builder.h"

using namespace relock::profile;

namespace {

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

std::uint64_t pair_samples(ProfileBuilder& builder, std::uint64_t key) {
  const auto* pairs = builder.table<PairRow>(kSectionPairs);
  for (std::uint32_t i = 0; i < kPairRows; ++i) {
    if (pairs[i].key == key) return pairs[i].samples;
  }
  return 0;
}

}  // namespace

TEST_CASE("a lock made again at its old place goes on in its row") {
  ProfileBuilder builder;
  remember_init_site(at(0x9000), at(0x111));
  const std::uint32_t row = builder.lock(0x9000);
  count_wait(lock_row(builder.header(), row), 10, RELOCK_WAIT_ACQUIRED, 5);
  retire_lock(lock_row(builder.header(), row), 9);
  CHECK(find_lock(builder.header(), at(0x9000), RELOCK_KIND_MUTEX, false) == kNoRow);

  remember_init_site(at(0x9000), at(0x111));
  CHECK(builder.lock(0x9000) == row);
  const LockRow& again = lock_row(builder.header(), row);
  CHECK(again.objects == 2);
  CHECK(again.acquisitions == 0);
  CHECK(again.acquisitions_before == 9);

  retire_lock(lock_row(builder.header(), row), 3);
  remember_init_site(at(0x9000), at(0x222));  // made elsewhere: another lock
  const std::uint32_t other = builder.lock(0x9000);
  CHECK(other != row);
  CHECK(lock_row(builder.header(), other).init_site == 0x222);
  CHECK(builder.lock(0x9000, RELOCK_KIND_SPIN) != other);
  forget_init_site(at(0x9000));
}

TEST_CASE("locks beyond the table are counted, not recorded") {
  ProfileBuilder builder;
  std::uint32_t made = 0;
  for (std::uint64_t i = 0; i < kLockRows + 1000; ++i) {
    made += builder.lock(0x100000 + i * 40) != kNoRow ? 1 : 0;
  }
  CHECK(made <= kLockRows);
  CHECK(made > kLockRows * 9 / 10);
  CHECK(builder.header()->drops[kDropLocks] == kLockRows + 1000 - made);
}

TEST_CASE("one stack has one number, and stacks beyond the table are counted") {
  ProfileBuilder builder;
  const std::uint32_t first = builder.stack({1, 2, 3});
  CHECK(first != 0);
  CHECK(builder.stack({1, 2, 3}) == first);
  CHECK(builder.stack({1, 2}) != first);
  CHECK(builder.stack({}) == 0);
  builder.header()->module_generation = 2;  // other modules: the same addresses mean other code
  CHECK(builder.stack({1, 2, 3}) != first);
  std::uint32_t refused = 0;
  for (std::uint64_t i = 0; i < kStackRows + 2000; ++i) {
    refused += builder.stack({i + 10, 5}) == 0 ? 1 : 0;
  }
  CHECK(refused >= 2000);
  CHECK(builder.header()->drops[kDropStacks] == refused);
  CHECK(builder.header()->sections[kSectionFrames].used <= kFrameWords);
}

TEST_CASE("a wait and its release are joined in either order") {
  ProfileBuilder builder;
  Header* header = builder.header();
  const std::uint32_t lock = builder.lock(0x9100);
  const std::uint32_t waiter = builder.stack({1});
  const std::uint32_t blocker = builder.stack({2});
  const std::uint64_t joined = pair_key(lock, waiter, blocker);

  const std::uint32_t first = begin_ticket(header, lock, waiter, kWeightOne, 1);
  REQUIRE(claim_release(header, first));
  CHECK_FALSE(claim_release(header, first));  // a second release of one ticket is nobody's
  release_ticket(header, first, blocker);
  CHECK(pair_samples(builder, joined) == 0);
  end_ticket(header, first, 10, true);
  CHECK(pair_samples(builder, joined) == 1);

  const std::uint32_t second = begin_ticket(header, lock, waiter, kWeightOne, 1);
  CHECK(second != first);
  end_ticket(header, second, 10, true);
  CHECK(pair_samples(builder, joined) == 1);
  REQUIRE(claim_release(header, second));
  release_ticket(header, second, blocker);
  CHECK(pair_samples(builder, joined) == 2);

  CHECK_FALSE(claim_release(header, second));  // long settled
  end_ticket(header, second, 10, true);
  CHECK(pair_samples(builder, joined) == 2);

  const std::uint32_t timed_out = begin_ticket(header, lock, waiter, kWeightOne, 1);
  end_ticket(header, timed_out, 10, false);
  CHECK(pair_samples(builder, pair_key(lock, waiter, 0)) == 1);
}

TEST_CASE("tickets whose release never comes are settled and their places used again") {
  ProfileBuilder builder;
  Header* header = builder.header();
  const std::uint32_t lock = builder.lock(0x9200);
  const std::uint32_t waiter = builder.stack({1});
  constexpr std::uint32_t kWaits = kTicketRows * 3;
  for (std::uint32_t i = 0; i < kWaits; ++i) {
    const std::uint32_t ticket = begin_ticket(header, lock, waiter, kWeightOne, 1);
    REQUIRE(ticket != 0);
    end_ticket(header, ticket, 10, true);
  }
  settle_tickets(header);
  CHECK(pair_samples(builder, pair_key(lock, waiter, 0)) == kWaits);
  CHECK(header->drops[kDropTickets] == 0);

  // Waits that do not end keep their places; when all are taken, samples are given up and counted.
  for (std::uint32_t i = 0; i < kTicketRows + 100; ++i) {
    begin_ticket(header, lock, waiter, kWeightOne, 1);
  }
  CHECK(header->drops[kDropTickets] >= 100);
}

TEST_CASE("tickets survive threads that end and release them at once") {
  ProfileBuilder builder;
  Header* header = builder.header();
  const std::uint32_t lock = builder.lock(0x9300);
  const std::uint32_t waiter = builder.stack({1});
  const std::uint32_t blocker = builder.stack({2});
  constexpr int kRounds = 20000;
  std::uint32_t shared = 0;
  std::thread releaser([&] {
    for (int i = 0; i < kRounds; ++i) {
      std::uint32_t ticket = 0;
      while (ticket == 0) ticket = __atomic_exchange_n(&shared, 0, __ATOMIC_ACQ_REL);
      if (claim_release(header, ticket)) release_ticket(header, ticket, blocker);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const std::uint32_t ticket = begin_ticket(header, lock, waiter, kWeightOne, 1);
    while (__atomic_load_n(&shared, __ATOMIC_RELAXED) != 0) {
    }
    __atomic_store_n(&shared, ticket, __ATOMIC_RELEASE);
    end_ticket(header, ticket, 10, true);
  }
  releaser.join();
  CHECK(pair_samples(builder, pair_key(lock, waiter, blocker)) == kRounds);
}

TEST_CASE("samples stay within the rate and their weights add up to all waits") {
  ProfileBuilder builder;
  host.samples_per_s = 2000;
  thread_state.random = 99;
  Header* header = builder.header();
  constexpr std::uint64_t kSeconds = 20;
  constexpr std::uint64_t kStep = 10000;  // a wait every 10 us: a hundred times the rate
  double weighted[2] = {0, 0};
  double real[2] = {0, 0};
  std::uint64_t drawn_in_second = 0;
  std::uint64_t most_in_second = 0;
  for (std::uint64_t now = 1; now < kSeconds * 1000000000; now += kStep) {
    if (now / 1000000000 != (now - kStep) / 1000000000) drawn_in_second = 0;
    // Two locks: short waits, mostly, and one long one in twenty.
    const int which = now / kStep % 20 == 0 ? 1 : 0;
    const std::uint64_t wait_ns = which == 1 ? 400000 : 5000;
    const std::uint32_t weight = draw_sample(header, wait_ns, now);
    if (weight != 0) ++drawn_in_second;
    most_in_second = std::max(most_in_second, drawn_in_second);
    if (now < 1000000000) continue;  // the first windows learn
    real[which] += static_cast<double>(wait_ns);
    weighted[which] += static_cast<double>(wait_ns) * weight / kWeightOne;
  }
  CHECK(most_in_second <= 1000);  // each sample takes two stacks
  CHECK(most_in_second >= 500);
  CHECK(weighted[0] / real[0] == Approx(1).margin(0.05));
  CHECK(weighted[1] / real[1] == Approx(1).margin(0.05));
}

TEST_CASE("with few waits every one is a sample") {
  ProfileBuilder builder;
  host.samples_per_s = 2000;
  for (std::uint64_t now = 1; now < 5000000000; now += 5000000) {
    REQUIRE(draw_sample(builder.header(), 5000, now) == kWeightOne);
  }
}
