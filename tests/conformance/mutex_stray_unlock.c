// Threads that do not own a normal mutex unlock it now and then while others queue for it. What it
// guards is then anybody's guess, but nobody may be left waiting, and the mutex is free in the end.
#include "check.h"

enum { kThreads = 6, kRounds = 3000, kStrays = 400 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int at_work;

static void* lock_and_unlock(void* unused) {
  (void)unused;
  __atomic_fetch_add(&at_work, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&mutex);
    for (int k = 0; k < 30; ++k) __asm__ volatile("" : : : "memory");
    pthread_mutex_unlock(&mutex);
  }
  __atomic_fetch_sub(&at_work, 1, __ATOMIC_RELAXED);
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    MUST(pthread_create(&threads[i], NULL, lock_and_unlock, NULL) == 0);
  }
  int refused = 0;
  for (int i = 0; i < kStrays; ++i) {
    refused += pthread_mutex_unlock(&mutex) != 0;
    struct timespec pause_time = {0, 20000};
    nanosleep(&pause_time, NULL);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("unlocks that were refused", refused, 0);
  CHECK_CALL("free in the end", pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL("locked then", pthread_mutex_trylock(&mutex), EBUSY);
  return done();
}
