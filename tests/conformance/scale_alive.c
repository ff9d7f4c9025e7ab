// conformance: serial
// conformance: skip=*-spin thousands of waiters that only spin leave the CPUs to nobody else
// Four thousand threads alive at once, all waiting for the same mutex; some of them give up.
// As many as the system allows are started, if it allows fewer: the checks hold for any number.
#include "check.h"

enum { kThreads = 4000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static long counter_of_second;
static long gave_up;
static int arrived;

static void* wait_for_both(void* number) {
  long own = (long)number;
  __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);  // a count; the mutex orders the rest
  if (own % 16 == 5) {
    struct timespec past = {.tv_sec = 1};
    if (pthread_mutex_timedlock(&mutex, &past) == 0) {
      if (pthread_mutex_unlock(&mutex) != 0) return (void*)1L;
    } else {
      __atomic_fetch_add(&gave_up, 1, __ATOMIC_RELAXED);
    }
  }
  if (pthread_mutex_lock(&mutex) != 0) return (void*)2L;
  counter++;
  if (own % 8 == 0) {
    if (pthread_mutex_lock(&second) != 0) return (void*)3L;
    counter_of_second++;
    if (pthread_mutex_unlock(&second) != 0) return (void*)4L;
  }
  if (pthread_mutex_unlock(&mutex) != 0) return (void*)5L;
  return NULL;
}

int main(void) {
  static pthread_t threads[kThreads];
  pthread_attr_t attr;
  long started = 0;
  long bad = 0;
  MUST(pthread_attr_init(&attr) == 0);
  MUST(pthread_attr_setstacksize(&attr, 64 * 1024) == 0);
  MUST(pthread_mutex_lock(&mutex) == 0);
  while (started < kThreads &&
         pthread_create(&threads[started], &attr, wait_for_both, (void*)started) == 0) {
    started++;
  }
  while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < started) sleep_ms(1);
  CHECK_TRUE("at least a thousand at once", started >= 1000);
  CHECK_EQ("inside while it is held", counter, 0);
  CHECK_CALL("trylock", pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  for (long i = 0; i < started; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    bad += result != NULL;
  }
  CHECK_TRUE("everybody was inside", counter == started);
  CHECK_TRUE("an eighth took the second", counter_of_second == (started + 7) / 8);
  CHECK_TRUE("no more gave up than tried", gave_up <= (started + 10) / 16);
  CHECK_EQ("failed calls", bad, 0);
  CHECK_EQ("nusers", mutex.__data.__nusers, 0);
  CHECK_EQ("owner", mutex.__data.__owner, 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
  return done();
}
