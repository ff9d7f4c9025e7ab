// The lock templates with the production platform and real threads, under ThreadSanitizer: what the
// explorer cannot see is whether each release and acquire is strong enough, and the plain data in
// the critical sections here shows it.
// A failure order stronger than the success order is what the platform means (and C++ allows).
#pragma GCC diagnostic ignored "-Winvalid-memory-model"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "locks/linux_platform.h"
#include "tests/support/lock_drivers.h"
#include "weakened_platform.h"

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

const char* const modes[] = {"spin", "park", "adaptive"};
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

// ---- can the sanitizer see a missing order at all? Each in a process of its own ----

template <class Lock>
void finds_missing_release(const std::string& name) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(2);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    g_budget = Budget{};
    g_budget.admitted_limit = 4;
    exclude<Lock>("planted", 4);
    _exit(g_reports != 0 ? 1 : 0);
  }
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  if (ended && WEXITSTATUS(status) == 1) {
    std::printf("ok planted: a missing release/%s\n", name.c_str());
    return;
  }
  ++g_failed;
  std::printf("not ok planted: a missing release/%s - no race is reported\n", name.c_str());
}

void find_planted() {
  using W = WeakenedPlatform;
  finds_missing_release<testing::MutexDriver<W, Tas, Host>>("tas mutex");
  finds_missing_release<testing::MutexDriver<W, Ticket, Host>>("ticket mutex");
  finds_missing_release<testing::MutexDriver<W, Qspinlock, Host>>("qspinlock mutex");
  finds_missing_release<testing::SpinDriver<W, Qspinlock, Host>>("qspinlock spinlock");
}

template <template <class, class> class Algorithm>
void exclude_all(const char* lock) {
  const std::string name = lock;
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
    Cond::enlist(view(), node);
    mutex.unlock();
    bool signalled = node.parker.wait(deadline);
    if (!signalled && !Cond::leave(view(), node)) signalled = node.parker.wait(nullptr);
    if (signalled) Cond::confirm(view(), node);
    (void)mutex.lock_until(nullptr);
  }
  // The same, but the end of time is a cancellation, and a signal that came with it goes on.
  void wait_or_be_cancelled(Mutex& mutex, const Deadline& deadline) {
    Cond::Node node;
    Cond::enlist(view(), node);
    mutex.unlock();
    if (node.parker.wait(&deadline)) {
      Cond::confirm(view(), node);
    } else if (!Cond::leave(view(), node)) {
      (void)node.parker.wait(nullptr);
      Cond::hand_back(view(), node);
    }
    (void)mutex.lock_until(nullptr);
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
          if (i % 4 == 3) {
            cond->wait_or_be_cancelled(mutex, soon);
          } else {
            cond->wait(mutex, i % 2 == 1 ? &soon : nullptr);
          }
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

// ---- readers-writer lock ----

class TestRw : public testing::RwDriver<P, Host> {
 public:
  explicit TestRw(RwPreference preference) { preference_ = preference; }
};

// Writers count in plain variables that readers compare; some only try, some give up.
void read_and_write(WaitMode mode, RwPreference preference, int threads) {
  const std::size_t reports_before = g_reports;
  g_budget = Budget{};
  g_budget.mode = mode;
  TestRw lock(preference);
  long first = 0, second = 0;
  std::vector<long> wrote(static_cast<std::size_t>(threads), 0);
  std::vector<long> torn(static_cast<std::size_t>(threads), 0);
  const auto one = [&](int i, int round) {
    const Deadline soon = P::after_ns(2'000'000);
    const Deadline* const limit = i % 4 == 2 ? &soon : nullptr;
    const bool tries = i % 4 == 3;
    const auto self = static_cast<std::size_t>(i);
    if ((i + round) % 3 == 0) {
      if (!(tries ? lock.try_write() : lock.write_until(limit))) return;
      ++first, ++second, ++wrote[self];
    } else {
      if (!(tries ? lock.try_read() : lock.read_until(limit))) return;
      torn[self] += first == second ? 0 : 1;
    }
    lock.unlock();
  };
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&one, i] {
      for (int round = 0; round < rounds(); ++round) one(i, round);
    });
  }
  for (std::thread& thread : running) thread.join();
  long sum = 0;
  for (const long each : wrote) sum += each;
  for (const long each : torn) sum += each;  // then it cannot be the same
  report(std::string("rwsem/") + testing::kind_in_name(preference, "", "/") +
             modes[static_cast<int>(mode)] + "/" + std::to_string(threads) + " threads",
         sum == first && first == second && sum > 0, reports_before);
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
  find_planted();
#define RELOCK_LOCK_ROW(ident, name, fair, idea) exclude_all<ident>(name);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    for (const RwPreference preference :
         {RwPreference::kReaders, RwPreference::kWriters, RwPreference::kWritersAlone}) {
      read_and_write(mode, preference, 4);
      read_and_write(mode, preference, 8);
    }
  }
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
