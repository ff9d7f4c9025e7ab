// The fields that glibc documents through its debugger support, after each step of each kind.
#include "mutex_kinds.h"

static const MutexKind* kind;
static pthread_mutex_t mutex;

static void fields(const char* step, int owned, unsigned count, unsigned users) {
  check_fields(label(kind->name, step), &mutex, owned, count, users, kind->kind);
}

static void* try_from_outside(void* result) {
  *(int*)result = pthread_mutex_trylock(&mutex);
  return NULL;
}

static void lock_and_unlock(void) {
  unsigned count = kind->behaviour == kRecursive ? 1 : 0;
  fields("fresh", 0, 0, 0);
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  fields("locked", 1, count, 1);
  int result = -1;
  on_other_thread(try_from_outside, &result);
  CHECK_EQ(label(kind->name, "trylock from outside"), result, EBUSY);
  fields("after that", 1, count, 1);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  fields("unlocked", 0, 0, 0);

  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex), 0);
  fields("trylocked", 1, count, 1);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);

  struct timespec at = deadline_ms(CLOCK_REALTIME, 1000);
  CHECK_CALL(label(kind->name, "timedlock"), pthread_mutex_timedlock(&mutex, &at), 0);
  fields("timedlocked", 1, count, 1);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);

  at = deadline_ms(CLOCK_MONOTONIC, 1000);
  CHECK_CALL(label(kind->name, "clocklock"), pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at),
             0);
  fields("clocklocked", 1, count, 1);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  fields("unlocked", 0, 0, 0);
}

// The owner comes back with every call there is.
static void lock_again(void) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 5);
  struct timespec soon_monotonic = deadline_ms(CLOCK_MONOTONIC, 5);
  int again = kind->behaviour == kRecursive    ? 0
              : kind->behaviour == kErrorcheck ? EDEADLK
                                               : ETIMEDOUT;
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  CHECK_CALL(label(kind->name, "owner trylock"), pthread_mutex_trylock(&mutex),
             kind->behaviour == kRecursive ? 0 : EBUSY);
  CHECK_CALL(label(kind->name, "owner timedlock"), pthread_mutex_timedlock(&mutex, &soon), again);
  CHECK_CALL(label(kind->name, "owner clocklock"),
             pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon_monotonic), again);
  if (kind->behaviour != kPlain) {
    CHECK_CALL(label(kind->name, "owner lock"), pthread_mutex_lock(&mutex), again);
  }
  if (kind->behaviour == kRecursive) {
    fields("five times", 1, 5, 1);
    for (int left = 4; left >= 1; left--) {
      CHECK_CALL(label(kind->name, "unlock once"), pthread_mutex_unlock(&mutex), 0);
      fields("still locked", 1, (unsigned)left, 1);
    }
  } else {
    fields("locked", 1, 0, 1);
  }
  CHECK_CALL(label(kind->name, "last unlock"), pthread_mutex_unlock(&mutex), 0);
  fields("unlocked", 0, 0, 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    kind = &kMutexKinds[i];
    make_mutex(&mutex, kind);
    lock_and_unlock();
    lock_again();
    CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
    CHECK_EQ(label(kind->name, "destroyed kind"), DOCUMENTED_KIND(mutex.__data.__kind), -1);
  }
  return done();
}
