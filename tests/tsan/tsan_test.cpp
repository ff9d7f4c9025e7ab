// The lock templates with the production platform and real threads, under ThreadSanitizer: what the
// explorer cannot see is whether each release and acquire is strong enough, and the plain data in
// the critical sections here shows it.
// A failure order stronger than the success order is what the platform means (and C++ allows).
#pragma GCC diagnostic ignored "-Winvalid-memory-model"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "locks/linux_platform.h"
#include "tests/support/lock_drivers.h"

// A race fails the case in which it is seen, not only the whole run.
static std::size_t g_reports;
extern "C" void __tsan_on_report(void*) { ++g_reports; }

namespace relock {
namespace {

using P = LinuxPlatform;

Budget g_budget;

struct Host {
  static const Budget& budget() { return g_budget; }
  static std::uint32_t thread_id() { return P::slot_hint() | 1u; }
};
template <template <class, class> class Algorithm>
using TestMutex = testing::MutexDriver<P, Algorithm, Host>;
template <template <class, class> class Algorithm>
using TestSpin = testing::SpinDriver<P, Algorithm, Host>;

int g_failed;

void report(const std::string& name, bool counted, std::size_t reports_before) {
  const bool clean = g_reports == reports_before;
  if (counted && clean) {
    std::printf("ok %s\n", name.c_str());
    return;
  }
  ++g_failed;
  std::printf("not ok %s - %s\n", name.c_str(), clean ? "visits were lost" : "a data race");
}

int rounds() {
  const char* slow = std::getenv("SLOW");
  return slow != nullptr && *slow != '\0' ? 5000 : 300;
}

// Everybody counts in plain variables; some only try, some give up after a while.
template <class Lock>
void exclude(const std::string& name, int threads) {
  const std::size_t reports_before = g_reports;
  Lock lock;
  lock.init();
  long shared = 0;
  std::vector<long> own(static_cast<std::size_t>(threads), 0);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (int round = 0; round < rounds(); ++round) {
        const Deadline deadline = P::after_ns(2'000'000);
        const bool timed = Lock::kTimed && i % 4 == 2;
        const bool got =
            i % 4 == 3 ? lock.try_lock() : lock.lock_until(timed ? &deadline : nullptr);
        if (!got) continue;
        ++shared;
        ++own[static_cast<std::size_t>(i)];
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  long sum = 0;
  for (const long each : own) sum += each;
  report(name + "/" + std::to_string(threads) + " threads", sum == shared && sum > 0,
         reports_before);
}

template <template <class, class> class Algorithm>
void exclude_all(const char* lock) {
  const std::string name = lock;
  const char* const modes[] = {"spin", "park", "adaptive"};
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    const std::string suffix = std::string("/") + modes[static_cast<int>(mode)];
    for (const std::uint32_t admitted : {1u, 4u}) {
      g_budget = Budget{};
      g_budget.mode = mode;
      g_budget.admitted_limit = admitted;
      g_budget.local_hand_offs = 3;
      const std::string gate = ", " + std::to_string(admitted) + " admitted";
      exclude<TestMutex<Algorithm>>(name + " mutex" + suffix + gate, admitted == 1 ? 2 : 4);
      exclude<TestMutex<Algorithm>>(name + " mutex" + suffix + gate, 8);
    }
    if (mode == WaitMode::kPark) continue;  // spinlocks do not park
    exclude<TestSpin<Algorithm>>(name + " spinlock" + suffix, 2);
    exclude<TestSpin<Algorithm>>(name + " spinlock" + suffix, 8);
  }
}

// ---- condition variable ----

class TestCond {
 public:
  using Cond = testing::CondDriver<P>;
  using Mutex = TestMutex<Tas>;

  void wait(Mutex& mutex, const Deadline* deadline) {
    Cond::Node node;
    node.mutex = &mutex;
    Cond::enlist(view(), node);
    mutex.unlock();
    bool signalled = node.parker.wait(deadline);
    if (!signalled && !Cond::leave(view(), node)) signalled = node.parker.wait(nullptr);
    if (signalled) Cond::confirm(view(), node);
    (void)mutex.lock_until(nullptr);
    Cond::pass_on(node);
  }
  void signal() { Cond::signal(view()); }
  void broadcast() { Cond::broadcast(view()); }
  void destroy() {
    WaitContext<P> context{&g_budget};
    Cond::destroy(view(), context);
  }

 private:
  testing::CondCellsView<P> view() { return testing::CondCellsView<P>(cells_); }

  testing::CondCells<P> cells_{};
};

// A token goes round: each thread waits for its turn, some with short limits.
void ping_pong(int threads, bool broadcast) {
  const std::size_t reports_before = g_reports;
  g_budget = Budget{};
  TestCond::Mutex mutex;
  auto* cond = new TestCond;
  long turn = 0;
  const long turns = static_cast<long>(rounds()) * threads;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      (void)mutex.lock_until(nullptr);
      while (turn < turns) {
        if (turn % threads == i) {
          ++turn;
          broadcast || threads > 2 ? cond->broadcast() : cond->signal();
        } else {
          const Deadline soon = P::after_ns(300'000);
          cond->wait(mutex, i % 2 == 1 ? &soon : nullptr);
        }
      }
      cond->broadcast();
      mutex.unlock();
    });
  }
  for (std::thread& thread : running) thread.join();
  cond->destroy();
  delete cond;
  report("condvar/" + std::string(broadcast ? "broadcast" : "signal") + "/" +
             std::to_string(threads) + " threads",
         turn == turns, reports_before);
}

// These stand for others (locks/lock_list.def).
template <class Platform, class Layout>
struct Glibc;
template <>
void exclude_all<Glibc>(const char*) {}
template <class Platform, class Layout>
struct Auto;
template <>
void exclude_all<Auto>(const char*) {}

void run() {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) exclude_all<ident>(name);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
  ping_pong(2, false);
  ping_pong(3, true);
  ping_pong(8, true);
}

}  // namespace
}  // namespace relock

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  relock::run();
  return relock::g_failed == 0 ? 0 : 1;
}
