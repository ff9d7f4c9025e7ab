// Mutexes and readers-writer locks in every place a program keeps them: globals with and without an
// initialiser, the stack, the heap, thread-local, read before the first call; and what init leaves.
// conformance: any-lock
#include "mutex_kinds.h"

static pthread_mutex_t in_data = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t in_bss;
static __thread pthread_mutex_t of_thread = PTHREAD_MUTEX_INITIALIZER;
static __thread pthread_mutex_t of_thread_bss;
static pthread_mutex_t array[] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};
static pthread_rwlock_t rwlock_in_bss;

static void use(const char* name, pthread_mutex_t* mutex) {
  CHECK_CALL(label(name, "lock"), pthread_mutex_lock(mutex), 0);
  int recursive = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
  CHECK_CALL(label(name, "trylock"), pthread_mutex_trylock(mutex), recursive ? 0 : EBUSY);
  if (recursive) CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(mutex), 0);
  CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(mutex), 0);
  check_fields(label(name, "then"), mutex, 0, 0, 0, DOCUMENTED_KIND(mutex->__data.__kind));
}

static void* use_own(void* unused) {
  (void)unused;
  use("another thread's own", &of_thread);
  use("another thread's own, bss", &of_thread_bss);
  return NULL;
}

// A call before main, when only part of the process is ready.
static pthread_mutex_t before_main = PTHREAD_MUTEX_INITIALIZER;
static int locked_before_main = -1;

__attribute__((constructor)) static void lock_before_main(void) {
  locked_before_main = pthread_mutex_lock(&before_main);
}

static void unlock_at_exit(void) {
  CHECK_CALL("at exit: lock", pthread_mutex_lock(&in_data), 0);
  CHECK_CALL("at exit: unlock", pthread_mutex_unlock(&in_data), 0);
  CHECK_CALL("at exit: wrlock", pthread_rwlock_wrlock(&rwlock_in_bss), 0);
  CHECK_CALL("at exit: unlock", pthread_rwlock_unlock(&rwlock_in_bss), 0);
  if (done() != 0) _exit(1);
}

// A static mutex that a thread locks first, with the object still as the compiler laid it out.
static void* first_lock(void* mutex) { return (void*)(long)pthread_mutex_lock(mutex); }

static void first_use_by_thread(void) {
  static pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  CHECK_EQ("first use by a thread: lock", (long)on_other_thread(first_lock, &fresh), 0);
  CHECK_CALL("first use by a thread: trylock", pthread_mutex_trylock(&fresh), EBUSY);
  CHECK_CALL("first use by a thread: unlock", pthread_mutex_unlock(&fresh), 0);
  CHECK_CALL("first use by a thread: trylock", pthread_mutex_trylock(&fresh), 0);
  CHECK_CALL("first use by a thread: unlock", pthread_mutex_unlock(&fresh), 0);
}

// Locked while the process has one thread only, unlocked when it has more, and the reverse.
static void* lock_it(void* mutex) { return (void*)(long)pthread_mutex_lock(mutex); }

static void across_the_first_thread(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t thread;
  void* result = (void*)-1L;
  CHECK_CALL("single-threaded: lock", pthread_mutex_lock(&mutex), 0);
  MUST(pthread_create(&thread, NULL, lock_it, &mutex) == 0);
  sleep_ms(5);
  CHECK_CALL("with a thread: unlock", pthread_mutex_unlock(&mutex), 0);
  MUST(pthread_join(thread, &result) == 0);
  CHECK_EQ("the thread's lock", (long)result, 0);
  CHECK_CALL("after it: trylock", pthread_mutex_trylock(&mutex), EBUSY);
  CHECK_CALL("after it: unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("after it: destroy", pthread_mutex_destroy(&mutex), 0);
}

// Neighbours in packed memory keep their bytes.
static void neighbours(void) {
  struct {
    unsigned char before[8];
    pthread_mutex_t mutex;
    unsigned char between[8];
    pthread_rwlock_t rwlock;
    unsigned char after[8];
  } room;
  memset(&room, 0xa5, sizeof room);
  MUST(pthread_mutex_init(&room.mutex, NULL) == 0);
  MUST(pthread_rwlock_init(&room.rwlock, NULL) == 0);
  use("with neighbours", &room.mutex);
  MUST(pthread_rwlock_wrlock(&room.rwlock) == 0 && pthread_rwlock_unlock(&room.rwlock) == 0);
  int untouched = 1;
  for (int i = 0; i < 8; i++) {
    untouched &= room.before[i] == 0xa5 && room.between[i] == 0xa5 && room.after[i] == 0xa5;
  }
  CHECK_TRUE("neighbours untouched", untouched);
}

int main(void) {
  atexit(unlock_at_exit);
  CHECK_EQ("locked before main", locked_before_main, 0);
  CHECK_CALL("before main: trylock", pthread_mutex_trylock(&before_main), EBUSY);
  CHECK_CALL("before main: unlock", pthread_mutex_unlock(&before_main), 0);
  across_the_first_thread();
  use("data", &in_data);
  use("bss", &in_bss);
  use("thread-local", &of_thread);
  use("thread-local, bss", &of_thread_bss);
  on_other_thread(use_own, NULL);
  for (int i = 0; i < 4; i++) {
    char name[16];
    snprintf(name, sizeof name, "array %d", i);
    use(name, &array[i]);
  }
  pthread_mutex_t on_stack = PTHREAD_MUTEX_INITIALIZER;
  use("stack", &on_stack);
  pthread_mutex_t* on_heap = malloc(sizeof *on_heap);
  MUST(on_heap != NULL);
  *on_heap = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  use("heap", on_heap);
  free(on_heap);
  CHECK_CALL("rwlock bss: rdlock", pthread_rwlock_rdlock(&rwlock_in_bss), 0);
  CHECK_CALL("rwlock bss: trywrlock", pthread_rwlock_trywrlock(&rwlock_in_bss), EBUSY);
  CHECK_CALL("rwlock bss: unlock", pthread_rwlock_unlock(&rwlock_in_bss), 0);
  first_use_by_thread();
  neighbours();
  return done();
}
