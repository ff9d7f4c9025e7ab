// A program that was linked long ago asks for the symbol versions of that time: condition variables
// of the first kind, and everything as it was before the thread library became part of the C
// library. Those references must be caught as well as today's, every one of them.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

#include <stdint.h>
#include <threads.h>

#ifdef __x86_64__
#define FROM(version, name) __asm__(".symver " #name "," #name "@GLIBC_" #version)
FROM(2.2.5, pthread_cond_init);
FROM(2.2.5, pthread_cond_destroy);
FROM(2.2.5, pthread_cond_wait);
FROM(2.2.5, pthread_cond_timedwait);
FROM(2.2.5, pthread_cond_signal);
FROM(2.2.5, pthread_cond_broadcast);
FROM(2.2.5, pthread_mutex_trylock);
FROM(2.2.5, pthread_mutex_timedlock);
FROM(2.4, pthread_mutex_getprioceiling);
FROM(2.12, pthread_mutex_consistent);
FROM(2.30, pthread_mutex_clocklock);
FROM(2.2.5, pthread_spin_init);
FROM(2.2.5, pthread_spin_destroy);
FROM(2.2.5, pthread_spin_lock);
FROM(2.2.5, pthread_spin_trylock);
FROM(2.2.5, pthread_spin_unlock);
FROM(2.2.5, pthread_rwlock_init);
FROM(2.2.5, pthread_rwlock_destroy);
FROM(2.2.5, pthread_rwlock_rdlock);
FROM(2.2.5, pthread_rwlock_tryrdlock);
FROM(2.2.5, pthread_rwlock_timedrdlock);
FROM(2.30, pthread_rwlock_clockrdlock);
FROM(2.2.5, pthread_rwlock_wrlock);
FROM(2.2.5, pthread_rwlock_trywrlock);
FROM(2.2.5, pthread_rwlock_timedwrlock);
FROM(2.30, pthread_rwlock_clockwrlock);
FROM(2.2.5, pthread_rwlock_unlock);
FROM(2.28, mtx_init);
FROM(2.28, mtx_destroy);
FROM(2.28, mtx_lock);
FROM(2.28, mtx_trylock);
FROM(2.28, mtx_timedlock);
FROM(2.28, mtx_unlock);
FROM(2.28, cnd_init);
FROM(2.28, cnd_destroy);
FROM(2.28, cnd_wait);
FROM(2.28, cnd_timedwait);
FROM(2.28, cnd_signal);
FROM(2.28, cnd_broadcast);
FROM(2.2.5, pthread_create);
FROM(2.2.5, pthread_join);
#endif

enum { kTurns = 2000, kWaiters = 6, kTimes = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_rwlock_t rwlock;
static mtx_t c11_mutex;
static cnd_t c11_cond;
static int turn;  // under the mutex, like all that follows
static int waiting;
static int released;
static int go_on;
static long count;

static void* play(void* argument) {
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn % 2 != me) {
      struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
      if (i % 2) {
        pthread_cond_wait(&cond, &mutex);
      } else {
        pthread_cond_timedwait(&cond, &mutex, &far);
      }
    }
    ++turn;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void* wait_for_go(void* unused) {
  pthread_mutex_lock(&mutex);
  ++waiting;
  while (!go_on) pthread_cond_wait(&cond, &mutex);
  ++released;
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void conditions(void) {
  pthread_t threads[kWaiters];
  pthread_create(&threads[0], NULL, play, (void*)1);
  play((void*)0);
  pthread_join(threads[0], NULL);
  CHECK_EQ("turns", turn, 2 * kTurns);
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, wait_for_go, NULL);
  pthread_mutex_lock(&mutex);
  while (waiting < kWaiters) {
    struct timespec soon = deadline_ms(CLOCK_REALTIME, 1);
    pthread_cond_t other;
    pthread_cond_init(&other, NULL);
    pthread_cond_timedwait(&other, &mutex, &soon);
    pthread_cond_destroy(&other);
  }
  go_on = 1;
  CHECK_CALL("broadcast", pthread_cond_broadcast(&cond), 0);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("released", released, kWaiters);
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
}

static void* fail_to_lock(void* unused) {
  struct timespec at = deadline_ms(CLOCK_REALTIME, 5);
  CHECK_CALL("trylock", pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL("timedlock", pthread_mutex_timedlock(&mutex, &at), ETIMEDOUT);
  at = deadline_ms(CLOCK_MONOTONIC, 5);
  CHECK_CALL("clocklock", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  CHECK_CALL("tryrdlock", pthread_rwlock_tryrdlock(&rwlock), EBUSY);
  CHECK_CALL("trywrlock", pthread_rwlock_trywrlock(&rwlock), EBUSY);
  CHECK_CALL("timedrdlock", pthread_rwlock_timedrdlock(&rwlock, &at), ETIMEDOUT);
  CHECK_CALL("clockwrlock", pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  CHECK_CALL("spin trylock", pthread_spin_trylock(&spin), EBUSY);
  CHECK_EQ("mtx_trylock", mtx_trylock(&c11_mutex), thrd_busy);
  CHECK_EQ("mtx_timedlock", mtx_timedlock(&c11_mutex, &at), thrd_timedout);
  return unused;
}

static void held_elsewhere(void) {
  struct timespec past = {1, 0};
  int ceiling = 0;
  CHECK_CALL("spin init", pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  CHECK_CALL("rwlock init", pthread_rwlock_init(&rwlock, NULL), 0);
  CHECK_EQ("mtx_init", mtx_init(&c11_mutex, mtx_timed), thrd_success);
  CHECK_EQ("cnd_init", cnd_init(&c11_cond), thrd_success);
  CHECK_CALL("trylock", pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL("wrlock", pthread_rwlock_wrlock(&rwlock), 0);
  CHECK_CALL("spin lock", pthread_spin_lock(&spin), 0);
  CHECK_EQ("mtx_lock", mtx_lock(&c11_mutex), thrd_success);
  on_other_thread(fail_to_lock, NULL);
  CHECK_EQ("cnd_timedwait", cnd_timedwait(&c11_cond, &c11_mutex, &past), thrd_timedout);
  CHECK_EQ("cnd_signal", cnd_signal(&c11_cond), thrd_success);
  CHECK_EQ("cnd_broadcast", cnd_broadcast(&c11_cond), thrd_success);
  CHECK_EQ("mtx_unlock", mtx_unlock(&c11_mutex), thrd_success);
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("rwlock unlock", pthread_rwlock_unlock(&rwlock), 0);
  CHECK_CALL("spin unlock", pthread_spin_unlock(&spin), 0);
  CHECK_CALL("consistent, not robust", pthread_mutex_consistent(&mutex), EINVAL);
  CHECK_CALL("getprioceiling, not protected", pthread_mutex_getprioceiling(&mutex, &ceiling),
             EINVAL);
}

static void* count_with_all(void* unused) {
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  for (int i = 0; i < kTimes; ++i) {
    if (i % 2) {
      pthread_mutex_lock(&mutex);
    } else {
      pthread_mutex_timedlock(&mutex, &far);
    }
    mtx_lock(&c11_mutex);
    pthread_spin_lock(&spin);
    pthread_rwlock_wrlock(&rwlock);
    ++count;
    pthread_rwlock_unlock(&rwlock);
    pthread_spin_unlock(&spin);
    mtx_unlock(&c11_mutex);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

static int c11_turn;  // under c11_mutex

static void* play_c11(void* argument) {
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < kTurns; ++i) {
    mtx_lock(&c11_mutex);
    while (c11_turn % 2 != me) cnd_wait(&c11_cond, &c11_mutex);
    ++c11_turn;
    cnd_signal(&c11_cond);
    mtx_unlock(&c11_mutex);
  }
  return NULL;
}

int main(void) {
  conditions();
  held_elsewhere();
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, count_with_all, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("count", count, 4 * kTimes);
  pthread_create(&threads[0], NULL, play_c11, (void*)1);
  play_c11((void*)0);
  pthread_join(threads[0], NULL);
  CHECK_EQ("C11 turns", c11_turn, 2 * kTurns);
  CHECK_CALL("spin destroy", pthread_spin_destroy(&spin), 0);
  CHECK_CALL("rwlock destroy", pthread_rwlock_destroy(&rwlock), 0);
  cnd_destroy(&c11_cond);
  mtx_destroy(&c11_mutex);
  return done();
}
