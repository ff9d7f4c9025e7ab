// Threads with asynchronous cancellation that are cancelled while they let go of a contended mutex,
// wherever that strikes. Each ends as a cancelled thread does; none takes the process down.
#include "check.h"
#include "cond_support.h"

enum { kThreads = 150 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ready;

// The request may have struck before the mutex was released or after: a normal one may be unlocked
// twice.
static void unlock_anyway(void* unused) {
  (void)unused;
  pthread_mutex_unlock(&mutex);
}

static void* release_until_cancelled(void* unused) {
  pthread_cleanup_push(unlock_anyway, NULL);
  for (;;) {
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 3000; ++i) __asm__ volatile("" : : : "memory");
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_mutex_unlock(&mutex);
  }
  pthread_cleanup_pop(0);
  return unused;
}

// With a limit, since a request may strike between a release and its wake, as in the C library.
static void contend(uint32_t* random, int times) {
  for (int i = 0; i < times; ++i) {
    struct timespec soon = deadline_ms(CLOCK_REALTIME, 20);
    if (pthread_mutex_timedlock(&mutex, &soon) != 0) continue;
    for (uint32_t k = next_random(random) % 3000; k > 0; --k) __asm__ volatile("" : : : "memory");
    pthread_mutex_unlock(&mutex);
  }
}

int main(void) {
  uint32_t random = 1;
  int cancelled = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    void* result = NULL;
    ready = 0;
    MUST(pthread_create(&thread, NULL, release_until_cancelled, NULL) == 0);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) sched_yield();
    contend(&random, 5 + (int)(next_random(&random) % 10));
    pthread_cancel(thread);
    contend(&random, 2);
    pthread_join(thread, &result);
    cancelled += result == PTHREAD_CANCELED;
  }
  CHECK_EQ("threads that ended as cancelled", cancelled, kThreads);
  return done();
}
