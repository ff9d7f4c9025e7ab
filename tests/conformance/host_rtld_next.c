// A program that defines pthread_mutex_lock itself, counts, and passes on to the next definition,
// as tracing tools do. Its unlock stays the original. The library's own functions do not go through
// the program's definition: waiting on a condition variable takes the mutex again without it.
// conformance: any-lock
#include "check.h"

#include <dlfcn.h>
#include <stdint.h>

enum { kThreads = 4, kTimes = 2000 };

static int (*next_lock)(pthread_mutex_t*);
static long lock_calls;  // atomic
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long count;  // under the mutex
static int turn;    // under the mutex

int pthread_mutex_lock(pthread_mutex_t* lock) {
  if (next_lock == NULL) *(void**)&next_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  __atomic_fetch_add(&lock_calls, 1, __ATOMIC_RELAXED);  // a mere count
  return next_lock(lock);
}

static void* add(void* unused) {
  (void)unused;
  for (int i = 0; i < kTimes; ++i) {
    if (i % 3 != 0 || pthread_mutex_trylock(&mutex) != 0) pthread_mutex_lock(&mutex);
    ++count;
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void* play(void* argument) {
  intptr_t me = (intptr_t)argument;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kTimes / 4; ++i) {
    while (turn % 2 != me) pthread_cond_wait(&cond, &mutex);
    ++turn;
    pthread_cond_signal(&cond);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, add, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("count", count, kThreads * kTimes);
  lock_calls = 0;
  pthread_create(&threads[0], NULL, play, (void*)1);
  play((void*)0);
  pthread_join(threads[0], NULL);
  CHECK_EQ("turns", turn, kTimes / 2);
  CHECK_TRUE("the program's own lock is not called for each", lock_calls >= 2 && lock_calls < turn);
  return done();
}
