// Threads that hold a mutex for long and want it back at once: each still gets its share.
// conformance: skip=glibc-* the C library's own lock goes to whoever is there
// conformance: skip=*-spin without sleepers nobody knows who has waited for long
#include "check.h"

#include <stdint.h>

enum { kThreads = 3, kHoldMs = 8, kRunMs = 1500, kLeastPercent = 40 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static long served[kThreads];

static void* holder(void* mine) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&mutex);
    ++*(long*)mine;
    sleep_ms(kHoldMs);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MUST(pthread_create(&threads[i], NULL, holder, &served[i]) == 0);
  }
  sleep_ms(kRunMs);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  long sum = 0, least = served[0];
  for (int i = 0; i < kThreads; ++i) {
    sum += served[i];
    if (served[i] < least) least = served[i];
  }
  const int percent = (int)(least * kThreads * 100 / sum);
  if (percent < kLeastPercent && getenv("LD_PRELOAD") != NULL) {
    fprintf(stderr, "least served: %ld of %ld\n", least, sum);
  }
  CHECK_PROMISE("everybody gets a share", percent >= kLeastPercent);
  return done();
}
