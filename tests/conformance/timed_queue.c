// Timed waiters give up in the middle of a line of waiters, and the line stays whole: everybody
// else still gets the mutex, and nobody gets it twice.
#include "mutex_kinds.h"

enum { kPatient = 6, kImpatient = 6, kWaiters = kPatient + kImpatient };

static pthread_mutex_t mutex;
static int ready[kWaiters];
static int passed;

static int lock_impatiently(long number) {
  struct timespec at;
  switch (number % 3) {
    case 0:
      at = deadline_ms(CLOCK_REALTIME, 8);
      return pthread_mutex_timedlock(&mutex, &at);
    case 1:
      at = deadline_ms(CLOCK_MONOTONIC, 12);
      return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at);
    default:
      at = deadline_ms(CLOCK_REALTIME, 4);
      return pthread_mutex_timedlock(&mutex, &at);
  }
}

// Even numbers wait for ever or for a long time, odd ones give up while the mutex is held.
static void* wait_in_line(void* argument) {
  long number = (long)argument;
  int result;
  set_flag(&ready[number]);
  errno = kErrnoSentinel;
  if (number % 2 == 1) {
    result = lock_impatiently(number / 2);
  } else if (number % 4 == 0) {
    result = pthread_mutex_lock(&mutex);
  } else {
    struct timespec at = deadline_ms(CLOCK_MONOTONIC, 30000);
    result = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at);
  }
  if (errno != kErrnoSentinel) return (void*)1000L;
  if (result == 0) {
    passed++;
    result = pthread_mutex_unlock(&mutex);
  }
  return (void*)(long)result;
}

static void one_line(const MutexKind* kind) {
  pthread_t threads[kWaiters];
  long gave_up = 0;
  long failed = 0;
  make_mutex(&mutex, kind);
  memset(ready, 0, sizeof ready);
  passed = 0;
  MUST(pthread_mutex_lock(&mutex) == 0);
  for (long i = 0; i < kWaiters; i++) {
    MUST(pthread_create(&threads[i], NULL, wait_in_line, (void*)i) == 0);
    await_flag(&ready[i]);
  }
  // The impatient ones have to be gone before anything is handed on.
  for (int i = 1; i < kWaiters; i += 2) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    gave_up += (long)result == ETIMEDOUT;
  }
  CHECK_EQ(label(kind->name, "gave up"), gave_up, kImpatient);
  unsigned count = kind->behaviour == kRecursive ? 1 : 0;
  check_fields(label(kind->name, "still held"), &mutex, 1, count, 1, kind->kind);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  for (int i = 0; i < kWaiters; i += 2) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    failed += (long)result != 0;
  }
  CHECK_EQ(label(kind->name, "passed"), passed, kPatient);
  CHECK_EQ(label(kind->name, "failed"), failed, 0);
  check_fields(label(kind->name, "at the end"), &mutex, 0, 0, 0, kind->kind);
  CHECK_CALL(label(kind->name, "trylock"), pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

// Giving up races with being handed the mutex: deadlines fall around the hold times.
enum { kRacers = 6, kRaceRounds = 150 };

static long inside_total;
static int torn;

static void* race(void* argument) {
  long won = 0;
  for (long i = 0; i < kRaceRounds; i++) {
    struct timespec at = deadline_ms(CLOCK_MONOTONIC, 0);
    at.tv_nsec += ((i * 37 + (long)argument * 11) % 60) * 1000;
    if (at.tv_nsec >= 1000000000L) {
      at.tv_nsec -= 1000000000L;
      at.tv_sec += 1;
    }
    int result = i % 4 == 3 ? pthread_mutex_lock(&mutex)
                            : pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at);
    if (result == ETIMEDOUT) continue;
    if (result != 0 || mutex.__data.__nusers != 1) torn = 1;
    inside_total++;
    won++;
    for (volatile int spin = 0; spin < 2000; spin++) {
    }
    if (pthread_mutex_unlock(&mutex) != 0) torn = 1;
  }
  return (void*)won;
}

static void race_all(void) {
  pthread_t threads[kRacers];
  long won = 0;
  make_static_mutex(&mutex, PTHREAD_MUTEX_TIMED_NP);
  for (long i = 0; i < kRacers; i++) {
    MUST(pthread_create(&threads[i], NULL, race, (void*)i) == 0);
  }
  for (int i = 0; i < kRacers; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    won += (long)result;
  }
  CHECK_TRUE("race: as many inside as won", won == inside_total);
  CHECK_TRUE("race: the untimed quarter won at least", won >= kRacers * kRaceRounds / 4);
  CHECK_EQ("race: torn", torn, 0);
  check_fields("race: at the end", &mutex, 0, 0, 0, 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    if (kMutexKinds[i].type == kStatic || kMutexKinds[i].type == PTHREAD_MUTEX_NORMAL) {
      one_line(&kMutexKinds[i]);
    }
  }
  race_all();
  return done();
}
