// A library with locks in its own data, to be opened, used and closed again and again: the next
// time, its memory may stand at the same address with everything as it was at first.
#include <pthread.h>
#include <stdint.h>

enum { kThreads = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long count;  // under the mutex, like turn
static int turn;
static int times;

static void* work(void* argument) {
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < times; ++i) {
    pthread_mutex_lock(&mutex);
    while (i % 8 == 0 && turn % kThreads != me) pthread_cond_wait(&cond, &mutex);
    if (i % 8 == 0) {
      ++turn;
      pthread_cond_broadcast(&cond);
    }
    pthread_mutex_lock(&recursive);
    pthread_rwlock_wrlock(&rwlock);
    ++count;
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

// Leaves the last lock locked when asked to: the library is closed with it held.
long lib_static_use(int rounds, int leave_locked) {
  pthread_t threads[kThreads];
  times = rounds;
  for (intptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  if (leave_locked) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&recursive);
  }
  return count;
}
