// The life of a condition variable: initialised statically, by call, or by zeroed memory; signals
// that find nobody; another mutex later; destroyed and initialised again; memory that held one and
// was given back without destroying it.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 3, kRounds = 300 };

static int waiting;  // under the mutex of the moment, like released
static int released;
static int go_on;

struct Pair {
  pthread_cond_t* cond;
  pthread_mutex_t* mutex;
};

static void* wait_for_go(void* argument) {
  struct Pair* pair = argument;
  pthread_mutex_lock(pair->mutex);
  ++waiting;
  while (!go_on) pthread_cond_wait(pair->cond, pair->mutex);
  ++released;
  pthread_mutex_unlock(pair->mutex);
  return NULL;
}

// Lets waiters come, releases them, and tells how many were released.
static int use(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  struct Pair pair = {cond, mutex};
  pthread_t threads[kWaiters];
  waiting = released = go_on = 0;
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, wait_for_go, &pair);
  if (!await_count(mutex, &waiting, kWaiters)) return -1;
  pthread_mutex_lock(mutex);
  go_on = 1;
  pthread_cond_signal(cond);
  pthread_cond_broadcast(cond);
  pthread_mutex_unlock(mutex);
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  return released;
}

static int waits_in_vain(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 5);
  pthread_mutex_lock(mutex);
  int result = pthread_cond_timedwait(cond, mutex, &soon);
  pthread_mutex_unlock(mutex);
  return result;
}

static void initialisers(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t fixed = PTHREAD_COND_INITIALIZER;
  pthread_cond_t zeroed;
  memset(&zeroed, 0, sizeof zeroed);
  pthread_cond_t called;
  memset(&called, 0xff, sizeof called);
  CHECK_CALL("init", pthread_cond_init(&called, NULL), 0);
  CHECK_EQ("static initialiser", use(&fixed, &mutex), kWaiters);
  CHECK_EQ("zeroed memory", use(&zeroed, &mutex), kWaiters);
  CHECK_EQ("initialised by call", use(&called, &mutex), kWaiters);
  CHECK_CALL("destroy, static", pthread_cond_destroy(&fixed), 0);
  CHECK_CALL("destroy, zeroed", pthread_cond_destroy(&zeroed), 0);
  CHECK_CALL("destroy, by call", pthread_cond_destroy(&called), 0);
  CHECK_CALL("destroy, never used", (pthread_cond_init(&fixed, NULL), pthread_cond_destroy(&fixed)),
             0);
}

static void nobody_there(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  for (int i = 0; i < 1000; ++i) {
    pthread_cond_signal(&cond);
    pthread_cond_broadcast(&cond);
  }
  CHECK_CALL("signal to nobody", pthread_cond_signal(&cond), 0);
  CHECK_CALL("broadcast to nobody", pthread_cond_broadcast(&cond), 0);
  CHECK_EQ("is not remembered", waits_in_vain(&cond, &mutex), ETIMEDOUT);
  CHECK_EQ("still usable", use(&cond, &mutex), kWaiters);
  CHECK_EQ("nothing left over", waits_in_vain(&cond, &mutex), ETIMEDOUT);
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
}

static void changing_mutexes(void) {
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t second = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  pthread_mutex_t third = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  pthread_mutex_t fourth = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
  pthread_mutex_t* const all[] = {&first, &second, &third, &fourth};
  int good = 0;
  for (int i = 0; i < 40; ++i) good += use(&cond, all[i % 4]) == kWaiters;
  CHECK_EQ("one after the other with four mutexes", good, 40);
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
}

static void again_and_again(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_t cond;
  int good = 0;
  for (int i = 0; i < kRounds; ++i) {
    good += pthread_cond_init(&cond, i % 2 ? &monotonic : NULL) == 0;
    if (i % 30 == 0) good += use(&cond, &mutex) == kWaiters;
    good += pthread_cond_destroy(&cond) == 0;
  }
  CHECK_EQ("init, use, destroy", good, 2 * kRounds + kRounds / 30);
  // The clock of an earlier life must not stay behind.
  pthread_cond_init(&cond, &monotonic);
  pthread_cond_destroy(&cond);
  pthread_cond_init(&cond, NULL);
  long long start = now_ms();
  CHECK_EQ("realtime again", waits_in_vain(&cond, &mutex), ETIMEDOUT);
  CHECK_TRUE("and not for ages", now_ms() - start < kPatienceMs);
  // Memory given back without destroying what it held.
  for (int i = 0; i < 20; ++i) {
    memset(&cond, 0, sizeof cond);
    good += use(&cond, &mutex) == kWaiters;
    pthread_cond_init(&cond, NULL);
    good += use(&cond, &mutex) == kWaiters;
  }
  CHECK_EQ("never destroyed", good, 2 * kRounds + kRounds / 30 + 40);
}

int main(void) {
  initialisers();
  nobody_there();
  changing_mutexes();
  again_and_again();
  return done();
}
