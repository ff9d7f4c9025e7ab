// A C++ library for a C program to open: it throws and catches, alone and in threads, with locks.
#include <pthread.h>

#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

std::mutex mutex;
std::recursive_mutex recursive;

[[gnu::noinline]] void dig(int depth) {
  std::lock_guard<std::recursive_mutex> lock(recursive);
  if (depth == 0) throw std::runtime_error("at the bottom");
  dig(depth - 1);
}

}  // namespace

extern "C" int lib_throw_catch(int depth) {
  try {
    dig(depth);
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}

extern "C" int lib_throw_in_threads(int threads, int times) {
  int caught = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int n = 0; n < times; ++n) {
        try {
          std::lock_guard<std::mutex> lock(mutex);
          if (n % 2 == 0) throw n;
          throw std::runtime_error("odd");
        } catch (int) {
          std::lock_guard<std::mutex> lock(mutex);
          ++caught;
        } catch (const std::exception&) {
          std::lock_guard<std::mutex> lock(mutex);
          ++caught;
        }
      }
    });
  }
  for (auto& worker : workers) worker.join();
  return caught;
}

// Waits until it is cancelled; counts the destructor that runs then.
extern "C" void lib_throw_wait(pthread_mutex_t* outer, pthread_cond_t* cond, int* waiting,
                               int* unwound) {
  struct Leave {
    pthread_mutex_t* outer;
    int* unwound;
    ~Leave() {
      ++*unwound;
      pthread_mutex_unlock(outer);
    }
  };
  pthread_mutex_lock(outer);
  Leave leave{outer, unwound};
  *waiting = 1;
  for (;;) pthread_cond_wait(cond, outer);
}
