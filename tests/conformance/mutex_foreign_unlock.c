// Unlock by a thread that does not own the mutex: works for the plain types, EPERM for the others.
#include "mutex_kinds.h"

enum { kRounds = 200 };

static pthread_mutex_t mutex;

static void* unlock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_unlock(&mutex);
}

static void* lock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_lock(&mutex);
}

static void* unlock_late(void* unused) {
  (void)unused;
  sleep_ms(20);
  return (void*)(long)pthread_mutex_unlock(&mutex);
}

static void strangers(const MutexKind* kind) {
  make_mutex(&mutex, kind);
  int plain = kind->behaviour == kPlain;
  unsigned count = kind->behaviour == kRecursive ? 1 : 0;
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  CHECK_EQ(label(kind->name, "unlock by another"), (long)on_other_thread(unlock_here, NULL),
           plain ? 0 : EPERM);
  if (!plain) {
    check_fields(label(kind->name, "still ours"), &mutex, 1, count, 1, kind->kind);
    CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
    // An owner that is gone leaves a mutex that nobody may unlock.
    CHECK_EQ(label(kind->name, "locked by a thread that ends"),
             (long)on_other_thread(lock_here, NULL), 0);
    CHECK_CALL(label(kind->name, "unlock for it"), pthread_mutex_unlock(&mutex), EPERM);
    CHECK_CALL(label(kind->name, "trylock after it"), pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), EBUSY);
    return;
  }
  check_fields(label(kind->name, "unlocked"), &mutex, 0, 0, 0, kind->kind);
  CHECK_EQ(label(kind->name, "lock by another"), (long)on_other_thread(lock_here, NULL), 0);
  CHECK_CALL(label(kind->name, "unlock here"), pthread_mutex_unlock(&mutex), 0);

  // The owner itself waits for its own mutex until somebody else unlocks it.
  pthread_t thread;
  void* result = (void*)-1L;
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  MUST(pthread_create(&thread, NULL, unlock_late, NULL) == 0);
  CHECK_CALL(label(kind->name, "lock again"), pthread_mutex_lock(&mutex), 0);
  MUST(pthread_join(thread, &result) == 0);
  CHECK_EQ(label(kind->name, "unlock in between"), (long)result, 0);
  CHECK_EQ(label(kind->name, "owner is self"), mutex.__data.__owner == own_tid(), 1);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
}

// The mutex as a semaphore: one thread only locks, the other only unlocks, many times.
static pthread_mutex_t ping = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pong = PTHREAD_MUTEX_INITIALIZER;
static int turns;

static void* answer(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds; i++) {
    if (pthread_mutex_lock(&ping) != 0) return (void*)1L;
    turns++;
    if (pthread_mutex_unlock(&pong) != 0) return (void*)2L;
  }
  return NULL;
}

static void as_semaphores(const MutexKind* kind) {
  pthread_t thread;
  void* result = (void*)-1L;
  long bad = 0;
  make_mutex(&ping, kind);
  make_mutex(&pong, kind);
  turns = 0;
  MUST(pthread_mutex_lock(&ping) == 0 && pthread_mutex_lock(&pong) == 0);
  MUST(pthread_create(&thread, NULL, answer, NULL) == 0);
  for (int i = 0; i < kRounds; i++) {
    bad += turns != i;
    bad += pthread_mutex_unlock(&ping) != 0;
    bad += pthread_mutex_lock(&pong) != 0;
  }
  MUST(pthread_join(thread, &result) == 0);
  CHECK_EQ(label(kind->name, "semaphore turns"), turns, kRounds);
  CHECK_EQ(label(kind->name, "turns out of order"), bad, 0);
  CHECK_EQ(label(kind->name, "other side"), (long)result, 0);
  CHECK_CALL(label(kind->name, "both are locked"), pthread_mutex_trylock(&ping), EBUSY);
  CHECK_CALL(label(kind->name, "both are locked"), pthread_mutex_trylock(&pong), EBUSY);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&ping), 0);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&pong), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&ping), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&pong), 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) strangers(&kMutexKinds[i]);
  for (int i = 0; i < kMutexKindCount; i++) {
    if (kMutexKinds[i].behaviour == kPlain) as_semaphores(&kMutexKinds[i]);
  }
  return done();
}
