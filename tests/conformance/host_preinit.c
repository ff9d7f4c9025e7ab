// Locks that are used before the constructor of any library has run: functions in the preinit array
// come before all of them.
// conformance: any-lock
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t made_early;
static pthread_mutex_t robust;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_mutex_t stays_locked = PTHREAD_MUTEX_INITIALIZER;
static int early_results[20];
static int early_count;

static void keep(int result) { early_results[early_count++] = result; }

static void use_early(void) {
  keep(pthread_mutex_lock(&mutex));
  keep(pthread_mutex_trylock(&mutex));
  struct timespec past = {1, 0};
  keep(pthread_cond_timedwait(&cond, &mutex, &past));
  keep(pthread_cond_signal(&cond));
  keep(pthread_mutex_unlock(&mutex));
  keep(pthread_mutex_lock(&recursive));
  keep(pthread_mutex_lock(&recursive));
  keep(pthread_mutex_lock(&checking));
  keep(pthread_mutex_lock(&checking));
  keep(pthread_mutex_init(&made_early, NULL));
  keep(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
  keep(pthread_spin_lock(&spin));
  keep(pthread_rwlock_wrlock(&rwlock));
  keep(pthread_mutex_lock(&stays_locked));
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  keep(pthread_mutex_init(&robust, &attributes));
  keep(pthread_mutex_lock(&robust));
}

typedef void (*Initialiser)(void);
__attribute__((section(".preinit_array"), used)) static Initialiser early = use_early;

static void* try_all(void* unused) {
  (void)unused;
  CHECK_CALL("recursive, elsewhere", pthread_mutex_trylock(&recursive), EBUSY);
  CHECK_CALL("error-checking, elsewhere", pthread_mutex_trylock(&checking), EBUSY);
  CHECK_CALL("normal, elsewhere", pthread_mutex_trylock(&stays_locked), EBUSY);
  CHECK_CALL("robust, elsewhere", pthread_mutex_trylock(&robust), EBUSY);
  CHECK_CALL("spinlock, elsewhere", pthread_spin_trylock(&spin), EBUSY);
  CHECK_CALL("read lock, elsewhere", pthread_rwlock_tryrdlock(&rwlock), EBUSY);
  CHECK_CALL("error-checking, unlocked elsewhere", pthread_mutex_unlock(&checking), EPERM);
  return NULL;
}

static void* lock_and_unlock(void* lock) {
  int result = pthread_mutex_lock(lock);
  return (void*)(long)(result != 0 ? result : pthread_mutex_unlock(lock));
}

int main(void) {
  static const int kExpected[] = {0, EBUSY, ETIMEDOUT, 0, 0, 0, 0, 0, EDEADLK, 0, 0, 0, 0, 0, 0, 0};
  const int expected_count = sizeof kExpected / sizeof kExpected[0];
  int right = 0;
  for (int i = 0; i < early_count; ++i) right += early_results[i] == kExpected[i];
  CHECK_EQ("early calls", early_count, expected_count);
  CHECK_EQ("with the right result", right, expected_count);
  on_other_thread(try_all, NULL);
  CHECK_CALL("recursive: first unlock", pthread_mutex_unlock(&recursive), 0);
  CHECK_CALL("recursive: second unlock", pthread_mutex_unlock(&recursive), 0);
  CHECK_CALL("recursive: third unlock", pthread_mutex_unlock(&recursive), EPERM);
  CHECK_CALL("error-checking: unlock", pthread_mutex_unlock(&checking), 0);
  CHECK_CALL("robust: unlock", pthread_mutex_unlock(&robust), 0);
  CHECK_CALL("spinlock: unlock", pthread_spin_unlock(&spin), 0);
  CHECK_CALL("rwlock: unlock", pthread_rwlock_unlock(&rwlock), 0);
  pthread_t waiter;
  void* result = &waiter;
  pthread_create(&waiter, NULL, lock_and_unlock, &stays_locked);
  sleep_ms(3);
  CHECK_CALL("normal: unlock with a waiter", pthread_mutex_unlock(&stays_locked), 0);
  pthread_join(waiter, &result);
  CHECK_TRUE("the waiter got it", result == NULL);
  CHECK_TRUE("initialised early, used late", on_other_thread(lock_and_unlock, &made_early) == NULL);
  return done();
}
