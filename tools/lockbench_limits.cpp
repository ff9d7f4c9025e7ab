// What the hardware and the kernel take at least: no lock that uses them can be faster.

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/lockbench.h"

namespace lockbench {

namespace {

constexpr int kBatches = 100;
constexpr int kLineTrips = 500;
constexpr int kFutexTrips = 50;
// On a busy machine a batch may take a hundred times as long; a few have to do then.
constexpr std::uint64_t kGameNs = 300'000'000;
constexpr int kLeastBatches = 3;

// Two threads pass a turn to and fro, in one cache line.
struct Game {
  alignas(128) std::uint32_t turn = 0;
  alignas(128) pthread_barrier_t start;
  int cpus[2];
  int trips = 0;
  bool sleeps = false;  // waits in the kernel, not in a loop
  bool pinned = true;
  bool over = false;
  int woken = 0;                          // in this batch: passings that found the other asleep
  std::uint64_t fastest_ns = UINT64_MAX;  // batch
};

bool pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

void await_turn(Game* game, std::uint32_t mine) {
  std::uint32_t turn;
  while ((turn = __atomic_load_n(&game->turn, __ATOMIC_ACQUIRE)) != mine) {
    if (game->sleeps) syscall(SYS_futex, &game->turn, FUTEX_WAIT_PRIVATE, turn, nullptr);
  }
}

void pass_turn(Game* game, std::uint32_t mine) {
  __atomic_store_n(&game->turn, 1 - mine, __ATOMIC_RELEASE);
  if (game->sleeps && syscall(SYS_futex, &game->turn, FUTEX_WAKE_PRIVATE, 1) == 1)
    __atomic_add_fetch(&game->woken, 1, __ATOMIC_RELAXED);
}

// A turn that came back from another CPU before its owner had fallen asleep says nothing about
// waking. On one CPU somebody has to be switched to in any case.
bool tells(const Game* game) {
  return !game->sleeps || game->cpus[0] == game->cpus[1] ||
         __atomic_load_n(&game->woken, __ATOMIC_RELAXED) * 10 > game->trips * 18;
}

void play(Game* game, std::uint32_t me) {
  if (!pin_to(game->cpus[me])) __atomic_store_n(&game->pinned, false, __ATOMIC_RELAXED);
  const std::uint64_t game_began = now_ns();
  for (int batch = 0; batch < kBatches; ++batch) {
    if (me == 0) {
      __atomic_store_n(&game->woken, 0, __ATOMIC_RELAXED);
      game->over = batch >= kLeastBatches && now_ns() - game_began > kGameNs;
    }
    pthread_barrier_wait(&game->start);
    if (game->over) return;
    // One trip more, which may find the other still on its way from the barrier.
    await_turn(game, me);
    pass_turn(game, me);
    if (me == 0) await_turn(game, 0);
    const std::uint64_t begin = now_ns();
    for (int i = 0; i < game->trips; ++i) {
      await_turn(game, me);
      pass_turn(game, me);
    }
    if (me == 0) {
      await_turn(game, 0);
      const std::uint64_t taken = now_ns() - begin;
      if (tells(game) && taken < game->fastest_ns) game->fastest_ns = taken;
    }
  }
}

void* first_player(void* game) {
  play(static_cast<Game*>(game), 0);
  return nullptr;
}

void* second_player(void* game) {
  play(static_cast<Game*>(game), 1);
  return nullptr;
}

// Nanoseconds for one passing of the turn in the fastest batch, or 0 when it cannot be measured
// here.
double passing_ns(int cpu, int other_cpu, int trips, bool sleeps) {
  static Game game;
  game = Game{};
  game.cpus[0] = cpu;
  game.cpus[1] = other_cpu;
  game.trips = trips;
  game.sleeps = sleeps;
  pthread_barrier_init(&game.start, nullptr, 2);
  // A player alone would wait at the barrier for good, so it is joined by this thread then.
  pthread_t first;
  pthread_t second;
  if (pthread_create(&first, nullptr, first_player, &game) != 0) return 0;
  const bool both = pthread_create(&second, nullptr, second_player, &game) == 0;
  if (!both) second_player(&game);
  pthread_join(first, nullptr);
  if (both) pthread_join(second, nullptr);
  pthread_barrier_destroy(&game.start);
  if (!game.pinned || game.fastest_ns == UINT64_MAX) return 0;
  return static_cast<double>(game.fastest_ns) / (2.0 * trips);
}

// Nanoseconds for one call of `step`, in the fastest of several batches.
template <typename Step>
double step_ns(Step step) {
  constexpr int kSteps = 20'000;
  constexpr int kStepBatches = 30;
  std::uint64_t fastest = UINT64_MAX;
  for (int batch = 0; batch < kStepBatches; ++batch) {
    const std::uint64_t begin = now_ns();
    for (int i = 0; i < kSteps; ++i) step();
    const std::uint64_t taken = now_ns() - begin;
    if (taken < fastest) fastest = taken;
  }
  return static_cast<double>(fastest) / kSteps;
}

}  // namespace

Limits measure_limits() {
  Limits limits;
  limits.turns_per_ns = calibrate();
  alignas(128) static std::uint32_t word;
  limits.atomic_ns = step_ns([] { __atomic_exchange_n(&word, 1, __ATOMIC_ACQ_REL); });
  limits.clock_ns = step_ns([] { (void)now_ns(); });
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return limits;
  limits.cpus = CPU_COUNT(&allowed);
  int first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &allowed)) ++first;
  int second = first + 1;
  while (second < CPU_SETSIZE && !CPU_ISSET(second, &allowed)) ++second;
  limits.context_switch_ns = passing_ns(first, first, kFutexTrips, true);
  if (second == CPU_SETSIZE) return limits;
  limits.bounce_ns = passing_ns(first, second, kLineTrips, false);
  limits.futex_wake_ns = passing_ns(first, second, kFutexTrips, true);
  return limits;
}

void report_limits(const Limits& limits, bool json) {
  if (json) {
    printf("{\"cpus\":%d,\"turns_per_ns\":%.6f,\"atomic_ns\":%.2f,\"bounce_ns\":%.2f,", limits.cpus,
           limits.turns_per_ns, limits.atomic_ns, limits.bounce_ns);
    printf("\"futex_wake_ns\":%.1f,\"context_switch_ns\":%.1f,\"clock_ns\":%.2f}\n",
           limits.futex_wake_ns, limits.context_switch_ns, limits.clock_ns);
    return;
  }
  printf("CPUs                     %d\n", limits.cpus);
  printf("atomic exchange          %.1f ns on a line that this CPU owns\n", limits.atomic_ns);
  printf("line bounce              %.1f ns from one CPU to another\n", limits.bounce_ns);
  printf("futex wake to run        %.1f us on another CPU\n", limits.futex_wake_ns / 1000);
  printf("hand-over on one CPU     %.1f us, wake and context switch\n",
         limits.context_switch_ns / 1000);
  printf("clock reading            %.1f ns\n", limits.clock_ns);
}

}  // namespace lockbench
