// Many more threads than CPUs hammer one mutex: each of them gets in, and all come to their end.
#include "check.h"

enum { kThreads = 24, kRunMs = 400 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static long counter;
static long served[kThreads];

static void* hammer(void* mine) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&mutex);
    ++counter;
    ++*(long*)mine;
    for (int i = 0; i < 200; ++i) __asm__ volatile("" : : : "memory");
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static int all_served(void) {
  int served_ones = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kThreads; ++i) served_ones += served[i] > 0;
  pthread_mutex_unlock(&mutex);
  return served_ones == kThreads;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MUST(pthread_create(&threads[i], NULL, hammer, &served[i]) == 0);
  }
  sleep_ms(kRunMs);
  // A loaded machine may keep a thread from running at all: such a run gets more time, not a pass.
  int everyone = all_served();
  for (int i = 0; i < 50 && !everyone; ++i) {
    sleep_ms(100);
    everyone = all_served();
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  long sum = 0;
  for (int i = 0; i < kThreads; ++i) sum += served[i];
  CHECK_TRUE("every thread got in", everyone);
  CHECK_EQ("no update was lost", counter - sum, 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
  return done();
}
