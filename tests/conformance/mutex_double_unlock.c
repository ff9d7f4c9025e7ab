// A normal mutex survives being unlocked while it is not locked, and excludes as before afterwards.
#include "mutex_kinds.h"

enum { kThreads = 4, kRounds = 500, kExtraUnlocks = 3 };

static pthread_mutex_t mutex;
static long counter;
static int inside;
static int overlaps;

static void* count_up(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds; i++) {
    if (pthread_mutex_lock(&mutex) != 0) return (void*)1L;
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) != 0) {
      __atomic_fetch_add(&overlaps, 1, __ATOMIC_RELAXED);
    }
    counter++;
    __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
    if (pthread_mutex_unlock(&mutex) != 0) return (void*)2L;
  }
  return NULL;
}

static void contend(const char* name) {
  pthread_t threads[kThreads];
  long bad = 0;
  counter = 0;
  for (int i = 0; i < kThreads; i++) MUST(pthread_create(&threads[i], NULL, count_up, NULL) == 0);
  for (int i = 0; i < kThreads; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    bad += (long)result;
  }
  CHECK_EQ(label(name, "counted"), counter, (long)kThreads * kRounds);
  CHECK_EQ(label(name, "overlaps"), overlaps, 0);
  CHECK_EQ(label(name, "failed calls"), bad, 0);
}

static void fresh_then_unlocked(const MutexKind* kind) {
  make_mutex(&mutex, kind);
  for (int i = 0; i < kExtraUnlocks; i++) {
    CHECK_CALL(label(kind->name, "unlock of a fresh one"), pthread_mutex_unlock(&mutex), 0);
  }
  unsigned users = 0u - kExtraUnlocks;
  check_fields(label(kind->name, "then"), &mutex, 0, 0, users, kind->kind);
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  check_fields(label(kind->name, "locked"), &mutex, 1, 0, users + 1, kind->kind);
  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "second unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL(label(kind->name, "trylock again"), pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  contend(kind->name);
}

static void used_then_unlocked(const MutexKind* kind) {
  contend(label(kind->name, "before"));
  for (int i = 0; i < kExtraUnlocks; i++) {
    CHECK_CALL(label(kind->name, "unlock of a used one"), pthread_mutex_unlock(&mutex), 0);
  }
  contend(label(kind->name, "after"));
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), EBUSY);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    if (kMutexKinds[i].behaviour != kPlain) continue;
    fresh_then_unlocked(&kMutexKinds[i]);
    used_then_unlocked(&kMutexKinds[i]);
  }
  return done();
}
