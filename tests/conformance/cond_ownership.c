// Waiting with a mutex that the caller does not hold, or holds twice.
#include "check.h"
#include "cond_support.h"

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex;

static void init_mutex(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  MUST(pthread_mutex_init(&mutex, &attributes) == 0);
}

static void* try_mutex(void* unused) {
  (void)unused;
  int result = pthread_mutex_trylock(&mutex);
  if (result == 0) pthread_mutex_unlock(&mutex);
  return (void*)(long)result;
}

static int tried_elsewhere(void) { return (int)(long)on_other_thread(try_mutex, NULL); }

static void* wait_unowned(void* unused) {
  (void)unused;
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 20);
  CHECK_CALL("wait, another thread's mutex", pthread_cond_wait(&cond, &mutex), EPERM);
  CHECK_CALL("timedwait, another thread's mutex", pthread_cond_timedwait(&cond, &mutex, &soon),
             EPERM);
  CHECK_CALL("clockwait, another thread's mutex",
             pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &soon), EPERM);
  return NULL;
}

static void not_owner(const char* title, int type) {
  printf("%s\n", title);
  init_mutex(type);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 20);
  CHECK_CALL("wait, free mutex", pthread_cond_wait(&cond, &mutex), EPERM);
  CHECK_CALL("timedwait, free mutex", pthread_cond_timedwait(&cond, &mutex, &soon), EPERM);
  CHECK_EQ("and it is still free", tried_elsewhere(), 0);
  pthread_mutex_lock(&mutex);
  on_other_thread(wait_unowned, NULL);
  CHECK_EQ("and it is still held", tried_elsewhere(), EBUSY);
  CHECK_CALL("by its owner", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
  CHECK_CALL("signal finds nobody", pthread_cond_signal(&cond), 0);
}

// A refused wait must not stay behind in the list of waiters: the next signal is for a real one.
static int refused_woken;

static void* wait_really(void* tid) {
  pthread_mutex_lock(&mutex);
  *(int*)tid = thread_id();
  pthread_cond_wait(&cond, &mutex);
  refused_woken = 1;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void refused_then_real(void) {
  init_mutex(PTHREAD_MUTEX_ERRORCHECK);
  CHECK_CALL("refused", pthread_cond_wait(&cond, &mutex), EPERM);
  pthread_t thread;
  int tid = 0;
  pthread_create(&thread, NULL, wait_really, &tid);
  MUST(await_count(&mutex, &tid, 1));
  CHECK_CALL("refused again", pthread_cond_wait(&cond, &mutex), EPERM);
  pthread_cond_signal(&cond);
  CHECK_TRUE("the signal reaches the real waiter", await_count(&mutex, &refused_woken, 1));
  pthread_join(thread, NULL);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
}

// A normal mutex does not know its owner: glibc lets the wait go on and locks it at the end.
static void normal_unlocked(void) {
  init_mutex(PTHREAD_MUTEX_NORMAL);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 5);
  CHECK_CALL("normal, free: timedwait", pthread_cond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
  CHECK_EQ("normal: held afterwards", tried_elsewhere(), EBUSY);
  CHECK_CALL("normal: unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_EQ("normal: free again", tried_elsewhere(), 0);
  REPORT("normal: destroy after that", pthread_mutex_destroy(&mutex));
}

struct Twice {
  int tid;
  int timed;
  int result;
  int first_unlock;
  int second_unlock;
  int third_unlock;
};

static void* wait_twice_locked(void* argument) {
  struct Twice* twice = argument;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  __atomic_store_n(&twice->tid, thread_id(), __ATOMIC_RELEASE);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 15);
  twice->result = twice->timed ? pthread_cond_timedwait(&cond, &mutex, &soon)
                               : pthread_cond_wait(&cond, &mutex);
  twice->first_unlock = pthread_mutex_unlock(&mutex);
  twice->second_unlock = pthread_mutex_unlock(&mutex);
  twice->third_unlock = pthread_mutex_unlock(&mutex);
  return NULL;
}

// The wait gives back one of the two locks, so the mutex stays with the waiting thread.
static void held_twice(int timed) {
  init_mutex(PTHREAD_MUTEX_RECURSIVE);
  struct Twice twice = {.timed = timed};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_twice_locked, &twice);
  await_flag(&twice.tid);
  if (!timed) {
    await_sleep(twice.tid);
    CHECK_EQ("held twice: others during the wait", tried_elsewhere(), EBUSY);
    pthread_cond_signal(&cond);
  }
  pthread_join(thread, NULL);
  CHECK_EQ("held twice: result", twice.result, timed ? ETIMEDOUT : 0);
  CHECK_EQ("held twice: first unlock", twice.first_unlock, 0);
  CHECK_EQ("held twice: second unlock", twice.second_unlock, 0);
  CHECK_EQ("held twice: third unlock", twice.third_unlock, EPERM);
  CHECK_EQ("held twice: free afterwards", tried_elsewhere(), 0);
  CHECK_CALL("held twice: destroy", pthread_mutex_destroy(&mutex), 0);
}

static void destroyed_mutex(void) {
  init_mutex(PTHREAD_MUTEX_NORMAL);
  pthread_mutex_destroy(&mutex);
  CHECK_CALL("destroyed mutex: wait", pthread_cond_wait(&cond, &mutex), EINVAL);
}

int main(void) {
  not_owner("error-checking", PTHREAD_MUTEX_ERRORCHECK);
  not_owner("recursive", PTHREAD_MUTEX_RECURSIVE);
  refused_then_real();
  normal_unlocked();
  held_twice(0);
  held_twice(1);
  destroyed_mutex();
  CHECK_CALL("destroy the condition variable", pthread_cond_destroy(&cond), 0);
  return done();
}
