#include <catch2/catch.hpp>
#include <thread>

#include "interpose/profile/sampler.h"
#include "tests/unit/profile_builder.h"
#include "tools/profile_reader.h"

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

TEST_CASE("locks that follow each other at one address are told apart") {
  ProfileBuilder builder;
  remember_init_site(at(0x9000), at(0x111));
  const std::uint32_t row = builder.lock(0x9000);
  builder.count(row, 10, RELOCK_WAIT_ACQUIRED, 5);
  retire_lock(lock_row(builder.header(), row), 9);
  CHECK(find_lock(builder.header(), at(0x9000), RELOCK_KIND_MUTEX, false) == kNoRow);

  remember_init_site(at(0x9000), at(0x111));
  const std::uint32_t second = builder.lock(0x9000);
  CHECK(second != row);
  CHECK(builder.lock(0x9000) == second);
  CHECK(lock_row(builder.header(), row).acquisitions == 9);
  CHECK(lock_row(builder.header(), second).acquisitions == 0);
  CHECK(builder.lock(0x9000, RELOCK_KIND_SPIN) != second);
  forget_init_site(at(0x9000));
}

TEST_CASE("a lock that is made again and again at one place goes on in its row in the end") {
  ProfileBuilder builder;
  std::uint32_t last = kNoRow;
  std::uint32_t rows_used = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    remember_init_site(at(0x9000), at(0x111));
    const std::uint32_t row = builder.lock(0x9000);
    rows_used += row != last ? 1 : 0;
    last = row;
    builder.count(row, 10, RELOCK_WAIT_ACQUIRED, 2);
    retire_lock(lock_row(builder.header(), row), 3);
  }
  CHECK(rows_used == 8);
  const LockRow& lock = lock_row(builder.header(), last);
  CHECK(lock.objects == 993);
  CHECK(lock.acquisitions + lock.acquisitions_before == 3 * 993);
  remember_init_site(at(0x9000), at(0x222));  // made elsewhere: another lock
  const std::uint32_t other = builder.lock(0x9000);
  CHECK(other != last);
  CHECK(lock_row(builder.header(), other).init_site == 0x222);
  forget_init_site(at(0x9000));
}

TEST_CASE("a counter that wraps around is followed") {
  ProfileBuilder builder;
  host.counter_bits[RELOCK_KIND_MUTEX] = 8;
  LockRow& lock = lock_row(builder.header(), builder.lock(0x9000));
  std::uint64_t taken = 0;
  for (const std::uint64_t step : {100, 120, 37, 127, 1, 99}) {
    taken += step;
    count_acquisitions(lock, taken & 255, 1);
    CHECK(lock.acquisitions == taken);
  }
  count_acquisitions(lock, (taken - 3) & 255, 1);  // somebody was told late
  CHECK(lock.acquisitions == taken);
  count_acquisitions(lock, (taken + 10) & 255, 20);  // not worth a write yet
  CHECK(lock.acquisitions == taken);
}

TEST_CASE("the waits of a busy lock are spread, and their sum is right") {
  ProfileBuilder builder;
  host.nodes = builder.header()->nodes = 2;
  const std::uint32_t row = builder.lock(0x9000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t) {
    threads.emplace_back([&] {
      thread_state = {};
      for (std::uint64_t i = 1; i <= 1000; ++i) {
        builder.count(row, i, RELOCK_WAIT_ACQUIRED, 0,
                      i % 4 == 0 ? RELOCK_HANDOFF_ACROSS : RELOCK_HANDOFF_WITHIN);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const LockRow& lock = lock_row(builder.header(), row);
  CHECK(lock.shards != 0);
  CHECK(lock.contended < 24000);
  const WaitSums sums = wait_sums(builder.header(), lock);
  CHECK(sums.contended == 24000);
  CHECK(sums.wait_ns == 24 * 500500);
  CHECK(sums.max_wait_ns == 1000);
  CHECK(builder.header()->waiting_threads == 24);

  relock::Profile profile;
  REQUIRE(profile.parse(builder.bytes()) == "");
  const LockRow& read = profile.locks().at(0).row;
  CHECK(read.contended == 24000);
  CHECK(read.wait_ns == 24 * 500500);
  CHECK(read.max_wait_ns == 1000);
  CHECK(read.handoffs_within == 18000);
  CHECK(read.handoffs_across == 6000);
  std::uint64_t in_histogram = 0;
  for (const std::uint32_t waits : read.histogram) in_histogram += waits;
  CHECK(in_histogram == 24000);
}

TEST_CASE("holds are added up with what they stand for") {
  ProfileBuilder builder;
  LockRow& lock = lock_row(builder.header(), builder.lock(0x9000));
  count_hold(lock, 1000, 1);
  count_hold(lock, 4000, 64);
  CHECK(lock.hold_samples == 2);
  CHECK(lock.hold_ns == 5000);
  CHECK(lock.max_hold_ns == 4000);
  CHECK(lock.hold_weighted == 65);
  CHECK(lock.hold_weighted_ns == 1000 + 64 * 4000);
  CHECK(lock.hold_histogram[9] == 1);
  CHECK(lock.hold_histogram[11] == 1);
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

  const std::uint32_t first = begin_wait(header, lock, waiter, kWeightOne, 1);
  REQUIRE(claim_release(header, first));
  CHECK_FALSE(claim_release(header, first));  // a second release of one ticket is nobody's
  release_ticket(header, first, blocker, 1);
  CHECK(pair_samples(builder, joined) == 0);
  end_ticket(header, first, 10, true);
  CHECK(pair_samples(builder, joined) == 1);

  const std::uint32_t second = begin_wait(header, lock, waiter, kWeightOne, 1);
  CHECK(second != first);
  end_ticket(header, second, 10, true);
  CHECK(pair_samples(builder, joined) == 1);
  REQUIRE(claim_release(header, second));
  release_ticket(header, second, blocker, 1);
  CHECK(pair_samples(builder, joined) == 2);

  CHECK_FALSE(claim_release(header, second));  // long settled
  end_ticket(header, second, 10, true);
  CHECK(pair_samples(builder, joined) == 2);

  // Its own release was not reported: another that came while it waited explains it, or none.
  const std::uint32_t unmarked = begin_wait(header, lock, waiter, kWeightOne, 1);
  end_ticket(header, unmarked, 10, false);
  CHECK(pair_samples(builder, joined) == 3);
  const std::uint32_t timed_out = begin_wait(header, lock, waiter, kWeightOne, 1000000);
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
    const std::uint32_t ticket = begin_wait(header, lock, waiter, kWeightOne, 1);
    REQUIRE(ticket != 0);
    end_ticket(header, ticket, 10, true);
  }
  settle_tickets(header);
  CHECK(pair_samples(builder, pair_key(lock, waiter, 0)) == kWaits);
  CHECK(header->drops[kDropTickets] == 0);

  // Waits that do not end keep their places; when all are taken, samples are given up and counted.
  for (std::uint32_t i = 0; i < kTicketRows + 100; ++i) {
    begin_wait(header, lock, waiter, kWeightOne, 1);
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
      if (claim_release(header, ticket)) release_ticket(header, ticket, blocker, 1);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const std::uint32_t ticket = begin_wait(header, lock, waiter, kWeightOne, 1);
    while (__atomic_load_n(&shared, __ATOMIC_RELAXED) != 0) {
    }
    __atomic_store_n(&shared, ticket, __ATOMIC_RELEASE);
    end_ticket(header, ticket, 10, true);
  }
  releaser.join();
  CHECK(pair_samples(builder, pair_key(lock, waiter, blocker)) == kRounds);
}

namespace {

// A thread's waits for one lock, as the interposer asks about them.
struct Dice {
  std::uint32_t undrawn = 0;
  std::uint32_t passed = 0;
  ThreadState own{};

  std::uint32_t draw(Header* header, std::uint64_t wait_ns, std::uint64_t now) {
    if (undrawn > 0) return --undrawn, ++passed, 0;
    std::swap(own, thread_state);
    Draw asked{true, passed, 0, 0};
    const std::uint32_t weight = draw_sample(header, wait_ns, now, asked);
    std::swap(own, thread_state);
    undrawn = asked.undrawn;
    passed = 0;
    return weight;
  }
};

}  // namespace

TEST_CASE("samples stay within the rate and their weights add up to all waits") {
  ProfileBuilder builder;
  host.samples_per_s = 2000;
  Dice dice[2];
  dice[0].own.random = 99;
  dice[1].own.random = 98;
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
    const std::uint32_t weight = dice[which].draw(header, wait_ns, now);
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
    Draw draw{false, 0, 0, 0};
    REQUIRE(draw_sample(builder.header(), 5000, now, draw) == kWeightOne);
  }
}
