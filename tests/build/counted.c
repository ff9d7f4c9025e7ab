// Takes locks through every call that takes one, a known number of times, and prints how many
// acquisitions the preloaded library has counted in the objects: nothing bare, all of them when
// recorded. A call that went past it, by an alias or another symbol version, would be missing.
#include "tests/conformance/check.h"

#include <dlfcn.h>
#include <stdint.h>
#include <threads.h>

static unsigned counted_at(const void* object, size_t offset) {
  uint32_t count;
  memcpy(&count, (const char*)object + offset, sizeof count);
  return count;
}

static struct timespec soon(clockid_t clock) { return deadline_ms(clock, 2); }

typedef int (*MutexCall)(pthread_mutex_t*);
typedef int (*WaitCall)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);

static void mutexes(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  static const char* const kCalls[] = {"pthread_mutex_lock", "__pthread_mutex_lock",
                                       "pthread_mutex_trylock", "__pthread_mutex_trylock"};
  int expected = 0;
  for (int i = 0; i < 12; ++i, ++expected) {
    MutexCall lock = (MutexCall)dlvsym(RTLD_DEFAULT, kCalls[i % 4], "GLIBC_2.2.5");
    if (lock == NULL) lock = (MutexCall)dlsym(RTLD_DEFAULT, kCalls[i % 4]);
    if (lock == NULL || lock(&mutex) != 0) puts("a call failed");
    pthread_mutex_unlock(&mutex);
  }
  struct timespec when = soon(CLOCK_REALTIME);
  pthread_mutex_timedlock(&mutex, &when), ++expected;
  pthread_mutex_unlock(&mutex);
  when = soon(CLOCK_MONOTONIC);
  pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &when), ++expected;
  when = soon(CLOCK_REALTIME);
  pthread_cond_timedwait(&cond, &mutex, &when), ++expected;
  when = soon(CLOCK_MONOTONIC);
  pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &when), ++expected;
  static pthread_cond_t old_cond;  // as programs linked before glibc 2.3.2 wait
  WaitCall old_wait = (WaitCall)dlvsym(RTLD_DEFAULT, "pthread_cond_timedwait", "GLIBC_2.2.5");
  when = soon(CLOCK_REALTIME);
  if (old_wait != NULL) old_wait(&old_cond, &mutex, &when), ++expected;
  pthread_mutex_unlock(&mutex);
  printf("mutex %u of %d\n", counted_at(&mutex, 32) >> 8, expected);
}

static void c11_mutexes(void) {
  mtx_t mutex;
  cnd_t cond;
  mtx_init(&mutex, mtx_timed);
  cnd_init(&cond);
  mtx_lock(&mutex), mtx_unlock(&mutex);
  mtx_trylock(&mutex), mtx_unlock(&mutex);
  struct timespec when = soon(CLOCK_REALTIME);
  mtx_timedlock(&mutex, &when);
  cnd_timedwait(&cond, &mutex, &when);
  mtx_unlock(&mutex);
  printf("mtx %u of 4\n", counted_at(&mutex, 32) >> 8);
}

static void rwlocks(void) {
  static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  struct timespec real = soon(CLOCK_REALTIME);
  struct timespec steady = soon(CLOCK_MONOTONIC);
  pthread_rwlock_rdlock(&lock), pthread_rwlock_unlock(&lock);
  pthread_rwlock_wrlock(&lock), pthread_rwlock_unlock(&lock);
  pthread_rwlock_tryrdlock(&lock), pthread_rwlock_unlock(&lock);
  pthread_rwlock_trywrlock(&lock), pthread_rwlock_unlock(&lock);
  pthread_rwlock_timedrdlock(&lock, &real), pthread_rwlock_unlock(&lock);
  pthread_rwlock_timedwrlock(&lock, &real), pthread_rwlock_unlock(&lock);
  pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &steady), pthread_rwlock_unlock(&lock);
  pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &steady), pthread_rwlock_unlock(&lock);
  const unsigned record = counted_at(&lock, 44);  // reads above writes above the node
  printf("rwlock %u of 8\n", (record >> 19) + (record >> 7 & 0xfff));
}

int main(void) {
  mutexes();
  c11_mutexes();
  rwlocks();
  return 0;
}
