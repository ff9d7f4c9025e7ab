// The owner comes back while others wait in line for its mutex: it must be recognised before it
// would queue behind them, and the line must survive it.
#include "mutex_kinds.h"

enum { kWaiters = 4 };

static pthread_mutex_t mutex;
static int ready[kWaiters];
static int passed;

static void* wait_in_line(void* number) {
  set_flag(&ready[(long)number]);
  errno = kErrnoSentinel;
  int result = pthread_mutex_lock(&mutex);
  if (errno != kErrnoSentinel) return (void*)1000L;
  passed++;
  if (result == 0) result = pthread_mutex_unlock(&mutex);
  return (void*)(long)result;
}

static void owner_returns(const MutexKind* kind) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 3);
  struct timespec past = {.tv_sec = 1};
  struct timespec before_all = {.tv_sec = -1};
  int recursive = kind->behaviour == kRecursive;
  int again = recursive ? 0 : kind->behaviour == kErrorcheck ? EDEADLK : ETIMEDOUT;
  CHECK_CALL(label(kind->name, "owner trylock"), pthread_mutex_trylock(&mutex),
             recursive ? 0 : EBUSY);
  CHECK_CALL(label(kind->name, "owner timedlock"), pthread_mutex_timedlock(&mutex, &soon), again);
  CHECK_CALL(label(kind->name, "owner timedlock, past"), pthread_mutex_timedlock(&mutex, &past),
             again);
  CHECK_CALL(label(kind->name, "owner timedlock, before 1970"),
             pthread_mutex_timedlock(&mutex, &before_all), again);
  if (kind->behaviour != kPlain) {
    CHECK_CALL(label(kind->name, "owner lock"), pthread_mutex_lock(&mutex), again);
  }
  unsigned count = recursive ? 6 : 0;
  check_fields(label(kind->name, "owner"), &mutex, 1, count, 1, kind->kind);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), EBUSY);
  while (recursive && --count >= 1) {
    CHECK_CALL(label(kind->name, "unlock once"), pthread_mutex_unlock(&mutex), 0);
  }
}

static void with_line(const MutexKind* kind) {
  pthread_t threads[kWaiters];
  make_mutex(&mutex, kind);
  memset(ready, 0, sizeof ready);
  passed = 0;
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  for (long i = 0; i < kWaiters; i++) {
    MUST(pthread_create(&threads[i], NULL, wait_in_line, (void*)i) == 0);
  }
  for (int i = 0; i < kWaiters; i++) await_flag(&ready[i]);
  sleep_ms(10);
  owner_returns(kind);
  if (kind->behaviour == kRecursive) {
    // Down to one hold: still ours alone.
    sleep_ms(2);
    CHECK_EQ(label(kind->name, "passed while held"), passed, 0);
  }
  CHECK_CALL(label(kind->name, "last unlock"), pthread_mutex_unlock(&mutex), 0);
  long bad = 0;
  for (int i = 0; i < kWaiters; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    bad += (long)result;
  }
  CHECK_EQ(label(kind->name, "passed"), passed, kWaiters);
  CHECK_EQ(label(kind->name, "failed"), bad, 0);
  check_fields(label(kind->name, "at the end"), &mutex, 0, 0, 0, kind->kind);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) with_line(&kMutexKinds[i]);
  return done();
}
