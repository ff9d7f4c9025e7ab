// Lock functions that the program looks up with dlsym and calls through pointers, mixed with direct
// calls on the same objects.
// conformance: any-lock
#include "check.h"

#include <dlfcn.h>
#include <stdint.h>

enum { kThreads = 4, kTimes = 3000, kTurns = 1000 };

struct Calls {
  int (*lock)(pthread_mutex_t*);
  int (*trylock)(pthread_mutex_t*);
  int (*unlock)(pthread_mutex_t*);
  int (*timedlock)(pthread_mutex_t*, const struct timespec*);
  int (*wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  int (*signal)(pthread_cond_t*);
  int (*spin_lock)(pthread_spinlock_t*);
  int (*spin_unlock)(pthread_spinlock_t*);
};

static struct Calls calls;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static long count;       // under the mutex
static long spin_count;  // under the spinlock
static int turn;         // under the mutex

static int look_up(void* handle) {
  const struct {
    const char* name;
    void* place;
  } wanted[] = {
      {"pthread_mutex_lock", &calls.lock},        {"pthread_mutex_trylock", &calls.trylock},
      {"pthread_mutex_unlock", &calls.unlock},    {"pthread_mutex_timedlock", &calls.timedlock},
      {"pthread_cond_wait", &calls.wait},         {"pthread_cond_clockwait", &calls.clockwait},
      {"pthread_cond_signal", &calls.signal},     {"pthread_spin_lock", &calls.spin_lock},
      {"pthread_spin_unlock", &calls.spin_unlock}};
  int found = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    void* address = dlsym(handle, wanted[i].name);
    memcpy(wanted[i].place, &address, sizeof address);
    found += address != NULL;
  }
  return found;
}

static void* add(void* argument) {
  int me = (int)(intptr_t)argument;
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  for (int i = 0; i < kTimes; ++i) {
    switch ((i + me) % 4) {
      case 0:
        pthread_mutex_lock(&mutex);
        break;
      case 1:
        calls.lock(&mutex);
        break;
      case 2:
        calls.timedlock(&mutex, &far);
        break;
      default:
        if (calls.trylock(&mutex) != 0) calls.lock(&mutex);
    }
    ++count;
    (i % 2 ? calls.unlock : pthread_mutex_unlock)(&mutex);
    (i % 2 ? calls.spin_lock : pthread_spin_lock)(&spin);
    ++spin_count;
    (i % 3 ? calls.spin_unlock : pthread_spin_unlock)(&spin);
  }
  return NULL;
}

static void* play(void* argument) {
  int me = (int)(intptr_t)argument;
  struct timespec far = deadline_ms(CLOCK_MONOTONIC, 600000);
  for (int i = 0; i < kTurns; ++i) {
    calls.lock(&mutex);
    while (turn % 2 != me) {
      switch (i % 3) {
        case 0:
          calls.wait(&cond, &mutex);
          break;
        case 1:
          calls.clockwait(&cond, &mutex, CLOCK_MONOTONIC, &far);
          break;
        default:
          pthread_cond_wait(&cond, &mutex);
      }
    }
    ++turn;
    (i % 2 ? calls.signal : pthread_cond_signal)(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void use(const char* name) {
  pthread_t threads[kThreads];
  count = spin_count = turn = 0;
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, add, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ(name, count, kThreads * kTimes);
  CHECK_EQ("spin", spin_count, kThreads * kTimes);
  pthread_create(&threads[0], NULL, play, (void*)1);
  play((void*)0);
  pthread_join(threads[0], NULL);
  CHECK_EQ("turns", turn, 2 * kTurns);
}

int main(void) {
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  CHECK_EQ("found with RTLD_DEFAULT", look_up(RTLD_DEFAULT), 9);
  use("RTLD_DEFAULT");
  CHECK_EQ("found with RTLD_NEXT", look_up(RTLD_NEXT), 9);
  use("RTLD_NEXT");
  CHECK_EQ("found in the program itself", look_up(dlopen(NULL, RTLD_NOW)), 9);
  use("dlopen of the program");
  return done();
}
