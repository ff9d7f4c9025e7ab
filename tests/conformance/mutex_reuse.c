// Memory that held a mutex and holds another one, by every way a program can bring that about.
#include "mutex_kinds.h"

enum { kThreads = 3, kRounds = 40, kGenerations = 6 };

static pthread_mutex_t* shared;
static long counter;

static void* count_up(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds; i++) {
    if (pthread_mutex_lock(shared) != 0) return (void*)1L;
    counter++;
    if (i % 16 == 0) sched_yield();  // so that others find it locked
    if (pthread_mutex_unlock(shared) != 0) return (void*)2L;
  }
  return NULL;
}

static void contend(const char* name, pthread_mutex_t* mutex) {
  pthread_t threads[kThreads];
  long bad = 0;
  shared = mutex;
  counter = 0;
  for (int i = 0; i < kThreads; i++) MUST(pthread_create(&threads[i], NULL, count_up, NULL) == 0);
  for (int i = 0; i < kThreads; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    bad += (long)result;
  }
  CHECK_EQ(label(name, "counted"), counter, (long)kThreads * kRounds);
  CHECK_EQ(label(name, "failed calls"), bad, 0);
}

static void* lock_for_ever(void* mutex) {
  return (void*)(long)pthread_mutex_lock((pthread_mutex_t*)mutex);
}

// Assigned over, with the old one used, in use by nobody, or even locked.
static void assigned(pthread_mutex_t* mutex) {
  for (int i = 0; i < kGenerations; i++) {
    const MutexKind* kind = &kMutexKinds[(i * 3) % kMutexKindCount];
    char name[64];
    snprintf(name, sizeof name, "generation %d (%s)", i, kind->name);
    make_mutex(mutex, kind);
    check_fields(name, mutex, 0, 0, 0, kind->kind);
    contend(name, mutex);
    if (i % 2 == 1)
      CHECK_EQ(label(name, "left locked"), (long)on_other_thread(lock_for_ever, mutex), 0);
  }
  make_static_mutex(mutex, PTHREAD_MUTEX_TIMED_NP);
  CHECK_CALL("trylock after the last", pthread_mutex_trylock(mutex), 0);
  CHECK_CALL("unlock", pthread_mutex_unlock(mutex), 0);
}

// Freed without destroy; malloc gives the memory back, filled with something else first.
static void freed(void) {
  for (int i = 0; i < kGenerations; i++) {
    char name[64];
    snprintf(name, sizeof name, "block %d", i);
    pthread_mutex_t* mutex = malloc(sizeof *mutex);
    MUST(mutex != NULL);
    memset(mutex, i % 2 ? 0xff : 0x11, sizeof *mutex);
    make_static_mutex(mutex, i % 4);
    contend(name, mutex);
    free(mutex);
  }
}

static void zeroed(void) {
  pthread_mutex_t* mutex = calloc(1, sizeof *mutex);
  MUST(mutex != NULL);
  CHECK_CALL("zeroed memory: lock", pthread_mutex_lock(mutex), 0);
  check_fields("zeroed memory", mutex, 1, 0, 1, 0);
  CHECK_CALL("zeroed memory: trylock", pthread_mutex_trylock(mutex), EBUSY);
  CHECK_CALL("zeroed memory: unlock", pthread_mutex_unlock(mutex), 0);
  contend("zeroed memory", mutex);
  memset(mutex, 0, sizeof *mutex);
  contend("zeroed again", mutex);
  CHECK_CALL("zeroed memory: destroy", pthread_mutex_destroy(mutex), 0);
  free(mutex);
}

// A growing array moves its elements, mutexes that are not locked among them.
static void moved(void) {
  pthread_mutex_t* first = malloc(sizeof *first);
  pthread_mutex_t* second = malloc(sizeof *second);
  MUST(first != NULL && second != NULL);
  make_static_mutex(first, PTHREAD_MUTEX_TIMED_NP);
  contend("before the move", first);
  memcpy(second, first, sizeof *second);
  memset(first, 0x77, sizeof *first);
  contend("after the move", second);
  check_fields("after the move", second, 0, 0, 0, 0);
  CHECK_CALL("after the move: destroy", pthread_mutex_destroy(second), 0);
  free(first);
  free(second);
}

int main(void) {
  static pthread_mutex_t mutex;
  assigned(&mutex);
  freed();
  zeroed();
  moved();
  return done();
}
