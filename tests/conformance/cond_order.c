// Which waiter does a signal take: the one that has waited longest. Each waiter is asleep before
// the next one starts, so that the order of arrival is beyond doubt.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 8 };

struct Waiter {
  pthread_t thread;
  int number;
  long timeout_ms;  // 0: waits without a limit
  pid_t tid;        // under the mutex, like all that follows
  int arrived;
  int result;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct Waiter waiters[kWaiters];
static int woken[kWaiters];
static int woken_count;

static void unlock_mutex(void* unused) {
  (void)unused;
  pthread_mutex_unlock(&mutex);
}

static void* wait_once(void* argument) {
  struct Waiter* self = argument;
  pthread_mutex_lock(&mutex);
  self->tid = thread_id();
  self->arrived = 1;
  pthread_cleanup_push(unlock_mutex, NULL);
  if (self->timeout_ms == 0) {
    self->result = pthread_cond_wait(&cond, &mutex);
  } else {
    struct timespec deadline = deadline_ms(CLOCK_REALTIME, self->timeout_ms);
    self->result = pthread_cond_timedwait(&cond, &mutex, &deadline);
  }
  if (self->result == 0) woken[woken_count++] = self->number;
  pthread_cleanup_pop(1);
  return NULL;
}

static void start_waiter(int number, long timeout_ms) {
  struct Waiter* waiter = &waiters[number];
  memset(waiter, 0, sizeof *waiter);
  waiter->number = number;
  waiter->timeout_ms = timeout_ms;
  MUST(pthread_create(&waiter->thread, NULL, wait_once, waiter) == 0);
  MUST(await_count(&mutex, &waiter->arrived, 1));
  await_sleep(waiter->tid);
}

static void start_all(void) {
  woken_count = 0;
  for (int i = 0; i < kWaiters; ++i) start_waiter(i, 0);
}

static void signal_times(int times) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < times; ++i) pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
}

static void join_all(void) {
  for (int i = 0; i < kWaiters; ++i) pthread_join(waiters[i].thread, NULL);
}

static int in_order(const int* expected, int count) {
  for (int i = 0; i < count; ++i) {
    if (woken[i] != expected[i]) return 0;
  }
  return 1;
}

static void one_by_one(void) {
  static const int kOrder[kWaiters] = {0, 1, 2, 3, 4, 5, 6, 7};
  start_all();
  int exactly_one = 1;
  for (int i = 1; i <= kWaiters; ++i) {
    signal_times(1);
    MUST(await_count(&mutex, &woken_count, i));
    pthread_mutex_lock(&mutex);
    exactly_one &= woken_count == i;
    pthread_mutex_unlock(&mutex);
  }
  join_all();
  CHECK_TRUE("every signal wakes one waiter", exactly_one);
  CHECK_TRUE("one by one in the order of arrival", in_order(kOrder, kWaiters));
}

// The woken ones then compete for the mutex, so only the set is certain.
static void three_at_once(void) {
  start_all();
  signal_times(3);
  MUST(await_count(&mutex, &woken_count, 3));
  sleep_ms(5);
  pthread_mutex_lock(&mutex);
  int count = woken_count;
  unsigned set = 0;
  for (int i = 0; i < woken_count; ++i) set |= 1U << woken[i];
  pthread_mutex_unlock(&mutex);
  CHECK_EQ("three signals wake three waiters", count, 3);
  CHECK_EQ("and they are the three oldest", set, 7);
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  join_all();
  CHECK_EQ("broadcast wakes the other five", woken_count, kWaiters);
}

// A waiter that gave up in the middle of the line must not be counted as waiting.
static void gap_in_the_line(void) {
  static const int kOrder[kWaiters] = {0, 1, 3, 4, 5, 6, 7};
  woken_count = 0;
  for (int i = 0; i < kWaiters; ++i) start_waiter(i, i == 2 ? 20 : 0);
  pthread_join(waiters[2].thread, NULL);
  CHECK_EQ("the third gives up", waiters[2].result, ETIMEDOUT);
  for (int i = 1; i < kWaiters; ++i) {
    signal_times(1);
    MUST(await_count(&mutex, &woken_count, i));
  }
  for (int i = 0; i < kWaiters; ++i) {
    if (i != 2) pthread_join(waiters[i].thread, NULL);
  }
  CHECK_TRUE("the others in the order of arrival", in_order(kOrder, kWaiters - 1));
}

// Nor may a cancelled one. glibc sends the oldest waiter back to the end of the line here, so the
// order is not a promise; that each signal finds a waiter is one.
static void cancelled_in_the_line(void) {
  start_all();
  void* result = NULL;
  pthread_cancel(waiters[3].thread);
  pthread_join(waiters[3].thread, &result);
  CHECK_TRUE("the fourth is cancelled", result == PTHREAD_CANCELED);
  int each = 1;
  for (int i = 1; i < kWaiters; ++i) {
    signal_times(1);
    each &= await_count(&mutex, &woken_count, i);
  }
  CHECK_TRUE("each signal finds another of the rest", each);
  for (int i = 0; i < kWaiters; ++i) {
    if (i != 3) pthread_join(waiters[i].thread, NULL);
  }
}

int main(void) {
  one_by_one();
  three_at_once();
  gap_in_the_line();
  cancelled_in_the_line();
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
  return done();
}
