// A number of signals sent while enough threads are known to wait releases that number of threads:
// not fewer (lost), not more (swallowed later by a thread that should sleep on).
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 8, kRounds = 250 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_cond_t all_waiting = PTHREAD_COND_INITIALIZER;
static int waiting;  // under the mutex, like all that follows
static int released;
static int stop;

static void* wait_for_signals(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!stop) {
    if (++waiting == kWaiters) pthread_cond_signal(&all_waiting);
    pthread_cond_wait(&cond, &mutex);
    --waiting;
    ++released;
    // Only a signal that arrived for somebody still waiting may count, so the released ones stay
    // out until the round is over.
    while (!stop && released != 0) {
      pthread_mutex_unlock(&mutex);
      sched_yield();
      pthread_mutex_lock(&mutex);
    }
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static int round_of_signals(int signals, int outside_the_mutex) {
  pthread_mutex_lock(&mutex);
  while (waiting < kWaiters) pthread_cond_wait(&all_waiting, &mutex);
  if (outside_the_mutex) pthread_mutex_unlock(&mutex);
  for (int i = 0; i < signals; ++i) pthread_cond_signal(&cond);
  if (outside_the_mutex) pthread_mutex_lock(&mutex);
  for (long long until = now_ms() + kPatienceMs; released < signals && now_ms() < until;) {
    pthread_mutex_unlock(&mutex);
    sched_yield();
    pthread_mutex_lock(&mutex);
  }
  int exact = released == signals && waiting == kWaiters - signals;
  released = 0;
  pthread_mutex_unlock(&mutex);
  return exact;
}

int main(void) {
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, wait_for_signals, NULL);
  int exact_inside = 0;
  int exact_outside = 0;
  for (int i = 0; i < kRounds; ++i) {
    exact_inside += round_of_signals(1 + i % kWaiters, 0);
    exact_outside += round_of_signals(1 + i % 5, 1);
  }
  CHECK_EQ("rounds exact with the mutex held", exact_inside, kRounds);
  CHECK_EQ("rounds exact without the mutex", exact_outside, kRounds);
  pthread_mutex_lock(&mutex);
  stop = 1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("nobody is left waiting", waiting, 0);
  return done();
}
