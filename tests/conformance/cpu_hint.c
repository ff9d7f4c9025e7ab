// A waiter on its owner's CPU gives way: while it pauses there, the owner cannot run. Its own CPU
// time shows it. cpu_hint_long.sh runs this program with a spin allowance far beyond the bound.
// conformance: skip=*-spin there waiters pause for a millisecond and nap, whoever runs where
#include "check.h"

#include <sched.h>
#include <stdint.h>

enum { kRounds = 5, kHoldMs = 30, kMostMs = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int holding;

static int64_t clock_us(clockid_t clock) {
  struct timespec now;
  MUST(clock_gettime(clock, &now) == 0);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void* owner(void* unused) {
  (void)unused;
  MUST(pthread_mutex_lock(&lock) == 0);  // waits once, so that it is known where it runs
  __atomic_store_n(&holding, 1, __ATOMIC_RELEASE);
  const int64_t until = clock_us(CLOCK_THREAD_CPUTIME_ID) + kHoldMs * 1000;
  while (clock_us(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
  MUST(pthread_mutex_unlock(&lock) == 0);
  return NULL;
}

int main(void) {
  cpu_set_t allowed, one;
  MUST(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  MUST(sched_setaffinity(0, sizeof one, &one) == 0);
  int64_t spent_us = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_t thread;
    __atomic_store_n(&holding, 0, __ATOMIC_RELAXED);
    MUST(pthread_mutex_lock(&lock) == 0);
    MUST(pthread_create(&thread, NULL, owner, NULL) == 0);
    usleep(3000);
    MUST(pthread_mutex_unlock(&lock) == 0);
    while (!__atomic_load_n(&holding, __ATOMIC_ACQUIRE)) usleep(200);
    const int64_t before = clock_us(CLOCK_THREAD_CPUTIME_ID);
    MUST(pthread_mutex_lock(&lock) == 0);
    spent_us += clock_us(CLOCK_THREAD_CPUTIME_ID) - before;
    MUST(pthread_mutex_unlock(&lock) == 0);
    MUST(pthread_join(thread, NULL) == 0);
  }
  if (spent_us >= kMostMs * 1000) fprintf(stderr, "the waiter used %d us\n", (int)spent_us);
  CHECK_TRUE("the waiter gives way to the owner", spent_us < kMostMs * 1000);
  return done();
}
