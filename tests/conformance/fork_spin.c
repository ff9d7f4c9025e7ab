// A spinlock held across fork while others spin for it.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 3, kRounds = 8, kTimes = 300 };

static pthread_spinlock_t spin;
static long count;   // under the spinlock
static int started;  // atomic

static void* add(void* times) {
  __atomic_fetch_add(&started, 1, __ATOMIC_ACQ_REL);
  for (intptr_t i = 0; i < (intptr_t)times; ++i) {
    pthread_spin_lock(&spin);
    ++count;
    pthread_spin_unlock(&spin);
  }
  return NULL;
}

static int child_work(void) {
  if (pthread_spin_trylock(&spin) != EBUSY) return 1;
  if (pthread_spin_unlock(&spin) != 0) return 2;
  if (pthread_spin_lock(&spin) != 0) return 3;
  if (pthread_spin_unlock(&spin) != 0) return 4;
  if (pthread_spin_trylock(&spin) != 0) return 5;
  if (pthread_spin_unlock(&spin) != 0) return 6;
  long before = count;
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, add, (void*)(intptr_t)kTimes);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  if (count != before + 2L * kTimes) return 7;
  return pthread_spin_destroy(&spin) == 0 ? 0 : 8;
}

int main(void) {
  CHECK_CALL("init", pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  int failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_t threads[kWaiters];
    __atomic_store_n(&started, 0, __ATOMIC_RELEASE);
    pthread_spin_lock(&spin);
    for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, add, (void*)5);
    while (__atomic_load_n(&started, __ATOMIC_ACQUIRE) < kWaiters) sched_yield();
    pid_t child = fork();
    if (child == 0) _exit(child_work());
    pthread_spin_unlock(&spin);
    int status = child_status(child);
    if (status != 0) fprintf(stderr, "child: status %d\n", status);
    failed += status != 0;
    for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  }
  CHECK_EQ("children that failed", failed, 0);
  CHECK_EQ("count", count, 5L * kWaiters * kRounds);
  CHECK_CALL("destroy", pthread_spin_destroy(&spin), 0);
  return done();
}
