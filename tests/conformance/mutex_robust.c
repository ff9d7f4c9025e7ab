// Robust mutexes of each type inside one process: an owner that ends, recovery, and giving up on
// it.
// conformance: any-lock
#include "mutex_kinds.h"

typedef struct {
  const char* name;
  int type;
  int pshared;
} RobustKind;

static const RobustKind kKinds[] = {
    {"normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE},
    {"recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PROCESS_PRIVATE},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PROCESS_PRIVATE},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PROCESS_PRIVATE},
    {"shared normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED},
    {"shared recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PROCESS_SHARED},
};

enum { kKindCount = sizeof kKinds / sizeof kKinds[0] };

static pthread_mutex_t mutex;
static int waiting;

static void make_robust(const RobustKind* kind) {
  pthread_mutexattr_t attr;
  MUST(pthread_mutexattr_init(&attr) == 0);
  CHECK_CALL(label(kind->name, "setrobust"),
             pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
  MUST(pthread_mutexattr_settype(&attr, kind->type) == 0);
  MUST(pthread_mutexattr_setpshared(&attr, kind->pshared) == 0);
  memset(&mutex, 0x5a, sizeof mutex);
  CHECK_CALL(label(kind->name, "init"), pthread_mutex_init(&mutex, &attr), 0);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
  printf("%s kind: 0x%x\n", kind->name, (unsigned)DOCUMENTED_KIND(mutex.__data.__kind));
}

static void* lock_and_end(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_lock(&mutex);
}

static void* trylock_and_keep(void* unused) {
  (void)unused;
  int result = pthread_mutex_trylock(&mutex);
  return (void*)(long)result;
}

static void* unlock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_unlock(&mutex);
}

static void* wait_for_it(void* unused) {
  (void)unused;
  set_flag(&waiting);
  int result = pthread_mutex_lock(&mutex);
  if (result == EOWNERDEAD) pthread_mutex_consistent(&mutex);
  pthread_mutex_unlock(&mutex);
  return (void*)(long)result;
}

static void ordinary_use(const RobustKind* kind) {
  int recursive = kind->type == PTHREAD_MUTEX_RECURSIVE;
  CHECK_CALL(label(kind->name, "unlock unlocked"), pthread_mutex_unlock(&mutex), EPERM);
  CHECK_CALL(label(kind->name, "consistent, never inconsistent"), pthread_mutex_consistent(&mutex),
             EINVAL);
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  REPORT(label(kind->name, "owner trylock"), pthread_mutex_trylock(&mutex));
  if (recursive) CHECK_CALL(label(kind->name, "unlock once"), pthread_mutex_unlock(&mutex), 0);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 3);
  int result = pthread_mutex_timedlock(&mutex, &soon);
  CHECK_EQ(label(kind->name, "owner timedlock"), result,
           recursive                                ? 0
           : kind->type == PTHREAD_MUTEX_ERRORCHECK ? EDEADLK
                                                    : ETIMEDOUT);
  if (recursive) CHECK_CALL(label(kind->name, "unlock once"), pthread_mutex_unlock(&mutex), 0);
  CHECK_EQ(label(kind->name, "trylock by another"), (long)on_other_thread(trylock_and_keep, NULL),
           EBUSY);
  CHECK_EQ(label(kind->name, "unlock by another"), (long)on_other_thread(unlock_here, NULL), EPERM);
  CHECK_EQ(label(kind->name, "owner is self"), mutex.__data.__owner == own_tid(), 1);
  REPORT(label(kind->name, "nusers"), mutex.__data.__nusers);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  REPORT(label(kind->name, "nusers"), mutex.__data.__nusers);
}

static void dead_owner(const RobustKind* kind) {
  struct timespec later = deadline_ms(CLOCK_MONOTONIC, 2000);
  CHECK_EQ(label(kind->name, "locked by one that ends"), (long)on_other_thread(lock_and_end, NULL),
           0);
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), EOWNERDEAD);
  CHECK_CALL(label(kind->name, "consistent"), pthread_mutex_consistent(&mutex), 0);
  CHECK_CALL(label(kind->name, "consistent again"), pthread_mutex_consistent(&mutex), EINVAL);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_EQ(label(kind->name, "locked by one that ends"), (long)on_other_thread(lock_and_end, NULL),
           0);
  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex), EOWNERDEAD);
  CHECK_CALL(label(kind->name, "consistent"), pthread_mutex_consistent(&mutex), 0);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  // The one that recovers ends as well, before it has.
  CHECK_EQ(label(kind->name, "locked by one that ends"), (long)on_other_thread(lock_and_end, NULL),
           0);
  CHECK_EQ(label(kind->name, "and by the next"), (long)on_other_thread(lock_and_end, NULL),
           EOWNERDEAD);
  CHECK_CALL(label(kind->name, "clocklock"),
             pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later), EOWNERDEAD);
  // Unlocked without consistent: nobody will ever have it again.
  CHECK_CALL(label(kind->name, "unlock, not consistent"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), ENOTRECOVERABLE);
  CHECK_CALL(label(kind->name, "clocklock"),
             pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later), ENOTRECOVERABLE);
  CHECK_CALL(label(kind->name, "consistent"), pthread_mutex_consistent(&mutex), EINVAL);
  // The last call on it: glibc's trylock leaves such a mutex locked.
  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex), ENOTRECOVERABLE);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

static void* lock_and_end_later(void* unused) {
  (void)unused;
  int result = pthread_mutex_lock(&mutex);
  await_flag(&waiting);
  sleep_ms(5);
  return (void*)(long)result;
}

static void dies_under_a_waiter(const RobustKind* kind) {
  pthread_t owner;
  pthread_t waiter;
  void* result = NULL;
  waiting = 0;
  MUST(pthread_create(&owner, NULL, lock_and_end_later, NULL) == 0);
  while (pthread_mutex_trylock(&mutex) == 0) {
    MUST(pthread_mutex_unlock(&mutex) == 0);
    sleep_ms(1);
  }
  MUST(pthread_create(&waiter, NULL, wait_for_it, NULL) == 0);
  MUST(pthread_join(owner, NULL) == 0);
  MUST(pthread_join(waiter, &result) == 0);
  CHECK_EQ(label(kind->name, "waiter inherits"), (long)result, EOWNERDEAD);
}

int main(void) {
  for (int i = 0; i < kKindCount; i++) {
    make_robust(&kKinds[i]);
    ordinary_use(&kKinds[i]);
    dies_under_a_waiter(&kKinds[i]);
    dead_owner(&kKinds[i]);
  }
  return done();
}
