// C++ objects with thread storage duration whose destructors lock, signal and wait, in threads that
// return, that are cancelled, and in the main thread; and static objects after them.
#include "check.h"

#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 8;
constexpr int kBatches = 25;

std::mutex mutex;
std::condition_variable cond;
int destroyed = 0;  // under the mutex
int main_thread_destroyed = 0;

struct Local {
  explicit Local(int weight) : weight_(weight) {}
  ~Local() {
    std::unique_lock<std::mutex> lock(mutex);
    destroyed += weight_;
    cond.notify_all();
    cond.wait_for(lock, std::chrono::microseconds(1), [] { return false; });
  }
  int weight() const { return weight_; }

 private:
  int weight_;
};

thread_local Local first(1);
thread_local Local second(1000);

struct MainLocal {
  bool used = false;
  ~MainLocal() {
    if (!used) return;
    std::lock_guard<std::mutex> lock(mutex);
    main_thread_destroyed = 1;
  }
};

thread_local MainLocal main_local;

// Destroyed after the main thread's objects.
struct AtExit {
  std::shared_mutex shared;
  std::recursive_mutex recursive;
  ~AtExit() {
    std::unique_lock<std::shared_mutex> lock(shared);
    std::lock_guard<std::recursive_mutex> again(recursive);
    std::thread([] { std::lock_guard<std::mutex> inner(mutex); }).join();
    std::lock_guard<std::mutex> last(mutex);
    CHECK_EQ("static destructor: main thread's object is gone", main_thread_destroyed, 1);
    if (done() != 0) _exit(1);
  }
};

AtExit at_exit;

int objects_exist = 0;

void* wait_for_ever(void*) {
  if (first.weight() + second.weight() != 0) set_flag(&objects_exist);
  for (;;) sleep(100);
}

}  // namespace

int main() {
  main_local.used = true;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([] {
        std::lock_guard<std::mutex> lock(mutex);
        destroyed += first.weight() - 1;
        destroyed += second.weight() - 1000;
      });
    }
    for (auto& thread : threads) thread.join();
  }
  CHECK_EQ("destroyed", destroyed, 1001 * kBatches * kThreads);
  pthread_t cancelled;
  MUST(pthread_create(&cancelled, nullptr, wait_for_ever, nullptr) == 0);
  await_flag(&objects_exist);
  pthread_cancel(cancelled);
  pthread_join(cancelled, nullptr);
  CHECK_EQ("and the cancelled thread's", destroyed, 1001 * (kBatches * kThreads + 1));
  return done();
}
