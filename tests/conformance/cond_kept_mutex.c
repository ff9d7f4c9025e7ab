// A waiter that holds its recursive mutex twice keeps it while it waits, so a broadcast must reach
// it although an older waiter, woken first, needs that very mutex to go on.
#include "check.h"
#include "cond_support.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

struct Waiter {
  int times;  // it locks the mutex so often
  pid_t tid;
  int woken;
};

static void* wait_once(void* argument) {
  struct Waiter* waiter = argument;
  for (int i = 0; i < waiter->times; ++i) pthread_mutex_lock(&mutex);
  __atomic_store_n(&waiter->tid, thread_id(), __ATOMIC_RELEASE);
  waiter->woken = pthread_cond_wait(&cond, &mutex) == 0;
  for (int i = 0; i < waiter->times; ++i) pthread_mutex_unlock(&mutex);
  return NULL;
}

static pthread_t start(struct Waiter* waiter) {
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, wait_once, waiter) == 0);
  await_flag(&waiter->tid);
  await_sleep(waiter->tid);
  return thread;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &attributes);
  struct Waiter older = {.times = 1};
  struct Waiter keeper = {.times = 2};
  pthread_t threads[2] = {start(&older), start(&keeper)};
  CHECK_CALL("broadcast", pthread_cond_broadcast(&cond), 0);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK_TRUE("the older one came back", older.woken);
  CHECK_TRUE("the one that keeps the mutex came back", keeper.woken);
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
  return done();
}
