// errno belongs to the program: no lock call changes it, contended or not, whether it succeeds,
// fails, times out, sleeps or wakes somebody.
#include "check.h"
#include "cond_support.h"

enum { kThreads = 4, kTimes = 1500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long changes;  // atomic
static int turn;      // under the mutex

// Each thread has another value, so that a mix-up between threads would show as well.
static void look(int expected) {
  if (errno != expected) __atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);  // a mere count
  errno = expected;
}

static void mutexes(int mine) {
  pthread_mutex_t* const all[] = {&mutex, &recursive, &checking, &adaptive};
  for (int i = 0; i < 4; ++i) {
    struct timespec past = {1, 0};
    pthread_mutex_lock(all[i]);
    look(mine);
    pthread_mutex_unlock(all[i]);
    look(mine);
    if (pthread_mutex_trylock(all[i]) == 0) pthread_mutex_unlock(all[i]);
    look(mine);
    if (pthread_mutex_timedlock(all[i], &past) == 0) pthread_mutex_unlock(all[i]);
    look(mine);
    struct timespec soon = deadline_ms(CLOCK_MONOTONIC, 0);
    if (pthread_mutex_clocklock(all[i], CLOCK_MONOTONIC, &soon) == 0) pthread_mutex_unlock(all[i]);
    look(mine);
  }
  pthread_mutex_unlock(&checking);  // refused
  look(mine);
}

static void others(int mine) {
  pthread_spin_lock(&spin);
  look(mine);
  pthread_spin_unlock(&spin);
  look(mine);
  pthread_rwlock_rdlock(&rwlock);
  look(mine);
  pthread_rwlock_unlock(&rwlock);
  pthread_rwlock_wrlock(&rwlock);
  look(mine);
  pthread_rwlock_unlock(&rwlock);
  look(mine);
}

static void condition(int me, int mine) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 1);
  struct timespec invalid = {0, -1};
  pthread_mutex_lock(&mutex);
  if (turn % kThreads != me) pthread_cond_timedwait(&cond, &mutex, &soon);
  look(mine);
  ++turn;
  pthread_cond_broadcast(&cond);
  look(mine);
  pthread_cond_signal(&cond);
  look(mine);
  pthread_cond_timedwait(&cond, &mutex, &invalid);
  look(mine);
  pthread_mutex_unlock(&mutex);
}

static void* work(void* argument) {
  int me = (int)(intptr_t)argument;
  int mine = 1000 + me;
  errno = mine;
  for (int i = 0; i < kTimes; ++i) {
    mutexes(mine);
    others(mine);
    if (i % 50 == 0) condition(me, mine);
  }
  return NULL;
}

int main(void) {
  CHECK_CALL("spin init", pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("changes", changes, 0);
  CHECK_CALL("mutex destroy", pthread_mutex_destroy(&mutex), 0);
  CHECK_CALL("cond destroy", pthread_cond_destroy(&cond), 0);
  CHECK_CALL("rwlock destroy", pthread_rwlock_destroy(&rwlock), 0);
  CHECK_CALL("spin destroy", pthread_spin_destroy(&spin), 0);
  return done();
}
