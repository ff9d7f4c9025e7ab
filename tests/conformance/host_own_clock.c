// A program may define clock_gettime and the semaphore calls itself (test frameworks mock the
// time). Its locks wait by the real time all the same, as they do inside the C library.
// conformance: any-lock
#include <semaphore.h>

#include "check.h"
#include "cond_support.h"
#include "hammer.h"

static int mocked_calls;

int clock_gettime(clockid_t clock, struct timespec* now) {
  (void)clock;
  now->tv_sec = 1;  // time stands still
  now->tv_nsec = 0;
  __atomic_fetch_add(&mocked_calls, 1, __ATOMIC_RELAXED);
  return 0;
}
int sem_post(sem_t* semaphore) {
  (void)semaphore;
  abort();
}
int sem_wait(sem_t* semaphore) {
  (void)semaphore;
  abort();
}
int sem_clockwait(sem_t* semaphore, clockid_t clock, const struct timespec* until) {
  (void)semaphore;
  (void)clock;
  (void)until;
  abort();
}

static void real_time(clockid_t clock, struct timespec* now) {
  syscall(SYS_clock_gettime, clock, now);
}

static struct timespec in_ms(clockid_t clock, long ms) {
  struct timespec when;
  real_time(clock, &when);
  when.tv_nsec += ms * 1000000;
  when.tv_sec += when.tv_nsec / 1000000000;
  when.tv_nsec %= 1000000000;
  return when;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int signalled;

static void* lock_in_time(void* result) {
  struct timespec until = in_ms(CLOCK_REALTIME, 50);
  *(int*)result = pthread_mutex_timedlock(&mutex, &until);
  return NULL;
}

static void* wait_for_signal(void* tid) {
  pthread_mutex_lock(&mutex);
  __atomic_store_n((pid_t*)tid, thread_id(), __ATOMIC_RELEASE);
  while (!signalled) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_t thread;
  int result = -1;
  pthread_mutex_lock(&mutex);
  MUST(pthread_create(&thread, NULL, lock_in_time, &result) == 0);
  pthread_join(thread, NULL);
  CHECK_EQ("a timed lock gives up", result, ETIMEDOUT);
  struct timespec until = in_ms(CLOCK_MONOTONIC, 20);
  CHECK_CALL("a timed wait gives up",
             pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);

  pid_t tid = 0;
  MUST(pthread_create(&thread, NULL, wait_for_signal, &tid) == 0);
  await_flag(&tid);
  pthread_mutex_lock(&mutex);
  signalled = 1;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);

  CHECK_EQ("eight threads count right", tally(&mutex, 8, 20000), 1);
  CHECK_EQ("the program's clock was left alone", mocked_calls, 0);
  return done();
}
