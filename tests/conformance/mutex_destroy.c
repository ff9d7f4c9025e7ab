// When destroy says EBUSY: by the number of users that glibc keeps, not by the lock word.
#include "mutex_kinds.h"

static pthread_mutex_t mutex;

static void* unlock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_mutex_unlock(&mutex);
}

static void locked_one(const MutexKind* kind) {
  make_mutex(&mutex, kind);
  unsigned count = kind->behaviour == kRecursive ? 1 : 0;
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  CHECK_CALL(label(kind->name, "destroy locked"), pthread_mutex_destroy(&mutex), EBUSY);
  check_fields(label(kind->name, "still works"), &mutex, 1, count, 1, kind->kind);
  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex),
             kind->behaviour == kRecursive ? 0 : EBUSY);
  if (kind->behaviour == kRecursive) MUST(pthread_mutex_unlock(&mutex) == 0);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

// glibc counts the users of an unlocked normal mutex down past zero: destroy finds it in use.
static void unlocked_twice(const MutexKind* kind) {
  make_mutex(&mutex, kind);
  int plain = kind->behaviour == kPlain;
  CHECK_CALL(label(kind->name, "unlock unlocked"), pthread_mutex_unlock(&mutex), plain ? 0 : EPERM);
  check_fields(label(kind->name, "then"), &mutex, 0, 0, plain ? 0xffffffffu : 0, kind->kind);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), plain ? EBUSY : 0);
  if (!plain) return;
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  check_fields(label(kind->name, "counted back"), &mutex, 1, 0, 0, kind->kind);
  CHECK_CALL(label(kind->name, "destroy while locked"), pthread_mutex_destroy(&mutex), 0);
  make_mutex(&mutex, kind);
  CHECK_CALL(label(kind->name, "made anew, lock"), pthread_mutex_lock(&mutex), 0);
  check_fields(label(kind->name, "made anew"), &mutex, 1, 0, 1, kind->kind);
  CHECK_EQ(label(kind->name, "unlock by another"), (long)on_other_thread(unlock_here, NULL), 0);
  check_fields(label(kind->name, "unlocked"), &mutex, 0, 0, 0, kind->kind);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

// Init over a locked mutex makes a new, unlocked one.
static void init_over_locked(void) {
  pthread_mutexattr_t attr;
  MUST(pthread_mutexattr_init(&attr) == 0);
  MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
  MUST(pthread_mutex_init(&mutex, NULL) == 0);
  CHECK_CALL("lock", pthread_mutex_lock(&mutex), 0);
  CHECK_CALL("init over it", pthread_mutex_init(&mutex, &attr), 0);
  check_fields("new", &mutex, 0, 0, 0, PTHREAD_MUTEX_RECURSIVE_NP);
  CHECK_CALL("lock", pthread_mutex_lock(&mutex), 0);
  CHECK_CALL("lock again", pthread_mutex_lock(&mutex), 0);
  CHECK_CALL("init over it", pthread_mutex_init(&mutex, NULL), 0);
  check_fields("new", &mutex, 0, 0, 0, 0);
  CHECK_CALL("trylock", pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    locked_one(&kMutexKinds[i]);
    unlocked_twice(&kMutexKinds[i]);
  }
  init_over_locked();
  return done();
}
