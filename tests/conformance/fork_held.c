// Mutexes that the forking thread holds. The child's thread has another id, so to the types that
// know their owner it is a stranger; a normal mutex does not care.
#include "check.h"
#include "hammer.h"

static pthread_mutex_t mutex;

static void init_mutex(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  MUST(pthread_mutex_init(&mutex, &attributes) == 0);
}

static void child_of_a_stranger(void) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 10);
  CHECK_CALL("child: unlock", pthread_mutex_unlock(&mutex), EPERM);
  CHECK_CALL("child: trylock", pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL("child: timedlock", pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
  CHECK_CALL("child: destroy", pthread_mutex_destroy(&mutex), EBUSY);
  CHECK_CALL("child: init over it", pthread_mutex_init(&mutex, NULL), 0);
  CHECK_TRUE("child: and use it", tally(&mutex, 3, 200));
  _exit(done());
}

static void child_of_a_normal(void) {
  CHECK_CALL("child: trylock", pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL("child: unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("child: lock", pthread_mutex_lock(&mutex), 0);
  CHECK_CALL("child: unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_TRUE("child: threads", tally(&mutex, 3, 200));
  CHECK_CALL("child: destroy", pthread_mutex_destroy(&mutex), 0);
  _exit(done());
}

static void* queue_up(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void fork_holding(const char* title, int type, int depth, void (*child_work)(void)) {
  check_line(title, depth);
  init_mutex(type);
  for (int i = 0; i < depth; ++i) pthread_mutex_lock(&mutex);
  pthread_t waiters[3];
  for (int i = 0; i < 3; ++i) pthread_create(&waiters[i], NULL, queue_up, NULL);
  sleep_ms(3);
  pid_t child = fork();
  if (child == 0) child_work();
  CHECK_EQ("child's status", child_status(child), 0);
  CHECK_CALL("parent: trylock", pthread_mutex_trylock(&mutex),
             type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY);
  if (type == PTHREAD_MUTEX_RECURSIVE) pthread_mutex_unlock(&mutex);
  for (int i = 0; i < depth; ++i) CHECK_CALL("parent: unlock", pthread_mutex_unlock(&mutex), 0);
  for (int i = 0; i < 3; ++i) pthread_join(waiters[i], NULL);
  CHECK_CALL("parent: destroy", pthread_mutex_destroy(&mutex), 0);
}

static void* fork_from_thread(void* unused) {
  (void)unused;
  fork_holding("recursive, in another thread", PTHREAD_MUTEX_RECURSIVE, 1, child_of_a_stranger);
  return NULL;
}

int main(void) {
  fork_holding("recursive", PTHREAD_MUTEX_RECURSIVE, 2, child_of_a_stranger);
  fork_holding("error-checking", PTHREAD_MUTEX_ERRORCHECK, 1, child_of_a_stranger);
  fork_holding("normal", PTHREAD_MUTEX_NORMAL, 1, child_of_a_normal);
  fork_holding("default", PTHREAD_MUTEX_DEFAULT, 1, child_of_a_normal);
  fork_holding("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 1, child_of_a_normal);
  on_other_thread(fork_from_thread, NULL);
  return done();
}
