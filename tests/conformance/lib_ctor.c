// A library whose constructor already locks, waits on a condition variable and runs threads that
// contend; and whose destructor does so again. Linked, opened and preloaded by host_* programs.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kThreads = 3, kTimes = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static long count;
static int finished;  // under the mutex

static void* add(void* unused) {
  (void)unused;
  for (int i = 0; i < kTimes; ++i) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_spin_lock(&spin);
    ++count;
    pthread_spin_unlock(&spin);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  ++finished;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

// Adds kThreads * kTimes, and gives back the whole count.
long lib_ctor_work(void) {
  pthread_t threads[kThreads];
  finished = 0;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, add, NULL) != 0) abort();
  }
  pthread_mutex_lock(&mutex);
  while (finished < kThreads) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return count;
}

__attribute__((constructor)) static void construct(void) {
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  if (lib_ctor_work() != kThreads * kTimes) abort();
}

__attribute__((destructor)) static void destruct(void) {
  long before = count;
  if (lib_ctor_work() != before + kThreads * kTimes) abort();
}
