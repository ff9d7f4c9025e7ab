// C++ exceptions and thread cancellation pass through frames that hold locks; destructors release
// them on the way, while other threads contend for the same locks.
// conformance: any-lock
#include "check.h"

#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 6;
constexpr int kTimes = 400;

std::mutex mutex;
std::recursive_mutex recursive;
std::timed_mutex timed;
std::condition_variable cond;
std::condition_variable_any any;
int unwound = 0;  // under the mutex
int waiting = 0;  // under the mutex

struct Counted {
  ~Counted() { ++unwound; }
};

[[gnu::noinline]] void dig(int depth) {
  std::lock_guard<std::recursive_mutex> lock(recursive);
  if (depth == 0) throw std::runtime_error("at the bottom");
  dig(depth - 1);
}

void throw_under_locks() {
  std::vector<std::thread> threads;
  int caught = 0;
  long sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kTimes; ++n) {
        try {
          std::scoped_lock lock(mutex, timed);
          Counted counted;
          ++sum;
          if (n % 2 == 0) throw n;
          dig(20);
        } catch (int) {
          std::lock_guard<std::mutex> lock(mutex);
          ++caught;
        } catch (const std::exception& error) {
          std::lock_guard<std::mutex> lock(mutex);
          caught += std::string(error.what()) == "at the bottom";
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ("caught", caught, kThreads * kTimes);
  CHECK_EQ("unwound", unwound, kThreads * kTimes);
  CHECK_EQ("sum", sum, kThreads * kTimes);
  CHECK_TRUE("all locks are free", mutex.try_lock() && timed.try_lock() && recursive.try_lock());
  mutex.unlock();
  timed.unlock();
  recursive.unlock();
}

void predicate_throws() {
  int caught = 0;
  std::unique_lock<std::mutex> lock(mutex);
  for (int i = 0; i < 20; ++i) {
    int calls = 0;
    std::thread waker([] {
      std::lock_guard<std::mutex> inner(mutex);
      cond.notify_all();
    });
    try {
      cond.wait_for(lock, std::chrono::hours(1), [&]() -> bool {
        if (++calls == 2) throw std::logic_error("predicate");
        return false;
      });
    } catch (const std::logic_error&) {
      caught += lock.owns_lock();
    }
    lock.unlock();
    waker.join();
    lock.lock();
  }
  CHECK_EQ("thrown by predicates with the lock held", caught, 20);
}

template <typename Wait>
void cancel_in(const char* name, Wait wait) {
  struct Start {
    Wait* wait;
  } start{&wait};
  unwound = 0;
  waiting = 0;
  pthread_t thread;
  auto body = [](void* argument) -> void* {
    auto* self = static_cast<Start*>(argument);
    std::unique_lock<std::mutex> lock(mutex);
    Counted counted;
    try {
      Counted inner;
      waiting = 1;
      for (;;) (*self->wait)(lock);
    } catch (...) {
      unwound += lock.owns_lock() ? 100 : 1000;
      throw;  // a cancellation must not stop here
    }
    return nullptr;
  };
  MUST(pthread_create(&thread, nullptr, body, &start) == 0);
  for (bool there = false; !there; std::this_thread::yield()) {
    std::lock_guard<std::mutex> lock(mutex);
    there = waiting != 0;
  }
  void* result = nullptr;
  pthread_cancel(thread);
  pthread_join(thread, &result);
  CHECK_TRUE(name, result == PTHREAD_CANCELED);
  CHECK_EQ("destructors and catch block, lock held", unwound, 102);
  CHECK_TRUE("free afterwards", mutex.try_lock());
  mutex.unlock();
}

void once_and_futures() {
  std::once_flag flag;
  int attempts = 0;
  for (int i = 0; i < 3; ++i) {
    try {
      std::call_once(flag, [&] {
        if (++attempts < 3) throw attempts;
      });
    } catch (int) {
    }
  }
  CHECK_EQ("call_once after exceptions", attempts, 3);
  int arrived = 0;
  for (int i = 0; i < 50; ++i) {
    auto future = std::async(std::launch::async, [i]() -> int {
      std::lock_guard<std::mutex> lock(mutex);
      if (i % 2 == 0) throw std::out_of_range("even");
      return i;
    });
    try {
      arrived += future.get() == i;
    } catch (const std::out_of_range&) {
      ++arrived;
    }
  }
  CHECK_EQ("results and exceptions through futures", arrived, 50);
}

}  // namespace

int main() {
  throw_under_locks();
  predicate_throws();
  cancel_in("cancelled in pthread_cond_wait", [](std::unique_lock<std::mutex>& lock) {
    pthread_cond_wait(cond.native_handle(), lock.mutex()->native_handle());
  });
  cancel_in("cancelled in pthread_cond_clockwait", [](std::unique_lock<std::mutex>& lock) {
    timespec far = deadline_ms(CLOCK_MONOTONIC, 600000);
    pthread_cond_clockwait(cond.native_handle(), lock.mutex()->native_handle(), CLOCK_MONOTONIC,
                           &far);
  });
  cancel_in("cancelled in pthread_cond_timedwait", [](std::unique_lock<std::mutex>& lock) {
    timespec far = deadline_ms(CLOCK_REALTIME, 600000);
    pthread_cond_timedwait(cond.native_handle(), lock.mutex()->native_handle(), &far);
  });
  cancel_in("cancelled in sleep", [](std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    struct Relock {
      std::unique_lock<std::mutex>& lock;
      ~Relock() { lock.lock(); }
    } relock{lock};
    sleep(100);
  });
  once_and_futures();
  return done();
}
