// The condition variables and timed locks of the C++ library, which reach pthread_cond_clockwait,
// pthread_mutex_clocklock and their relatives through inline functions.
#include "check.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using System = std::chrono::system_clock;

namespace {

constexpr int kTurns = 1500;
constexpr int kThreads = 6;

void timeouts() {
  std::mutex mutex;
  std::condition_variable cond;
  std::unique_lock<std::mutex> lock(mutex);
  auto start = Steady::now();
  CHECK_TRUE("wait_for", cond.wait_for(lock, 10ms) == std::cv_status::timeout);
  CHECK_TRUE("wait_for: not early", Steady::now() - start >= 10ms);
  start = Steady::now();
  CHECK_TRUE("wait_until steady",
             cond.wait_until(lock, Steady::now() + 10ms) == std::cv_status::timeout);
  CHECK_TRUE("wait_until steady: not early", Steady::now() - start >= 9ms);
  CHECK_TRUE("wait_until system",
             cond.wait_until(lock, System::now() + 10ms) == std::cv_status::timeout);
  CHECK_TRUE("in the past", cond.wait_until(lock, System::now() - 1h) == std::cv_status::timeout);
  CHECK_TRUE("negative span", cond.wait_for(lock, -5s) == std::cv_status::timeout);
  CHECK_TRUE("predicate stays false", !cond.wait_for(lock, 1ms, [] { return false; }));
  CHECK_TRUE("predicate is true", cond.wait_for(lock, 1h, [] { return true; }));
  CHECK_TRUE("lock is held", lock.owns_lock());
  std::thread([&] { CHECK_TRUE("others see it held", !mutex.try_lock()); }).join();
}

template <typename Cond, typename Mutex>
void ping_pong(const char* name) {
  Mutex mutex;
  Cond cond;
  int turn = 0;
  auto play = [&](int me) {
    for (int i = 0; i < kTurns; ++i) {
      std::unique_lock<Mutex> lock(mutex);
      auto my_turn = [&] { return turn % 2 == me; };
      if (i % 3 == 0) {
        cond.wait(lock, my_turn);
      } else if (i % 3 == 1) {
        cond.wait_for(lock, 1h, my_turn);
      } else {
        cond.wait_until(lock, System::now() + 1h, my_turn);
      }
      ++turn;
      cond.notify_one();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  CHECK_EQ(name, turn, 2 * kTurns);
}

void notify_all() {
  std::mutex mutex;
  std::condition_variable_any any;
  std::condition_variable cond;
  int generation = 0;
  int came = 0;
  int released = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::unique_lock<std::mutex> lock(mutex);
      for (int round = 1; round <= 50; ++round) {
        if (++came == kThreads) cond.notify_all();
        if (i % 2 == 0) {
          any.wait(lock, [&] { return generation >= round; });
        } else {
          any.wait_for(lock, 1h, [&] { return generation >= round; });
        }
        ++released;
      }
    });
  }
  for (int round = 1; round <= 50; ++round) {
    std::unique_lock<std::mutex> lock(mutex);
    cond.wait(lock, [&] { return came == kThreads; });
    came = 0;
    ++generation;
    any.notify_all();
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ("notify_all", released, 50 * kThreads);
}

template <typename Mutex>
void timed_mutex(const char* name) {
  printf("%s\n", name);
  Mutex mutex;
  mutex.lock();
  std::thread([&] {
    auto start = Steady::now();
    CHECK_TRUE("try_lock", !mutex.try_lock());
    CHECK_TRUE("try_lock_for", !mutex.try_lock_for(5ms));
    CHECK_TRUE("try_lock_until steady", !mutex.try_lock_until(Steady::now() + 5ms));
    CHECK_TRUE("not early", Steady::now() - start >= 9ms);
    CHECK_TRUE("try_lock_until system", !mutex.try_lock_until(System::now() + 5ms));
    CHECK_TRUE("in the past", !mutex.try_lock_until(System::now() - 1h));
  }).join();
  mutex.unlock();
  CHECK_TRUE("free: try_lock_for", mutex.try_lock_for(1h));
  mutex.unlock();
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        while (!mutex.try_lock_for(1h)) {
        }
        ++count;
        mutex.unlock();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ("count", count, 500 * kThreads);
}

void shared_mutexes() {
  std::shared_timed_mutex mutex;
  std::shared_mutex plain;
  int value = 0;
  std::atomic<int> torn{0};
  int other = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 300; ++n) {
        if (i % 3 == 0) {
          std::unique_lock<std::shared_timed_mutex> lock(mutex, 1h);
          std::unique_lock<std::shared_mutex> second(plain);
          ++value;
          ++other;
        } else {
          std::shared_lock<std::shared_timed_mutex> lock(mutex, Steady::now() + 1h);
          std::shared_lock<std::shared_mutex> second(plain);
          torn += value != other;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ("shared mutexes: writes", value, 300 * kThreads / 3);
  CHECK_EQ("shared mutexes: torn reads", torn.load(), 0);
  mutex.lock();
  std::thread([&] {
    CHECK_TRUE("shared: try_lock_shared_for", !mutex.try_lock_shared_for(3ms));
    CHECK_TRUE("shared: try_lock_until", !mutex.try_lock_until(System::now() + 3ms));
  }).join();
  mutex.unlock();
  plain.lock_shared();
  CHECK_TRUE("shared: twice", plain.try_lock_shared());
  plain.unlock_shared();
  std::thread([&] { CHECK_TRUE("shared: no writer", !plain.try_lock()); }).join();
  plain.unlock_shared();
}

void all_at_once() {
  std::mutex first;
  std::recursive_mutex second;
  std::timed_mutex third;
  std::once_flag once;
  int count = 0;
  int initialised = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::call_once(once, [&] { ++initialised; });
      for (int n = 0; n < 300; ++n) {
        if (i % 2 == 0) {
          std::scoped_lock lock(first, second, third);
          std::lock_guard<std::recursive_mutex> again(second);
          ++count;
        } else {
          std::scoped_lock lock(third, second, first);
          ++count;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ("std::scoped_lock over three", count, 300 * kThreads);
  CHECK_EQ("std::call_once", initialised, 1);
}

void at_thread_exit() {
  std::mutex mutex;
  std::condition_variable cond;
  bool finished = false;
  std::thread thread([&] {
    std::unique_lock<std::mutex> lock(mutex);
    finished = true;
    std::notify_all_at_thread_exit(cond, std::move(lock));
  });
  {
    std::unique_lock<std::mutex> lock(mutex);
    cond.wait(lock, [&] { return finished; });
  }
  thread.join();
  CHECK_TRUE("notified at thread exit", finished);
}

}  // namespace

int main() {
  timeouts();
  ping_pong<std::condition_variable, std::mutex>("std::condition_variable");
  ping_pong<std::condition_variable_any, std::mutex>("condition_variable_any, mutex");
  ping_pong<std::condition_variable_any, std::timed_mutex>("condition_variable_any, timed_mutex");
  ping_pong<std::condition_variable_any, std::shared_mutex>("condition_variable_any, shared_mutex");
  notify_all();
  timed_mutex<std::timed_mutex>("std::timed_mutex");
  timed_mutex<std::recursive_timed_mutex>("std::recursive_timed_mutex");
  shared_mutexes();
  all_at_once();
  at_thread_exit();
  return done();
}
