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

#include "locks/auto_ticket.h"
#include "locks/budget.h"
#include "locks/condvar.h"
#include "locks/gate.h"
#include "locks/linux_platform.h"
#include "locks/qspin_cna.h"
#include "locks/qspin_native.h"
#include "locks/qspin_pv.h"
#include "locks/spin.h"
#include "locks/tas.h"
#include "locks/ticket.h"

// A race fails the case in which it is seen, not only the whole run.
static std::size_t g_reports;
extern "C" void __tsan_on_report(void*) { ++g_reports; }

namespace relock {
namespace {

using P = LinuxPlatform;

Budget g_budget;

struct MutexCells {
  P::Atomic32 word, gate, epoch, tuning, owner;
};

class CellsView {
 public:
  explicit CellsView(MutexCells& cells) : cells_(&cells) {}
  P::Atomic32& word() const { return cells_->word; }
  P::Atomic32& gate() const { return cells_->gate; }
  P::Atomic32& epoch() const { return cells_->epoch; }
  P::Atomic32& tuning() const { return cells_->tuning; }
  P::Atomic32& owner() const { return cells_->owner; }

 private:
  MutexCells* cells_;
};

template <template <class, class> class Algorithm>
class TestMutex {
 public:
  using Gated = GatedMutex<P, Algorithm, CellsView>;
  static constexpr bool kTimed = true;

  bool lock_until(const Deadline* deadline) {
    std::uint32_t expected = MutexLayout::kFree;
    if (!cells_.word.compare_exchange(expected, MutexLayout::kLocked, MemoryOrder::kAcquire)) {
      WaitContext<P> context{&g_budget};
      context.deadline = deadline;
      if (Gated::lock_slow(CellsView(cells_), context) == Acquire::kTimedOut) return false;
    }
    cells_.owner.store(1, MemoryOrder::kRelaxed);
    return true;
  }
  bool try_lock() {
    if (!Gated::try_lock(CellsView(cells_))) return false;
    cells_.owner.store(1, MemoryOrder::kRelaxed);
    return true;
  }
  void unlock() {
    cells_.owner.store(0, MemoryOrder::kRelaxed);
    std::uint32_t expected = MutexLayout::kLocked;
    if (!cells_.word.compare_exchange(expected, MutexLayout::kFree, MemoryOrder::kRelease)) {
      Gated::unlock_slow(CellsView(cells_), g_budget);
    }
  }

 private:
  MutexCells cells_{};
};

template <template <class, class> class Algorithm>
class TestSpin {
 public:
  using Spin = SpinLock<P, Algorithm>;
  static constexpr bool kTimed = false;

  TestSpin() { word_.store(SpinLayout::kFree, MemoryOrder::kRelaxed); }
  bool lock_until(const Deadline*) {
    std::uint32_t expected = SpinLayout::kFree;
    const std::uint32_t locked = SpinLayout::kFree | SpinLayout::kLocked;
    if (!word_.compare_exchange(expected, locked, MemoryOrder::kAcquire)) {
      WaitContext<P> context{&g_budget};
      Spin::lock_slow(word_, context);
    }
    return true;
  }
  bool try_lock() { return Spin::try_lock(word_); }
  void unlock() {
    if (Algorithm<P, SpinLayout>::kPlainRelease) {
      word_.store_low_byte(0, MemoryOrder::kRelease);
    } else {
      Spin::unlock(word_);
    }
  }

 private:
  P::Atomic32 word_;
};

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

struct FutexParker {
  P::Atomic32 value;
  FutexParker() { value.store(0, MemoryOrder::kRelaxed); }
  void post() {
    const void* const address = &value;
    value.store(1, MemoryOrder::kRelease);
    P::futex_wake(address, 1, kAnyBit);
  }
  bool wait(const Deadline* deadline) {
    while (value.load(MemoryOrder::kAcquire) == 0) {
      const WaitResult result = P::futex_wait(value, 0, kAnyBit, deadline);
      if (result == WaitResult::kTimedOut) return value.load(MemoryOrder::kAcquire) != 0;
    }
    return true;
  }
};

struct CondCells {
  P::Atomic32 lock, list_epoch, unconfirmed;
  P::AtomicPtr<CondNode<P, FutexParker>> head, tail;
};

class CondView {
 public:
  explicit CondView(CondCells& cells) : cells_(&cells) {}
  P::Atomic32& lock() const { return cells_->lock; }
  P::Atomic32& list_epoch() const { return cells_->list_epoch; }
  P::Atomic32& unconfirmed() const { return cells_->unconfirmed; }
  auto& head() const { return cells_->head; }
  auto& tail() const { return cells_->tail; }

 private:
  CondCells* cells_;
};

class TestCond {
 public:
  using Cond = CondVar<P, FutexParker, CondView>;
  using Mutex = TestMutex<Tas>;

  void wait(Mutex& mutex, const Deadline* deadline) {
    Cond::Node node;
    node.mutex = &mutex;
    Cond::enlist(CondView(cells_), node);
    mutex.unlock();
    bool signalled = node.parker.wait(deadline);
    if (!signalled && !Cond::leave(CondView(cells_), node)) signalled = node.parker.wait(nullptr);
    if (signalled) Cond::confirm(CondView(cells_), node);
    (void)mutex.lock_until(nullptr);
    Cond::pass_on(node);
  }
  void signal() { Cond::signal(CondView(cells_)); }
  void broadcast() { Cond::broadcast(CondView(cells_)); }
  void destroy() {
    WaitContext<P> context{&g_budget};
    Cond::destroy(CondView(cells_), context);
  }

 private:
  CondCells cells_{};
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

// `Glibc` in the list is the C library's own lock.
template <class Platform, class Layout>
struct Glibc;
template <>
void exclude_all<Glibc>(const char*) {}

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
