// conformance: skip=*-spin a hundred waiters that only spin need a nap for every hand-over
// Twenty thousand threads over a run, in batches, each of which takes contended locks of every
// sort: whatever a thread is lent for waiting must come back when it ends.
#include "check.h"

enum { kThreads = 20000, kBatch = 100, kLocks = 2 };

static pthread_mutex_t mutexes[kLocks] = {PTHREAD_MUTEX_INITIALIZER,
                                          PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
static pthread_spinlock_t spin;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long counters[kLocks];
static long spun;
static long written;

static void* visit(void* number) {
  long which = (long)number % kLocks;
  if (pthread_mutex_lock(&mutexes[which]) != 0) return (void*)1L;
  counters[which]++;
  if (pthread_spin_lock(&spin) != 0) return (void*)2L;
  spun++;
  if (pthread_spin_unlock(&spin) != 0) return (void*)3L;
  if (pthread_mutex_unlock(&mutexes[which]) != 0) return (void*)4L;
  if (pthread_rwlock_wrlock(&rwlock) != 0) return (void*)5L;
  written++;
  if (pthread_rwlock_unlock(&rwlock) != 0) return (void*)6L;
  return NULL;
}

int main(void) {
  pthread_attr_t attr;
  pthread_t threads[kBatch];
  long bad = 0;
  MUST(pthread_attr_init(&attr) == 0);
  MUST(pthread_attr_setstacksize(&attr, 64 * 1024) == 0);
  MUST(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
  for (int done_so_far = 0; done_so_far < kThreads; done_so_far += kBatch) {
    // Held while the batch starts, so that some of it has to wait.
    MUST(pthread_mutex_lock(&mutexes[0]) == 0);
    for (long i = 0; i < kBatch; i++) {
      MUST(pthread_create(&threads[i], &attr, visit, (void*)i) == 0);
    }
    MUST(pthread_mutex_unlock(&mutexes[0]) == 0);
    for (int i = 0; i < kBatch; i++) {
      void* result = NULL;
      MUST(pthread_join(threads[i], &result) == 0);
      bad += result != NULL;
    }
  }
  CHECK_EQ("first mutex", counters[0], kThreads / kLocks);
  CHECK_EQ("second mutex", counters[1], kThreads / kLocks);
  CHECK_EQ("spinlock", spun, kThreads);
  CHECK_EQ("readers-writer lock", written, kThreads);
  CHECK_EQ("failed calls", bad, 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutexes[0]), 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutexes[1]), 0);
  return done();
}
