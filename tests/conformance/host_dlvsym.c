// A program that asks dlvsym for a function by symbol version, and uses what it gets on the same
// objects as its direct calls.
// conformance: any-lock
#include "check.h"

#include <dlfcn.h>
#include <stdint.h>

enum { kThreads = 4, kTimes = 5000, kTurns = 1000 };

#ifdef __x86_64__
#define BASE_VERSION "GLIBC_2.2.5"
#define COND_VERSION "GLIBC_2.3.2"
#else
#define BASE_VERSION "GLIBC_2.17"
#define COND_VERSION "GLIBC_2.17"
#endif

static int (*lock)(pthread_mutex_t*);
static int (*unlock)(pthread_mutex_t*);
static int (*wait_for)(pthread_cond_t*, pthread_mutex_t*);
static int (*signal_one)(pthread_cond_t*);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long count;  // under the mutex, like turn
static int turn;

static int look_up(void) {
  *(void**)&lock = dlvsym(RTLD_DEFAULT, "pthread_mutex_lock", BASE_VERSION);
  *(void**)&unlock = dlvsym(RTLD_DEFAULT, "pthread_mutex_unlock", BASE_VERSION);
  *(void**)&wait_for = dlvsym(RTLD_DEFAULT, "pthread_cond_wait", COND_VERSION);
  *(void**)&signal_one = dlvsym(RTLD_DEFAULT, "pthread_cond_signal", COND_VERSION);
  return (lock != NULL) + (unlock != NULL) + (wait_for != NULL) + (signal_one != NULL);
}

static void* add(void* argument) {
  intptr_t me = (intptr_t)argument;
  for (int i = 0; i < kTimes; ++i) {
    ((i + me) % 2 ? lock : pthread_mutex_lock)(&mutex);
    ++count;
    (i % 3 ? unlock : pthread_mutex_unlock)(&mutex);
  }
  return NULL;
}

static void* play(void* argument) {
  intptr_t me = (intptr_t)argument;
  for (int i = 0; i < kTurns; ++i) {
    lock(&mutex);
    while (turn % 2 != me) (i % 2 ? wait_for : pthread_cond_wait)(&cond, &mutex);
    ++turn;
    ((i + me) % 2 ? signal_one : pthread_cond_signal)(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  CHECK_EQ("found", look_up(), 4);
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, add, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("count", count, kThreads * kTimes);
  pthread_create(&threads[0], NULL, play, (void*)1);
  play((void*)0);
  pthread_join(threads[0], NULL);
  CHECK_EQ("turns", turn, 2 * kTurns);
  return done();
}
