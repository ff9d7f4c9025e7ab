// The condition variables of <threads.h>: the same behaviour, other return values.
#include "check.h"

#include <threads.h>

enum { kWaiters = 6, kTurns = 3000 };

static mtx_t mutex;
static cnd_t cond;
static int waiting;  // under the mutex, like all that follows
static int released;
static int go_on;
static int turn;

static struct timespec utc_in_ms(long ms) { return deadline_ms(CLOCK_REALTIME, ms); }

static void return_values(void) {
  struct timespec at = utc_in_ms(10);
  CHECK_EQ("cnd_init", cnd_init(&cond), thrd_success);
  CHECK_EQ("cnd_signal to nobody", cnd_signal(&cond), thrd_success);
  CHECK_EQ("cnd_broadcast to nobody", cnd_broadcast(&cond), thrd_success);
  CHECK_EQ("mtx_lock", mtx_lock(&mutex), thrd_success);
  long long start = now_ms();
  CHECK_EQ("cnd_timedwait", cnd_timedwait(&cond, &mutex, &at), thrd_timedout);
  CHECK_TRUE("not early", now_ms() - start >= 8);
  at = utc_in_ms(-1000);
  CHECK_EQ("in the past", cnd_timedwait(&cond, &mutex, &at), thrd_timedout);
  at.tv_sec = -1;
  CHECK_EQ("negative seconds", cnd_timedwait(&cond, &mutex, &at), thrd_timedout);
  at.tv_nsec = 1000000000;
  CHECK_EQ("a billion nanoseconds", cnd_timedwait(&cond, &mutex, &at), thrd_error);
  at.tv_nsec = -1;
  CHECK_EQ("negative nanoseconds", cnd_timedwait(&cond, &mutex, &at), thrd_error);
  CHECK_EQ("mtx_unlock", mtx_unlock(&mutex), thrd_success);
}

static int try_lock_there(void* argument) {
  int result = mtx_trylock(argument);
  if (result == thrd_success) mtx_unlock(argument);
  return result;
}

static int tried_elsewhere(mtx_t* lock) {
  thrd_t thread;
  int result = -1;
  thrd_create(&thread, try_lock_there, lock);
  thrd_join(thread, &result);
  return result;
}

static void recursive_mutex(void) {
  mtx_t recursive;
  struct timespec at = utc_in_ms(5);
  CHECK_EQ("recursive: mtx_init", mtx_init(&recursive, mtx_timed | mtx_recursive), thrd_success);
  CHECK_EQ("recursive: not the owner", cnd_timedwait(&cond, &recursive, &at), thrd_error);
  CHECK_EQ("recursive: not the owner, wait", cnd_wait(&cond, &recursive), thrd_error);
  mtx_lock(&recursive);
  mtx_lock(&recursive);
  at = utc_in_ms(5);
  CHECK_EQ("recursive: held twice", cnd_timedwait(&cond, &recursive, &at), thrd_timedout);
  CHECK_EQ("recursive: others", tried_elsewhere(&recursive), thrd_busy);
  CHECK_EQ("recursive: first unlock", mtx_unlock(&recursive), thrd_success);
  CHECK_EQ("recursive: still held", tried_elsewhere(&recursive), thrd_busy);
  CHECK_EQ("recursive: second unlock", mtx_unlock(&recursive), thrd_success);
  CHECK_EQ("recursive: free", tried_elsewhere(&recursive), thrd_success);
  CHECK_EQ("recursive: third unlock", mtx_unlock(&recursive), thrd_error);
  mtx_destroy(&recursive);
}

static int wait_for_go(void* unused) {
  (void)unused;
  mtx_lock(&mutex);
  ++waiting;
  int result = thrd_success;
  while (!go_on && result == thrd_success) result = cnd_wait(&cond, &mutex);
  ++released;
  mtx_unlock(&mutex);
  return result;
}

static void broadcast(void) {
  thrd_t threads[kWaiters];
  int bad = 0;
  for (int i = 0; i < kWaiters; ++i) thrd_create(&threads[i], wait_for_go, NULL);
  for (int there = 0; there < kWaiters; thrd_yield()) {
    mtx_lock(&mutex);
    there = waiting;
    mtx_unlock(&mutex);
  }
  mtx_lock(&mutex);
  go_on = 1;
  CHECK_EQ("cnd_broadcast", cnd_broadcast(&cond), thrd_success);
  mtx_unlock(&mutex);
  for (int i = 0; i < kWaiters; ++i) {
    int result = -1;
    thrd_join(threads[i], &result);
    bad += result != thrd_success;
  }
  CHECK_EQ("released by it", released, kWaiters);
  CHECK_EQ("bad results", bad, 0);
}

static int play(void* argument) {
  int me = *(int*)argument;
  for (int i = 0; i < kTurns; ++i) {
    mtx_lock(&mutex);
    while (turn % 2 != me) {
      struct timespec far = utc_in_ms(60000);
      if (i % 2 != 0) {
        cnd_wait(&cond, &mutex);
      } else if (cnd_timedwait(&cond, &mutex, &far) != thrd_success) {
        return thrd_error;
      }
    }
    ++turn;
    cnd_signal(&cond);
    mtx_unlock(&mutex);
  }
  return thrd_success;
}

static void ping_pong(void) {
  thrd_t thread;
  int first = 0;
  int second = 1;
  int result = -1;
  thrd_create(&thread, play, &second);
  CHECK_EQ("turns of the first", play(&first), thrd_success);
  thrd_join(thread, &result);
  CHECK_EQ("turns of the second", result, thrd_success);
  CHECK_EQ("turns", turn, 2 * kTurns);
}

int main(void) {
  CHECK_EQ("mtx_init", mtx_init(&mutex, mtx_plain), thrd_success);
  return_values();
  recursive_mutex();
  broadcast();
  ping_pong();
  cnd_destroy(&cond);
  mtx_destroy(&mutex);
  // C11 and POSIX objects may stand in the same memory, one after the other.
  CHECK_EQ("cnd_init again", cnd_init(&cond), thrd_success);
  cnd_destroy(&cond);
  return done();
}
