// A signal and a cancellation meet at the same waiter. Either the waiter took the signal and goes
// on, or it was cancelled and the signal belongs to the other waiter; it is never gone.
#include "check.h"
#include "cond_support.h"

enum { kRounds = 300 };
enum Order { kSignalFirst, kCancelFirst, kTogether, kOrders };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;  // under the mutex, like other_released
static int other_released;
static pthread_t victim;
static int cancel_now;  // the canceller waits for the number of the round
static int rounds_over;

static void* wait_as_victim(void* timed) {
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  pthread_mutex_lock(&mutex);
  ++waiting;
  pthread_cleanup_push(unlock_at_cleanup, &mutex);
  if (timed != NULL) {
    pthread_cond_timedwait(&cond, &mutex, &far);
  } else {
    pthread_cond_wait(&cond, &mutex);
  }
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  pthread_cleanup_pop(1);
  return NULL;
}

static void* wait_as_other(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++waiting;
  pthread_cond_wait(&cond, &mutex);
  other_released = 1;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* cancel_when_told(void* unused) {
  (void)unused;
  for (int round = 1;; ++round) {
    while (__atomic_load_n(&cancel_now, __ATOMIC_ACQUIRE) != round) {
      if (__atomic_load_n(&rounds_over, __ATOMIC_ACQUIRE)) return NULL;
      sched_yield();
    }
    pthread_cancel(victim);
    __atomic_store_n(&cancel_now, 0, __ATOMIC_RELEASE);
  }
}

static void signal_and_cancel(enum Order order, int* told) {
  pthread_mutex_lock(&mutex);
  switch (order) {
    case kSignalFirst:
      pthread_cond_signal(&cond);
      pthread_cancel(victim);
      break;
    case kCancelFirst:
      pthread_cancel(victim);
      pthread_cond_signal(&cond);
      break;
    default:
      __atomic_store_n(&cancel_now, ++*told, __ATOMIC_RELEASE);
      pthread_cond_signal(&cond);
      break;
  }
  pthread_mutex_unlock(&mutex);
  while (__atomic_load_n(&cancel_now, __ATOMIC_ACQUIRE) != 0) sched_yield();
}

// One round; gives back 1 when the signal got lost.
static int meet(int round, int* told) {
  pthread_t other;
  void* victim_result = NULL;
  waiting = other_released = 0;
  void* timed = round % 2 ? &mutex : NULL;
  MUST(pthread_create(&victim, NULL, wait_as_victim, timed) == 0);
  if (round % 4 < 2) MUST(await_count(&mutex, &waiting, 1));  // the victim is the older waiter
  MUST(pthread_create(&other, NULL, wait_as_other, NULL) == 0);
  for (int there = 0; there < 2; sched_yield()) {
    pthread_mutex_lock(&mutex);
    there = waiting;
    pthread_mutex_unlock(&mutex);
  }
  signal_and_cancel((enum Order)(round % kOrders), told);
  pthread_join(victim, &victim_result);
  int lost = 0;
  if (victim_result == PTHREAD_CANCELED) lost = !await_count(&mutex, &other_released, 1);
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  pthread_join(other, NULL);
  return lost;
}

int main(void) {
  pthread_t canceller;
  int lost = 0;
  int told = 0;
  pthread_create(&canceller, NULL, cancel_when_told, NULL);
  for (int round = 0; round < kRounds && lost == 0; ++round) lost += meet(round, &told);
  __atomic_store_n(&rounds_over, 1, __ATOMIC_RELEASE);
  pthread_join(canceller, NULL);
  CHECK_EQ("signals lost", lost, 0);
  CHECK_CALL("nobody waits any more", pthread_cond_destroy(&cond), 0);
  CHECK_CALL("the mutex is free", pthread_mutex_destroy(&mutex), 0);
  return done();
}
