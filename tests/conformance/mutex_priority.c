// Priority-inherit and priority-protect mutexes, by plain calls, and the two ceiling calls on every
// kind of mutex. What needs a privilege is compared with the bare run only.
// conformance: any-lock
#include "mutex_kinds.h"

#include <sched.h>

// An attribute whose type was never set differs from one that was set to normal.
enum { kNoType = -1 };

static pthread_mutex_t mutex;

static int make_with(int type, int protocol, int ceiling, int pshared) {
  pthread_mutexattr_t attr;
  MUST(pthread_mutexattr_init(&attr) == 0);
  if (type != kNoType) MUST(pthread_mutexattr_settype(&attr, type) == 0);
  MUST(pthread_mutexattr_setprotocol(&attr, protocol) == 0);
  MUST(pthread_mutexattr_setpshared(&attr, pshared) == 0);
  if (ceiling != 0) MUST(pthread_mutexattr_setprioceiling(&attr, ceiling) == 0);
  memset(&mutex, 0x5a, sizeof mutex);
  int result = pthread_mutex_init(&mutex, &attr);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
  return result;
}

static void* trylock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_trylock(&mutex);
}

static void* unlock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_unlock(&mutex);
}

static void* timedlock_here(void* unused) {
  (void)unused;
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 3);
  return (void*)(long)pthread_mutex_timedlock(&mutex, &soon);
}

static void* clocklock_here(void* unused) {
  (void)unused;
  struct timespec soon = deadline_ms(CLOCK_MONOTONIC, 3);
  return (void*)(long)pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon);
}

static void inherit(const char* name, int type, int pshared) {
  int result = make_with(type, PTHREAD_PRIO_INHERIT, 0, pshared);
  REPORT(label(name, "init"), result);
  if (result != 0) return;
  REPORT(label(name, "kind"), DOCUMENTED_KIND(mutex.__data.__kind));
  REPORT(label(name, "unlock unlocked"), pthread_mutex_unlock(&mutex));
  REPORT(label(name, "nusers"), mutex.__data.__nusers);
  CHECK_CALL(label(name, "lock"), pthread_mutex_lock(&mutex), 0);
  CHECK_EQ(label(name, "owner is self"), mutex.__data.__owner == own_tid(), 1);
  REPORT(label(name, "nusers"), mutex.__data.__nusers);
  REPORT(label(name, "owner trylock"), pthread_mutex_trylock(&mutex));
  if (type == PTHREAD_MUTEX_RECURSIVE) MUST(pthread_mutex_unlock(&mutex) == 0);
  if (type == PTHREAD_MUTEX_ERRORCHECK) {
    CHECK_CALL(label(name, "owner lock"), pthread_mutex_lock(&mutex), EDEADLK);
  }
  CHECK_EQ(label(name, "trylock by another"), (long)on_other_thread(trylock_here, NULL), EBUSY);
  CHECK_EQ(label(name, "timedlock by another"), (long)on_other_thread(timedlock_here, NULL),
           ETIMEDOUT);
  REPORT(label(name, "clocklock monotonic by another"),
         (long)on_other_thread(clocklock_here, NULL));
  CHECK_EQ(label(name, "unlock by another"), (long)on_other_thread(unlock_here, NULL), EPERM);
  CHECK_CALL(label(name, "destroy locked"), pthread_mutex_destroy(&mutex), EBUSY);
  CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  REPORT(label(name, "getprioceiling"), pthread_mutex_getprioceiling(&mutex, &result));
  CHECK_CALL(label(name, "destroy"), pthread_mutex_destroy(&mutex), 0);
  REPORT(label(name, "destroyed kind"), DOCUMENTED_KIND(mutex.__data.__kind));
}

static void protect(const char* name, int type) {
  int lowest = sched_get_priority_min(SCHED_FIFO);
  int highest = sched_get_priority_max(SCHED_FIFO);
  int ceiling = -1;
  CHECK_EQ(label(name, "init"),
           make_with(type, PTHREAD_PRIO_PROTECT, lowest + 3, PTHREAD_PROCESS_PRIVATE), 0);
  REPORT(label(name, "kind"), DOCUMENTED_KIND(mutex.__data.__kind));
  CHECK_CALL(label(name, "getprioceiling"), pthread_mutex_getprioceiling(&mutex, &ceiling), 0);
  CHECK_EQ(label(name, "ceiling"), ceiling, lowest + 3);
  CHECK_CALL(label(name, "setprioceiling too high"),
             pthread_mutex_setprioceiling(&mutex, highest + 1, &ceiling), EINVAL);
  CHECK_CALL(label(name, "setprioceiling too low"),
             pthread_mutex_setprioceiling(&mutex, lowest - 1, &ceiling), EINVAL);
  CHECK_CALL(label(name, "setprioceiling"),
             pthread_mutex_setprioceiling(&mutex, lowest + 7, &ceiling), 0);
  CHECK_EQ(label(name, "old ceiling"), ceiling, lowest + 3);
  CHECK_CALL(label(name, "getprioceiling"), pthread_mutex_getprioceiling(&mutex, &ceiling), 0);
  CHECK_EQ(label(name, "ceiling"), ceiling, lowest + 7);
  int locked = pthread_mutex_lock(&mutex);
  REPORT(label(name, "lock"), locked);
  if (locked == 0) {
    REPORT(label(name, "owner trylock"), pthread_mutex_trylock(&mutex));
    if (type == PTHREAD_MUTEX_RECURSIVE) MUST(pthread_mutex_unlock(&mutex) == 0);
    REPORT(label(name, "trylock by another"), (long)on_other_thread(trylock_here, NULL));
    REPORT(label(name, "timedlock by another"), (long)on_other_thread(timedlock_here, NULL));
    REPORT(label(name, "clocklock by another"), (long)on_other_thread(clocklock_here, NULL));
    REPORT(label(name, "nusers"), mutex.__data.__nusers);
    if (type == PTHREAD_MUTEX_ERRORCHECK) {
      REPORT(label(name, "owner setprioceiling"),
             pthread_mutex_setprioceiling(&mutex, lowest + 8, &ceiling));
    }
    CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  }
  CHECK_CALL(label(name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

// Only a thread with a real-time priority can be raised to a ceiling. Nothing waits in here, so a
// privileged run holds up nobody; the thread that was raised ends afterwards.
static void* protect_with_priority(void* unused) {
  (void)unused;
  struct sched_param high = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  int result = pthread_setschedparam(pthread_self(), SCHED_FIFO, &high);
  REPORT("real-time priority", result);
  if (result != 0) return NULL;
  protect("real-time untyped", kNoType);
  protect("real-time normal", PTHREAD_MUTEX_NORMAL);
  protect("real-time recursive", PTHREAD_MUTEX_RECURSIVE);
  protect("real-time errorcheck", PTHREAD_MUTEX_ERRORCHECK);
  return NULL;
}

static void ceilings_of_others(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    const MutexKind* kind = &kMutexKinds[i];
    int ceiling = -9;
    make_mutex(&mutex, kind);
    CHECK_CALL(label(kind->name, "getprioceiling"), pthread_mutex_getprioceiling(&mutex, &ceiling),
               EINVAL);
    CHECK_CALL(label(kind->name, "setprioceiling"),
               pthread_mutex_setprioceiling(&mutex, 10, &ceiling), EINVAL);
    CHECK_EQ(label(kind->name, "ceiling untouched"), ceiling, -9);
    CHECK_CALL(label(kind->name, "consistent"), pthread_mutex_consistent(&mutex), EINVAL);
    CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
    CHECK_CALL(label(kind->name, "consistent, locked"), pthread_mutex_consistent(&mutex), EINVAL);
    CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
    check_fields(kind->name, &mutex, 0, 0, 0, kind->kind);
  }
}

int main(void) {
  inherit("inherit untyped", kNoType, PTHREAD_PROCESS_PRIVATE);
  inherit("inherit normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE);
  inherit("inherit recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PROCESS_PRIVATE);
  inherit("inherit errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PROCESS_PRIVATE);
  inherit("inherit adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PROCESS_PRIVATE);
  inherit("inherit shared", PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED);
  protect("protect untyped", kNoType);
  on_other_thread(protect_with_priority, NULL);
  protect("protect normal", PTHREAD_MUTEX_NORMAL);
  protect("protect recursive", PTHREAD_MUTEX_RECURSIVE);
  protect("protect errorcheck", PTHREAD_MUTEX_ERRORCHECK);
  protect("protect adaptive", PTHREAD_MUTEX_ADAPTIVE_NP);
  ceilings_of_others();
  return done();
}
