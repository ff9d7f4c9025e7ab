#include <catch2/catch.hpp>

#include "locks/backoff.h"

namespace relock {
namespace {

constexpr std::uint32_t kUnit = BackoffDelay::kUnit;

// A line of waiters in which every turn lasts `turn_pauses`; one of them waits with `ahead` tickets
// before its own, as ticket_backoff.h makes it wait. Returns how often it looked.
int wait_in_line(BackoffDelay& delay, std::uint32_t ahead, std::uint32_t turn_pauses) {
  std::uint32_t now = 0;
  int looks = 0;
  bool delayed = false;
  for (;;) {
    ++looks;
    const std::uint32_t served = now / turn_pauses;
    if (served > ahead) break;  // our turn has come
    if (delayed) delay.came_early();
    const std::uint32_t left = ahead - served;
    delayed = left > 0;
    now += left > 0 ? delay.pauses(left) : 1;
  }
  if (delayed) delay.came_late();
  return looks;
}

std::uint32_t learned_units(std::uint32_t turn_pauses, std::uint32_t most_units) {
  BackoffDelay delay(0, most_units);
  for (int i = 0; i < 20000; ++i)
    wait_in_line(delay, 1 + static_cast<unsigned>(i) % 7, turn_pauses);
  return delay.fixed() / kUnit;
}

TEST_CASE("the delay converges to what a turn lasts", "[backoff]") {
  for (const std::uint32_t turn : {20u, 200u, 2000u}) {
    const std::uint32_t units = learned_units(turn, Budget::kMostBackoffUnits);
    INFO("a turn of " << turn << " pauses: " << units << " units");
    CHECK(units >= turn / 2);
    CHECK(units <= turn * 2);
  }
}

TEST_CASE("the delay follows a lock whose turns become shorter", "[backoff]") {
  BackoffDelay delay(0, Budget::kMostBackoffUnits);
  for (int i = 0; i < 20000; ++i) wait_in_line(delay, 4, 2000);
  const std::uint32_t before = delay.fixed();
  for (int i = 0; i < 20000; ++i) wait_in_line(delay, 4, 50);
  CHECK(before / kUnit >= 1000);
  CHECK(delay.fixed() / kUnit <= 100);
}

TEST_CASE("looks become rarer once the delay is learned", "[backoff]") {
  BackoffDelay delay(0, Budget::kMostBackoffUnits);
  const int first = wait_in_line(delay, 6, 500);
  for (int i = 0; i < 20000; ++i) wait_in_line(delay, 6, 500);
  BackoffDelay learned(delay.fixed(), Budget::kMostBackoffUnits);
  CHECK(wait_in_line(learned, 6, 500) * 4 < first);
}

TEST_CASE("the caps hold, on bare metal and in a virtual machine", "[backoff]") {
  for (const std::uint32_t cap : {Budget::kMostBackoffUnits, Budget::kMostBackoffUnitsInVm}) {
    BackoffDelay delay(0, cap);
    CHECK(delay.fixed() == kUnit);
    for (std::uint32_t i = 0; i < cap * 8 + 100; ++i) delay.came_early();
    CHECK(delay.fixed() == cap * kUnit);
    CHECK(delay.pauses(1) == cap);
    for (int i = 0; i < 20000; ++i) delay.came_late();
    CHECK(delay.fixed() >= kUnit);
    CHECK(delay.fixed() < 2 * kUnit);
  }
  CHECK(learned_units(2000, Budget::kMostBackoffUnitsInVm) <= Budget::kMostBackoffUnitsInVm);
  // A delay learned elsewhere does not get past the cap either.
  CHECK(BackoffDelay(5000 * kUnit, Budget::kMostBackoffUnitsInVm).fixed() == 16 * kUnit);
}

TEST_CASE("the steps are the published ones", "[backoff]") {
  BackoffDelay delay(100 * kUnit, Budget::kMostBackoffUnits);
  delay.came_early();
  CHECK(delay.fixed() == 100 * kUnit + kUnit / 7);
  BackoffDelay small(10 * kUnit, Budget::kMostBackoffUnits);
  small.came_late();
  CHECK(small.fixed() == 9 * kUnit);
  BackoffDelay large(320 * kUnit, Budget::kMostBackoffUnits);
  large.came_late();
  CHECK(large.fixed() == 310 * kUnit);
}

TEST_CASE("an entry of the table serves one lock at a time", "[backoff]") {
  static BackoffTable table;
  static int locks[4096];
  CHECK(table.delay_of(&locks[0]) == 0);
  table.learn(&locks[0], 77 * kUnit);
  CHECK(table.delay_of(&locks[0]) == 77 * kUnit);
  table.learn(&locks[0], Budget::kMostBackoffUnits * kUnit);
  CHECK(table.delay_of(&locks[0]) == Budget::kMostBackoffUnits * kUnit);
  int taken_for_ours = 0;
  for (int i = 1; i < 4096; ++i) taken_for_ours += table.delay_of(&locks[i]) != 0;
  CHECK(taken_for_ours < 16);  // a hash in 65536 agrees in place and tag
  for (int i = 1; i < 4096; ++i) table.learn(&locks[i], 3 * kUnit);
  CHECK(table.delay_of(&locks[0]) != Budget::kMostBackoffUnits * kUnit);
}

}  // namespace
}  // namespace relock
