// Broadcast to 64 waiters: each is released exactly once for each broadcast, and never two of them
// inside the mutex together.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 64, kRounds = 60 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_cond_t all_came = PTHREAD_COND_INITIALIZER;
static int waiting;  // under the mutex, like all that follows
static int releases;
static int generation;
static int inside;
static int overlaps;

static void* follow(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  for (int round = 0; round < kRounds; ++round) {
    int seen = generation;
    if (++waiting == kWaiters) pthread_cond_signal(&all_came);
    while (generation == seen) pthread_cond_wait(&cond, &mutex);
    overlaps += inside++ != 0;
    ++releases;
    if (round % 16 == 0) sched_yield();  // gives a second one the chance to get in
    --inside;
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

// Every fourth broadcast comes without the mutex, some come twice.
static void broadcast_round(int round) {
  pthread_mutex_lock(&mutex);
  while (waiting < kWaiters) pthread_cond_wait(&all_came, &mutex);
  waiting = 0;
  ++generation;
  if (round % 4 == 0) pthread_mutex_unlock(&mutex);
  pthread_cond_broadcast(&cond);
  if (round % 3 == 0) pthread_cond_broadcast(&cond);
  if (round % 4 != 0) pthread_mutex_unlock(&mutex);
}

int main(void) {
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i) MUST(pthread_create(&threads[i], NULL, follow, NULL) == 0);
  for (int round = 0; round < kRounds; ++round) broadcast_round(round);
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("releases", releases, kWaiters * kRounds);
  CHECK_EQ("two inside at once", overlaps, 0);
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
  CHECK_CALL("destroy the mutex", pthread_mutex_destroy(&mutex), 0);
  return done();
}
