// Who comes next when a writer lets go, for the kinds of readers-writer lock that prefer writers.
// conformance: any-lock
#include "check.h"

enum { kRounds = 16, kMost = 13, kThreads = 3, kGapMs = 4 };

static pthread_rwlock_t lock;
static int served;

struct Waiter {
  int writes;
  int place;
};

static void* wait_for_it(void* argument) {
  struct Waiter* waiter = argument;
  MUST((waiter->writes ? pthread_rwlock_wrlock(&lock) : pthread_rwlock_rdlock(&lock)) == 0);
  waiter->place = __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
  MUST(pthread_rwlock_unlock(&lock) == 0);
  return NULL;
}

// In how many rounds the waiter of this number comes at this place, when those that `who` names (w
// or r) have queued in this order behind a writer.
static int rounds_with(int kind, const char* who, int number, int place) {
  int found = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_rwlockattr_t attributes;
    MUST(pthread_rwlockattr_init(&attributes) == 0);
    MUST(pthread_rwlockattr_setkind_np(&attributes, kind) == 0);
    MUST(pthread_rwlock_init(&lock, &attributes) == 0);
    served = 0;
    pthread_t threads[kThreads];
    struct Waiter waiters[kThreads];
    MUST(pthread_rwlock_wrlock(&lock) == 0);
    for (int i = 0; who[i] != 0; ++i) {
      waiters[i].writes = who[i] == 'w';
      MUST(pthread_create(&threads[i], NULL, wait_for_it, &waiters[i]) == 0);
      sleep_ms(kGapMs);
    }
    MUST(pthread_rwlock_unlock(&lock) == 0);
    for (int i = 0; who[i] != 0; ++i) pthread_join(threads[i], NULL);
    found += waiters[number].place == place;
    MUST(pthread_rwlock_destroy(&lock) == 0);
  }
  return found;
}

static void check(const char* what, int kind, const char* who, int number, int place) {
  const int found = rounds_with(kind, who, number, place);
  if (found < kMost) fprintf(stderr, "%s: in %d of %d rounds\n", what, found, kRounds);
  CHECK_TRUE(what, found >= kMost);
}

int main(void) {
  const int writer = PTHREAD_RWLOCK_PREFER_WRITER_NP;
  const int alone = PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
  check("writers preferred: a writer comes before a reader", writer, "wr", 0, 0);
  check("writers preferred: two writers come before a reader", writer, "wwr", 2, 2);
  check("nonrecursive: a writer comes before a reader", alone, "wr", 0, 0);
  check("nonrecursive: two writers come before a reader", alone, "wwr", 2, 2);
  return done();
}
