// The ticket-backoff lock itself, with a world in which only pauses take time: others own it and
// hand it on after so many pauses each, while the waiter under test runs the code that ships.
#include "locks/ticket_backoff.h"

#include <catch2/catch.hpp>

namespace relock {
namespace {

struct LinePlatform {
  struct Atomic32 {
    std::uint32_t load(MemoryOrder) const { return value; }
    void store(std::uint32_t desired, MemoryOrder) { value = desired; }
    bool compare_exchange(std::uint32_t& expected, std::uint32_t desired, MemoryOrder) {
      if (value != expected) return expected = value, false;
      value = desired;
      return true;
    }
    std::uint32_t fetch_add(std::uint32_t operand, MemoryOrder) {
      value += operand;
      return value - operand;
    }
    std::uint32_t value;
  };

  static void pause();
  static WaitResult futex_wait(Atomic32&, std::uint32_t, std::uint32_t, const Deadline*) {
    FAIL("the allowance is large enough for the whole line");
    return WaitResult::kWoken;
  }
  static int futex_wake(const void*, int, std::uint32_t) { return 0; }
  static std::int64_t now_ns() { return 0; }
  static Deadline after_ns(std::uint64_t) { return {}; }
  static std::uint32_t epoch() { return 0; }
  static BackoffTable* backoff_table() { return &table; }

  static inline BackoffTable table;
  static inline Atomic32 word;
  static inline std::uint32_t now;          // in pauses
  static inline std::uint32_t turn_pauses;  // how long each owner keeps the lock
};

using Lock = TicketBackoff<LinePlatform, MutexLayout>;

void LinePlatform::pause() {
  if (++now % turn_pauses != 0) return;
  // The last ticket is that of the waiter under test: it owns the lock from then on.
  if (Lock::has_waiters(word.value)) word.value = Lock::release(word.value).word;
}

// The lock is held and `ahead` others have tickets: the caller gets the next one and the lock.
void wait_behind(std::uint32_t ahead, const Budget& budget) {
  LinePlatform::now = 0;
  LinePlatform::word.value = MutexLayout::kLocked | ahead << MutexLayout::kTicketTailShift;
  WaitContext<LinePlatform> context{&budget};
  context.spin_pauses = 100'000'000;
  REQUIRE(Lock::join(LinePlatform::word, context) == Joined::kAcquired);
  // In its turn and not before: those ahead and the first owner have had theirs.
  REQUIRE(LinePlatform::now >= (ahead + 1) * LinePlatform::turn_pauses);
  REQUIRE((LinePlatform::word.value & MutexLayout::kLocked) != 0);
}

std::uint32_t learned() {
  return LinePlatform::table.delay_of(&LinePlatform::word) / BackoffDelay::kUnit;
}

void begin(std::uint32_t turn_pauses) {
  LinePlatform::turn_pauses = turn_pauses;
  LinePlatform::table.learn(&LinePlatform::word, 0);
}

TEST_CASE("ticket-backoff: the delay in the thread's table converges to a turn", "[lock]") {
  const Budget budget;
  for (const std::uint32_t turn : {20u, 200u, 1000u}) {
    begin(turn);
    for (unsigned i = 0; i < 10'000; ++i) wait_behind(1 + i % 7, budget);
    INFO("a turn of " << turn << " pauses: " << learned() << " units");
    CHECK(learned() >= turn / 2);
    CHECK(learned() <= turn * 2);
  }
}

TEST_CASE("ticket-backoff: the delay follows turns that become shorter", "[lock]") {
  const Budget budget;
  begin(1000);
  for (int i = 0; i < 10'000; ++i) wait_behind(4, budget);
  CHECK(learned() >= 500);
  LinePlatform::turn_pauses = 50;
  for (int i = 0; i < 10'000; ++i) wait_behind(4, budget);
  CHECK(learned() <= 100);
}

TEST_CASE("ticket-backoff: in a virtual machine the delay never passes its cap", "[lock]") {
  Budget budget;
  budget.backoff_units = Budget::kMostBackoffUnitsInVm;
  begin(2000);
  std::uint32_t most = 0;
  for (unsigned i = 0; i < 2'000; ++i) {
    wait_behind(1 + i % 7, budget);
    most = learned() > most ? learned() : most;
  }
  CHECK(most == 16);
  // What was learned without the cap does not outlive it.
  LinePlatform::table.learn(&LinePlatform::word, 5000 * BackoffDelay::kUnit);
  wait_behind(3, budget);
  CHECK(learned() <= 16);
}

TEST_CASE("ticket-backoff: on bare metal the delay never passes its cap", "[lock]") {
  const Budget budget;
  begin(40'000);
  LinePlatform::table.learn(&LinePlatform::word, 15'990 * BackoffDelay::kUnit);
  for (int i = 0; i < 200; ++i) {
    wait_behind(6, budget);
    REQUIRE(learned() <= 16'000);
  }
}

}  // namespace
}  // namespace relock
