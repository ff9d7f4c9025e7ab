// The user count of a mutex. A thread that waits on a condition variable still uses the mutex it
// gave back, so destroying that mutex is refused, though trylock finds it free.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 3 };

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;  // under the mutex
static int go_on;    // under the mutex

static void unlock_mutex(void* unused) {
  (void)unused;
  pthread_mutex_unlock(&mutex);
}

static void* wait_for_go(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++waiting;
  pthread_cleanup_push(unlock_mutex, NULL);
  while (!go_on) pthread_cond_wait(&cond, &mutex);
  pthread_cleanup_pop(1);
  return NULL;
}

static void* wait_briefly(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 5);
  int result = pthread_cond_timedwait(&cond, &mutex, &soon);
  pthread_mutex_unlock(&mutex);
  return (void*)(long)result;
}

static void users(const char* title, int type, int protocol, int shared) {
  printf("%s\n", title);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  pthread_mutexattr_setpshared(&attributes, shared);
  MUST(pthread_mutex_init(&mutex, &attributes) == 0);
  waiting = 0;
  go_on = 0;
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, wait_for_go, NULL);
  MUST(await_count(&mutex, &waiting, kWaiters));
  CHECK_EQ("users while they wait", mutex.__data.__nusers, kWaiters);
  CHECK_CALL("destroy while they wait", pthread_mutex_destroy(&mutex), EBUSY);
  CHECK_CALL("trylock while they wait", pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL("destroy while locked", pthread_mutex_destroy(&mutex), EBUSY);
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  pthread_cancel(threads[0]);
  pthread_join(threads[0], NULL);
  CHECK_CALL("destroy after one was cancelled", pthread_mutex_destroy(&mutex), EBUSY);
  CHECK_EQ("another times out", (long)on_other_thread(wait_briefly, NULL), ETIMEDOUT);
  pthread_mutex_lock(&mutex);
  go_on = 1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  for (int i = 1; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  CHECK_CALL("destroy when all have left", pthread_mutex_destroy(&mutex), 0);
  CHECK_CALL("lock after destroy", pthread_mutex_lock(&mutex), EINVAL);
}

int main(void) {
  static const struct {
    const char* name;
    int type;
  } kTypes[] = {{"normal", PTHREAD_MUTEX_NORMAL},
                {"default", PTHREAD_MUTEX_DEFAULT},
                {"recursive", PTHREAD_MUTEX_RECURSIVE},
                {"error-checking", PTHREAD_MUTEX_ERRORCHECK},
                {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP}};
  for (unsigned i = 0; i < sizeof kTypes / sizeof kTypes[0]; ++i) {
    const char* name = kTypes[i].name;
    const int type = kTypes[i].type;
    users(name, type, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
    users(label(name, "priority-inherit"), type, PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE);
    users(label(name, "process-shared"), type, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
  }
  CHECK_CALL("destroy the condition variable", pthread_cond_destroy(&cond), 0);
  return done();
}
