// Mutual exclusion of every kind with 2, 8 and 64 threads, by all the ways of locking at once.
#include "mutex_kinds.h"

enum { kMaxThreads = 64, kAcquisitionsInAll = 384 };

static pthread_mutex_t mutex;
static int acquisitions_each;
static int recursive;

// Written inside the lock only, each in a cache line of its own; equal whenever nobody is inside.
static struct {
  long value;
  char room[56];
} counters[3];

static int torn;
static int start;

static int trylock_until_it_works(void) {
  int result;
  while ((result = pthread_mutex_trylock(&mutex)) == EBUSY) sched_yield();
  return result;
}

static int timedlock_until_it_works(unsigned turn) {
  int result;
  do {
    struct timespec at;
    if (turn % 2 == 0) {
      at = deadline_ms(CLOCK_REALTIME, turn % 4);
      result = pthread_mutex_timedlock(&mutex, &at);
    } else {
      at = deadline_ms(CLOCK_MONOTONIC, turn % 8);
      result = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at);
    }
    turn += 3;
  } while (result == ETIMEDOUT);
  return result;
}

static int acquire(unsigned turn) {
  switch (turn % 5) {
    case 0:
      return trylock_until_it_works();
    case 1:
      return timedlock_until_it_works(turn);
    default:
      return pthread_mutex_lock(&mutex);
  }
}

static void* work(void* number) {
  long bad = 0;
  await_flag(&start);
  errno = kErrnoSentinel;
  for (int i = 0; i < acquisitions_each; i++) {
    bad += acquire((unsigned)i + (unsigned)(long)number) != 0;
    int holds = 1 + (recursive && i % 3 == 0);
    if (holds == 2) bad += pthread_mutex_lock(&mutex) != 0;
    long seen = counters[0].value;
    if (counters[1].value != seen || counters[2].value != seen) torn = 1;
    counters[0].value = seen + 1;
    counters[1].value = seen + 1;
    if (i % 32 == 0) sched_yield();  // in the middle, so that the others pile up
    counters[2].value = seen + 1;
    if (mutex.__data.__owner != own_tid() || mutex.__data.__nusers != 1) torn = 1;
    while (holds-- > 0) bad += pthread_mutex_unlock(&mutex) != 0;
  }
  bad += errno != kErrnoSentinel;
  return (void*)bad;
}

static void exclude(const MutexKind* kind, int threads) {
  static pthread_t ids[kMaxThreads];
  char name[64];
  long bad = 0;
  snprintf(name, sizeof name, "%s, %d threads:", kind->name, threads);
  make_mutex(&mutex, kind);
  memset(counters, 0, sizeof counters);
  acquisitions_each = kAcquisitionsInAll / threads;
  recursive = kind->behaviour == kRecursive;
  start = 0;
  for (long i = 0; i < threads; i++) {
    MUST(pthread_create(&ids[i], NULL, work, (void*)i) == 0);
  }
  set_flag(&start);
  for (int i = 0; i < threads; i++) {
    void* result = NULL;
    MUST(pthread_join(ids[i], &result) == 0);
    bad += (long)result;
  }
  CHECK_EQ(label(name, "counted"), counters[0].value, kAcquisitionsInAll);
  CHECK_EQ(label(name, "torn"), torn, 0);
  CHECK_EQ(label(name, "failed calls"), bad, 0);
  check_fields(label(name, "at the end"), &mutex, 0, 0, 0, kind->kind);
  CHECK_CALL(label(name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    // The static ones of the same type differ from the others only before the first lock.
    if (kMutexKinds[i].type == kDefaultAttr || kMutexKinds[i].type == PTHREAD_MUTEX_ERRORCHECK) {
      continue;
    }
    exclude(&kMutexKinds[i], 2);
    exclude(&kMutexKinds[i], 8);
    exclude(&kMutexKinds[i], 64);
  }
  return done();
}
