// A condition variable works with every kind of mutex, also with those that stay the C library's
// own: robust, priority inheriting, priority protected, shared between processes.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 4, kRounds = 40 };

static pthread_mutex_t mutex;
static pthread_cond_t cond;
static pthread_cond_t came;
static int waiting;  // under the mutex, like all that follows
static int generation;
static int tokens;
static int bad_results;

static void init_mutex(int type, int robust, int protocol, int shared) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  MUST(pthread_mutexattr_settype(&attributes, type) == 0);
  MUST(pthread_mutexattr_setrobust(&attributes, robust) == 0);
  MUST(pthread_mutexattr_setprotocol(&attributes, protocol) == 0);
  MUST(pthread_mutexattr_setpshared(&attributes, shared) == 0);
  MUST(pthread_mutex_init(&mutex, &attributes) == 0);
  MUST(pthread_cond_init(&cond, NULL) == 0 && pthread_cond_init(&came, NULL) == 0);
  waiting = generation = tokens = bad_results = 0;
}

static void* follow_generations(void* unused) {
  (void)unused;
  for (int round = 0; round < kRounds; ++round) {
    bad_results += pthread_mutex_lock(&mutex) != 0;
    int seen = generation;
    if (++waiting == kWaiters) pthread_cond_signal(&came);
    while (generation == seen) {
      struct timespec far = deadline_ms(CLOCK_MONOTONIC, 60000);
      int result = round % 2 == 0 ? pthread_cond_wait(&cond, &mutex)
                                  : pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &far);
      bad_results += result != 0;
    }
    bad_results += pthread_mutex_unlock(&mutex) != 0;
  }
  return NULL;
}

static int broadcasts(void) {
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, follow_generations, NULL);
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(&mutex);
    while (waiting < kWaiters) pthread_cond_wait(&came, &mutex);
    waiting = 0;
    ++generation;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
  }
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  return generation == kRounds && bad_results == 0;
}

static void* take_tokens(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&mutex);
    while (tokens == 0) bad_results += pthread_cond_wait(&cond, &mutex) != 0;
    --tokens;
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static int signals(void) {
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, take_tokens, NULL);
  for (int i = 0; i < kWaiters * kRounds; ++i) {
    pthread_mutex_lock(&mutex);
    ++tokens;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
  }
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  return tokens == 0 && bad_results == 0;
}

static void* wait_to_be_cancelled(void* tid) {
  pthread_mutex_lock(&mutex);
  *(int*)tid = thread_id();
  pthread_cleanup_push(unlock_at_cleanup, &mutex);
  for (;;) pthread_cond_wait(&cond, &mutex);
  pthread_cleanup_pop(1);
  return NULL;
}

static int cancelled(void) {
  pthread_t thread;
  int tid = 0;
  void* result = NULL;
  pthread_create(&thread, NULL, wait_to_be_cancelled, &tid);
  if (!await_count(&mutex, &tid, 1)) return 0;
  pthread_cancel(thread);
  pthread_join(thread, &result);
  int locked = pthread_mutex_trylock(&mutex);
  if (locked == 0) pthread_mutex_unlock(&mutex);
  return result == PTHREAD_CANCELED && locked == 0;
}

static void one_kind(const char* title, int type, int robust, int protocol, int shared) {
  printf("%s\n", title);
  init_mutex(type, robust, protocol, shared);
  CHECK_TRUE("broadcasts", broadcasts());
  CHECK_TRUE("signals", signals());
  pthread_mutex_lock(&mutex);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 3);
  CHECK_CALL("timedwait", pthread_cond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  CHECK_TRUE("cancelled with the mutex held", cancelled());
  CHECK_CALL("destroy the condition variable", pthread_cond_destroy(&cond), 0);
  CHECK_CALL("destroy the mutex", pthread_mutex_destroy(&mutex), 0);
}

// The owner of a robust mutex dies while others wait on the condition variable.
static int owner_tid;

static void* die_as_owner(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&cond);
  __atomic_store_n(&owner_tid, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void* wait_for_dead_owner(void* timed) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 60000);
  pthread_mutex_lock(&mutex);
  waiting = 1;
  long result = timed != NULL ? pthread_cond_timedwait(&cond, &mutex, &soon)
                              : pthread_cond_wait(&cond, &mutex);
  if (result == EOWNERDEAD) pthread_mutex_consistent(&mutex);
  pthread_mutex_unlock(&mutex);
  return (void*)result;
}

static void dead_owner(int timed) {
  init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE,
             PTHREAD_PROCESS_PRIVATE);
  pthread_t waiter;
  void* result = NULL;
  pthread_create(&waiter, NULL, wait_for_dead_owner, timed ? &mutex : NULL);
  MUST(await_count(&mutex, &waiting, 1));
  on_other_thread(die_as_owner, NULL);
  pthread_join(waiter, &result);
  CHECK_EQ(timed ? "dead owner: timedwait" : "dead owner: wait", (long)result, EOWNERDEAD);
  CHECK_CALL("consistent again: lock", pthread_mutex_lock(&mutex), 0);
  CHECK_CALL("consistent again: unlock", pthread_mutex_unlock(&mutex), 0);
}

int main(void) {
  const int stalled = PTHREAD_MUTEX_STALLED;
  const int robust = PTHREAD_MUTEX_ROBUST;
  const int none = PTHREAD_PRIO_NONE;
  const int mine = PTHREAD_PROCESS_PRIVATE;
  const int shared = PTHREAD_PROCESS_SHARED;
  one_kind("normal", PTHREAD_MUTEX_NORMAL, stalled, none, mine);
  one_kind("default", PTHREAD_MUTEX_DEFAULT, stalled, none, mine);
  one_kind("recursive", PTHREAD_MUTEX_RECURSIVE, stalled, none, mine);
  one_kind("error-checking", PTHREAD_MUTEX_ERRORCHECK, stalled, none, mine);
  one_kind("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, stalled, none, mine);
  one_kind("robust", PTHREAD_MUTEX_NORMAL, robust, none, mine);
  one_kind("robust, recursive", PTHREAD_MUTEX_RECURSIVE, robust, none, mine);
  one_kind("priority inheriting", PTHREAD_MUTEX_NORMAL, stalled, PTHREAD_PRIO_INHERIT, mine);
  one_kind("priority inheriting, robust, error-checking", PTHREAD_MUTEX_ERRORCHECK, robust,
           PTHREAD_PRIO_INHERIT, mine);
  one_kind("process-shared", PTHREAD_MUTEX_NORMAL, stalled, none, shared);
  one_kind("process-shared, robust", PTHREAD_MUTEX_NORMAL, robust, none, shared);
  dead_owner(0);
  dead_owner(1);
  return done();
}
