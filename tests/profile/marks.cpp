// How a sampled waiter and its releaser find each other:
//   marks PLUGIN
// A second thread plays the owner: it takes the ticket out of the mark as soon as it is there, and
// reports its release. Prints how many waits were drawn and marked, and of how many the ticket was
// taken while the waiter's stack was not yet.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "test_host.h"

namespace {

constexpr int kRounds = 200;
constexpr int kMostRounds = 100000;  // while somebody else has the second CPU, nothing is early
constexpr std::uint32_t kTicket = RELOCK_MARK_KNOWN - 1;

RelockProfiler recorder;
int lock;
std::uint32_t mark;
std::atomic<int> taken{0};     // rounds whose ticket the owner has taken
std::atomic<int> returned{0};  // rounds whose waiter has come back from the recorder
std::atomic<int> early{0};     // of those since the count began, taken before the waiter was back
std::atomic<bool> enough{false};

[[gnu::noinline]] void own() {
  for (int round = 0;; ++round) {
    std::uint32_t seen;
    while (((seen = __atomic_load_n(&mark, __ATOMIC_ACQUIRE)) & kTicket) == 0) {
      if (enough.load()) return;
    }
    __atomic_fetch_and(&mark, RELOCK_MARK_KNOWN, __ATOMIC_RELAXED);
    if (returned.load() == round) ++early;
    recorder.released(seen & kTicket);
    taken.store(round + 1);
  }
}

RelockWait begin(RelockWaitBegin* asked) {
  *asked = {&lock, &mark, RELOCK_KIND_MUTEX, false, 0, 0};
  return recorder.wait_begin(asked);
}
void end(const RelockWait& wait, const RelockWaitBegin& asked, bool unreleased) {
  RelockWaitEnd ended{};
  ended.object = &lock;
  ended.wait = wait;
  ended.wait_ns = 1000;
  ended.chance = asked.chance;
  ended.unreleased = unreleased ? 1 : 0;
  recorder.wait_end(&ended);
}

[[gnu::noinline]] bool wait_deeply(int depth, int round) {
  if (depth > 0) {
    const bool marked = wait_deeply(depth - 1, round);
    __asm__ volatile("");
    return marked;
  }
  RelockWaitBegin asked;
  const RelockWait wait = begin(&asked);
  returned.store(round + 1);
  while (wait.marked != 0 && taken.load() == round) {
  }
  end(wait, asked, wait.marked == 0);
  return wait.marked != 0;
}

// The mark is another waiter's: it is left alone, and can be had before the sleep once it is free.
void second_waiter() {
  RelockWaitBegin asked;
  const RelockWait first = begin(&asked);
  RelockWait second = begin(&asked);
  const bool left_alone =
      second.ticket != 0 && second.marked == 0 && (mark & kTicket) == first.ticket;
  mark &= RELOCK_MARK_KNOWN;
  recorder.wait_sleeps(&second, &mark, &asked.chance);
  const bool had_later = second.marked != 0 && (mark & kTicket) == second.ticket;
  std::printf("second waiter: mark left alone %d, had before the sleep %d\n", left_alone,
              had_later);
  recorder.released(first.ticket);
  recorder.released(second.ticket);
  end(first, asked, false);
  end(second, asked, false);
}

}  // namespace

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return 2;
  auto* entry =
      reinterpret_cast<decltype(&relock_profiler_entry)>(dlsym(library, "relock_profiler_entry"));
  RelockHost host = test_host();
  host.profile_dir = std::getenv("DIR");
  host.samples_per_s = 1000000;  // every wait is drawn
  if (entry(&host, &recorder) != 0) return 1;
  std::thread owner(own);
  int marked = 0, rounds = 0;
  bool before = false;  // in some kRounds a tenth was: the two threads ran at the same time
  while (rounds < kRounds || (!before && rounds < kMostRounds)) {
    early.store(0);
    for (int i = 0; i < kRounds; ++i) marked += wait_deeply(40, rounds++) ? 1 : 0;
    before = before || early.load() > kRounds / 10;
  }
  enough.store(true);
  owner.join();
  std::printf("marked %s\n", marked == rounds ? "all" : "not all");
  std::printf("taken before the stack: %s\n", before ? "yes" : "no");
  second_waiter();
  recorder.finish(false);
}
