// A lock with a second to wait gets the mutex within that second, while eight threads take it again
// and again without a pause. The hammering ends as soon as it has.
#include "mutex_kinds.h"

enum { kHammers = 8, kTries = 3 };

static pthread_mutex_t mutex;
static int stop;
static int running;

static void* hammer(void* unused) {
  (void)unused;
  __atomic_fetch_add(&running, 1, __ATOMIC_RELAXED);
  long bad = 0;
  while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
    bad += pthread_mutex_lock(&mutex) != 0;
    for (volatile int spin = 0; spin < 100; spin++) {
    }
    bad += pthread_mutex_unlock(&mutex) != 0;
  }
  return (void*)bad;
}

static void timed_among_hammers(const MutexKind* kind) {
  pthread_t threads[kHammers];
  long bad = 0;
  make_mutex(&mutex, kind);
  stop = 0;
  running = 0;
  for (int i = 0; i < kHammers; i++) MUST(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
  while (__atomic_load_n(&running, __ATOMIC_RELAXED) < kHammers) sleep_ms(1);
  for (int i = 0; i < kTries; i++) {
    struct timespec at = deadline_ms(CLOCK_REALTIME, 1000);
    CHECK_CALL(label(kind->name, "timedlock"), pthread_mutex_timedlock(&mutex, &at), 0);
    CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
    at = deadline_ms(CLOCK_MONOTONIC, 1000);
    CHECK_CALL(label(kind->name, "clocklock"),
               pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at), 0);
    CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  }
  set_flag(&stop);
  for (int i = 0; i < kHammers; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    bad += (long)result;
  }
  CHECK_EQ(label(kind->name, "failed calls"), bad, 0);
  check_fields(label(kind->name, "at the end"), &mutex, 0, 0, 0, kind->kind);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    if (kMutexKinds[i].type == kStatic) timed_among_hammers(&kMutexKinds[i]);
  }
  return done();
}
