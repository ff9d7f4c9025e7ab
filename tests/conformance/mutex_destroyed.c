// What each call says about a destroyed mutex (kind -1), and about kinds that nobody defined.
#include "mutex_kinds.h"

static pthread_mutex_t mutex;

static void every_call(const char* what) {
  struct timespec later = deadline_ms(CLOCK_REALTIME, 1000);
  struct timespec later_monotonic = deadline_ms(CLOCK_MONOTONIC, 1000);
  struct timespec invalid = {.tv_sec = later.tv_sec, .tv_nsec = 1000000000L};
  CHECK_CALL(label(what, "lock"), pthread_mutex_lock(&mutex), EINVAL);
  CHECK_CALL(label(what, "trylock"), pthread_mutex_trylock(&mutex), EINVAL);
  CHECK_CALL(label(what, "timedlock"), pthread_mutex_timedlock(&mutex, &later), EINVAL);
  CHECK_CALL(label(what, "timedlock, bad time"), pthread_mutex_timedlock(&mutex, &invalid), EINVAL);
  CHECK_CALL(label(what, "clocklock"),
             pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later_monotonic), EINVAL);
  CHECK_CALL(label(what, "unlock"), pthread_mutex_unlock(&mutex), EINVAL);
  CHECK_CALL(label(what, "consistent"), pthread_mutex_consistent(&mutex), EINVAL);
}

static void destroyed(const MutexKind* kind) {
  make_mutex(&mutex, kind);
  // A used one, so that nothing of its use is left behind either.
  MUST(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
  every_call(kind->name);
  check_fields(label(kind->name, "after all"), &mutex, 0, 0, 0, -1);
  CHECK_CALL(label(kind->name, "destroy again"), pthread_mutex_destroy(&mutex), 0);
  check_fields(label(kind->name, "after that"), &mutex, 0, 0, 0, -1);
  MUST(pthread_mutex_init(&mutex, NULL) == 0);
  CHECK_CALL(label(kind->name, "lock after a new init"), pthread_mutex_lock(&mutex), 0);
  check_fields(label(kind->name, "locked"), &mutex, 1, 0, 1, 0);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) destroyed(&kMutexKinds[i]);

  // The bits of kind -1 look like a robust and protected mutex to these.
  int ceiling = -7;
  memset(&mutex, 0, sizeof mutex);
  mutex.__data.__kind = -1;
  REPORT("getprioceiling", pthread_mutex_getprioceiling(&mutex, &ceiling));
  REPORT("ceiling", ceiling);
  CHECK_CALL("setprioceiling, bad ceiling", pthread_mutex_setprioceiling(&mutex, 1000, &ceiling),
             EINVAL);

  static const int unknown[] = {4, 5, 7, 15, 0x7f};
  for (unsigned i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "kind 0x%x", (unsigned)unknown[i]);
    memset(&mutex, 0, sizeof mutex);
    mutex.__data.__kind = unknown[i];
    REPORT(label(name, "trylock"), pthread_mutex_trylock(&mutex));
  }
  return done();
}
