// Readers-writer locks: the result of every call in every state, for every kind and initialiser.
// conformance: any-lock
#include "check.h"

typedef struct {
  const char* name;
  int kind;  // -1: the static initialiser, -2: init with NULL, -3: the static one that prefers
             // writers
  int pshared;
} RwKind;

static const RwKind kKinds[] = {
    {"static", -1, 0},
    {"static writer", -3, 0},
    {"init NULL", -2, 0},
    {"prefer reader", PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_PRIVATE},
    {"prefer writer", PTHREAD_RWLOCK_PREFER_WRITER_NP, PTHREAD_PROCESS_PRIVATE},
    {"nonrecursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_PRIVATE},
    {"shared", PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_SHARED},
    {"shared nonrecursive", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_SHARED},
};

enum { kKindCount = sizeof kKinds / sizeof kKinds[0] };

static pthread_rwlock_t lock;

static void make(const RwKind* kind) {
  static const pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
  static const pthread_rwlock_t writer = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
  memset(&lock, 0x5a, sizeof lock);
  if (kind->kind == -1) {
    lock = plain;
  } else if (kind->kind == -3) {
    lock = writer;
  } else if (kind->kind == -2) {
    MUST(pthread_rwlock_init(&lock, NULL) == 0);
  } else {
    pthread_rwlockattr_t attr;
    MUST(pthread_rwlockattr_init(&attr) == 0);
    MUST(pthread_rwlockattr_setkind_np(&attr, kind->kind) == 0);
    MUST(pthread_rwlockattr_setpshared(&attr, kind->pshared) == 0);
    MUST(pthread_rwlock_init(&lock, &attr) == 0);
    MUST(pthread_rwlockattr_destroy(&attr) == 0);
  }
}

// What another thread gets, as one number for each call: none of them waits for long.
typedef struct {
  int tryread, trywrite, timedread, timedwrite, clockread, clockwrite;
} Seen;

static int and_unlock(int result) {
  if (result == 0) MUST(pthread_rwlock_unlock(&lock) == 0);
  return result;
}

static void* look(void* into) {
  Seen* seen = into;
  errno = kErrnoSentinel;
  seen->tryread = and_unlock(pthread_rwlock_tryrdlock(&lock));
  seen->trywrite = and_unlock(pthread_rwlock_trywrlock(&lock));
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 2);
  seen->timedread = and_unlock(pthread_rwlock_timedrdlock(&lock, &soon));
  soon = deadline_ms(CLOCK_REALTIME, 2);
  seen->timedwrite = and_unlock(pthread_rwlock_timedwrlock(&lock, &soon));
  soon = deadline_ms(CLOCK_MONOTONIC, 2);
  seen->clockread = and_unlock(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &soon));
  soon = deadline_ms(CLOCK_MONOTONIC, 2);
  seen->clockwrite = and_unlock(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &soon));
  if (errno != kErrnoSentinel) seen->tryread = 1000;
  return NULL;
}

static void others_see(const char* name, int read_try, int read_timed, int write_try,
                       int write_timed) {
  Seen seen;
  on_other_thread(look, &seen);
  CHECK_EQ(label(name, "tryrdlock"), seen.tryread, read_try);
  CHECK_EQ(label(name, "trywrlock"), seen.trywrite, write_try);
  CHECK_EQ(label(name, "timedrdlock"), seen.timedread, read_timed);
  CHECK_EQ(label(name, "timedwrlock"), seen.timedwrite, write_timed);
  CHECK_EQ(label(name, "clockrdlock"), seen.clockread, read_timed);
  CHECK_EQ(label(name, "clockwrlock"), seen.clockwrite, write_timed);
}

static void free_lock(const char* name) {
  struct timespec later = deadline_ms(CLOCK_REALTIME, 5000);
  struct timespec later_monotonic = deadline_ms(CLOCK_MONOTONIC, 5000);
  CHECK_CALL(label(name, "rdlock"), pthread_rwlock_rdlock(&lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "wrlock"), pthread_rwlock_wrlock(&lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "tryrdlock"), pthread_rwlock_tryrdlock(&lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "trywrlock"), pthread_rwlock_trywrlock(&lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "timedrdlock"), pthread_rwlock_timedrdlock(&lock, &later), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "timedwrlock"), pthread_rwlock_timedwrlock(&lock, &later), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "clockrdlock"),
             pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &later_monotonic), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "clockwrlock"),
             pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &later_monotonic), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  others_see(label(name, "free:"), 0, 0, 0, 0);
}

static void write_held(const char* name) {
  struct timespec later = deadline_ms(CLOCK_REALTIME, 5000);
  struct timespec later_monotonic = deadline_ms(CLOCK_MONOTONIC, 5000);
  CHECK_CALL(label(name, "wrlock"), pthread_rwlock_wrlock(&lock), 0);
  CHECK_CALL(label(name, "writer: rdlock"), pthread_rwlock_rdlock(&lock), EDEADLK);
  CHECK_CALL(label(name, "writer: wrlock"), pthread_rwlock_wrlock(&lock), EDEADLK);
  CHECK_CALL(label(name, "writer: tryrdlock"), pthread_rwlock_tryrdlock(&lock), EBUSY);
  CHECK_CALL(label(name, "writer: trywrlock"), pthread_rwlock_trywrlock(&lock), EBUSY);
  CHECK_CALL(label(name, "writer: timedrdlock"), pthread_rwlock_timedrdlock(&lock, &later),
             EDEADLK);
  CHECK_CALL(label(name, "writer: timedwrlock"), pthread_rwlock_timedwrlock(&lock, &later),
             EDEADLK);
  CHECK_CALL(label(name, "writer: clockrdlock"),
             pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &later_monotonic), EDEADLK);
  CHECK_CALL(label(name, "writer: clockwrlock"),
             pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &later_monotonic), EDEADLK);
  others_see(label(name, "written:"), EBUSY, ETIMEDOUT, EBUSY, ETIMEDOUT);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
}

static void read_held(const char* name) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 2);
  CHECK_CALL(label(name, "rdlock"), pthread_rwlock_rdlock(&lock), 0);
  CHECK_CALL(label(name, "reader: rdlock"), pthread_rwlock_rdlock(&lock), 0);
  CHECK_CALL(label(name, "reader: tryrdlock"), pthread_rwlock_tryrdlock(&lock), 0);
  CHECK_CALL(label(name, "reader: trywrlock"), pthread_rwlock_trywrlock(&lock), EBUSY);
  CHECK_CALL(label(name, "reader: timedwrlock"), pthread_rwlock_timedwrlock(&lock, &soon),
             ETIMEDOUT);
  others_see(label(name, "read:"), 0, 0, EBUSY, ETIMEDOUT);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "reader: trywrlock"), pthread_rwlock_trywrlock(&lock), EBUSY);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(name, "trywrlock"), pthread_rwlock_trywrlock(&lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&lock), 0);
}

static void destroyed(const RwKind* kind) {
  CHECK_CALL(label(kind->name, "destroy"), pthread_rwlock_destroy(&lock), 0);
  CHECK_CALL(label(kind->name, "destroy again"), pthread_rwlock_destroy(&lock), 0);
  make(kind);
  CHECK_CALL(label(kind->name, "rdlock"), pthread_rwlock_rdlock(&lock), 0);
  CHECK_CALL(label(kind->name, "destroy read"), pthread_rwlock_destroy(&lock), 0);
  make(kind);
  CHECK_CALL(label(kind->name, "wrlock"), pthread_rwlock_wrlock(&lock), 0);
  CHECK_CALL(label(kind->name, "destroy written"), pthread_rwlock_destroy(&lock), 0);
  make(kind);
  CHECK_CALL(label(kind->name, "made anew: trywrlock"), pthread_rwlock_trywrlock(&lock), 0);
  CHECK_CALL(label(kind->name, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_rwlock_destroy(&lock), 0);
}

int main(void) {
  for (int i = 0; i < kKindCount; i++) {
    make(&kKinds[i]);
    free_lock(kKinds[i].name);
    write_held(kKinds[i].name);
    read_held(kKinds[i].name);
    destroyed(&kKinds[i]);
  }
  return done();
}
