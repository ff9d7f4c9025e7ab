// A recursive mutex whose count is at its end says EAGAIN, by every way of locking.
#include "mutex_kinds.h"

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int main(void) {
  struct timespec later = deadline_ms(CLOCK_REALTIME, 1000);
  struct timespec later_monotonic = deadline_ms(CLOCK_MONOTONIC, 1000);
  CHECK_CALL("lock", pthread_mutex_lock(&mutex), 0);
  mutex.__data.__count = 0xfffffffe;
  CHECK_CALL("lock up to the last count", pthread_mutex_lock(&mutex), 0);
  check_fields("full", &mutex, 1, 0xffffffffu, 1, PTHREAD_MUTEX_RECURSIVE_NP);
  CHECK_CALL("lock", pthread_mutex_lock(&mutex), EAGAIN);
  CHECK_CALL("trylock", pthread_mutex_trylock(&mutex), EAGAIN);
  CHECK_CALL("timedlock", pthread_mutex_timedlock(&mutex, &later), EAGAIN);
  CHECK_CALL("clocklock", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later_monotonic),
             EAGAIN);
  check_fields("still full", &mutex, 1, 0xffffffffu, 1, PTHREAD_MUTEX_RECURSIVE_NP);
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("trylock fits again", pthread_mutex_trylock(&mutex), 0);
  mutex.__data.__count = 1;
  CHECK_CALL("last unlock", pthread_mutex_unlock(&mutex), 0);
  check_fields("unlocked", &mutex, 0, 0, 0, PTHREAD_MUTEX_RECURSIVE_NP);
  CHECK_CALL("unlock of an unlocked one", pthread_mutex_unlock(&mutex), EPERM);
  check_fields("unlocked", &mutex, 0, 0, 0, PTHREAD_MUTEX_RECURSIVE_NP);
  return done();
}
