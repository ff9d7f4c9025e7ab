// Threads that wait for a mutex with a time limit sleep: they do not look again and again, however
// many of them there are. What the process burns is far below what it waits.
// conformance: skip=*-spin spinning is what RELOCK_WAIT=spin asks for
// conformance: serial
#include <sys/resource.h>

#include "check.h"
#include "cond_support.h"

enum { kThreads = 12, kWaitMs = 500, kMostCpuMs = 150 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* wait_in_vain(void* result) {
  struct timespec until = deadline_ms(CLOCK_REALTIME, kWaitMs);
  *(int*)result = pthread_mutex_timedlock(&mutex, &until);
  return NULL;
}

static long cpu_ms(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

int main(void) {
  pthread_t threads[kThreads];
  int results[kThreads];
  int timed_out = 0;
  pthread_mutex_lock(&mutex);
  long before = cpu_ms();
  for (int i = 0; i < kThreads; ++i) {
    MUST(pthread_create(&threads[i], NULL, wait_in_vain, &results[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    timed_out += results[i] == ETIMEDOUT;
  }
  long burnt = cpu_ms() - before;
  CHECK_EQ("gave up in time", timed_out, kThreads);
  if (burnt >= kMostCpuMs) fprintf(stderr, "%ld ms of CPU time burnt\n", burnt);
  CHECK_TRUE("CPU time is small", burnt < kMostCpuMs);
  pthread_mutex_unlock(&mutex);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
  return done();
}
