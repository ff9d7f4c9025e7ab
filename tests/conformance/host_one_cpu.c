// More threads than processors, to the extreme: all of them on one processor. Whoever waits by
// spinning keeps the owner from running there.
#include "check.h"

#include <sched.h>

enum { kMany = 64, kFew = 6, kTimes = 150, kSpinTimes = 400, kTurns = 40 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static long count;  // under the lock of the phase
static int turn;    // under the mutex

static void stay_on_one_cpu(void) {
  cpu_set_t allowed;
  cpu_set_t one;
  CPU_ZERO(&one);
  MUST(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  MUST(sched_setaffinity(0, sizeof one, &one) == 0);
}

static void* with_mutex(void* unused) {
  for (int i = 0; i < kTimes; ++i) {
    pthread_mutex_lock(&mutex);
    ++count;
    if (i % 50 == 0) sched_yield();  // the others run into a held mutex
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

static void* with_recursive(void* unused) {
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  for (int i = 0; i < kTimes; ++i) {
    pthread_mutex_timedlock(&recursive, &far);
    pthread_mutex_lock(&recursive);
    ++count;
    if (i % 50 == 0) sched_yield();
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
  }
  return unused;
}

static void* with_spin(void* unused) {
  for (int i = 0; i < kSpinTimes; ++i) {
    pthread_spin_lock(&spin);
    ++count;
    pthread_spin_unlock(&spin);
    if (i % 20 == 0) sched_yield();
  }
  return unused;
}

static void* in_turn(void* argument) {
  int me = (int)(long)argument;
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn % kFew != me) pthread_cond_wait(&cond, &mutex);
    ++turn;
    ++count;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void run(const char* name, int threads, void* (*work)(void*), int times) {
  pthread_t thread[kMany];
  count = 0;
  for (long i = 0; i < threads; ++i) {
    MUST(pthread_create(&thread[i], NULL, work, (void*)i) == 0);
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  CHECK_EQ(name, count, (long)threads * times);
}

int main(void) {
  stay_on_one_cpu();
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  run("64 threads, mutex", kMany, with_mutex, kTimes);
  run("64 threads, recursive and timed", kMany, with_recursive, kTimes);
  run("6 threads in turn", kFew, in_turn, kTurns);
  run("6 threads, spinlock", kFew, with_spin, kSpinTimes);
  return done();
}
