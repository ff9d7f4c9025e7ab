// Fork while other threads wait on a condition variable. In the child nobody waits; it may signal,
// wait with a deadline, or initialise the condition variable anew and use it with threads of its
// own. The parent's waiters notice nothing.
#include "check.h"
#include "cond_support.h"

enum { kWaiters = 5, kRounds = 12 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;  // under the mutex, like all that follows
static int released;
static int go_on;

static void* wait_for_go(void* timed) {
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  pthread_mutex_lock(&mutex);
  ++waiting;
  while (!go_on) {
    if (timed != NULL) {
      pthread_cond_timedwait(&cond, &mutex, &far);
    } else {
      pthread_cond_wait(&cond, &mutex);
    }
  }
  ++released;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void start_waiters(pthread_t* threads) {
  waiting = released = go_on = 0;
  for (int i = 0; i < kWaiters; ++i) {
    MUST(pthread_create(&threads[i], NULL, wait_for_go, i % 2 ? &mutex : NULL) == 0);
  }
  MUST(await_count(&mutex, &waiting, kWaiters));
}

static int release_waiters(pthread_t* threads) {
  pthread_mutex_lock(&mutex);
  go_on = 1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  return released == kWaiters;
}

static int child_work(int broadcast_first) {
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 2);
  if (broadcast_first) {
    if (pthread_cond_broadcast(&cond) != 0) return 1;
  } else if (pthread_cond_signal(&cond) != 0) {
    return 2;
  }
  if (pthread_mutex_unlock(&mutex) != 0) return 3;
  if (pthread_mutex_lock(&mutex) != 0) return 4;
  int result = 0;
  while (result == 0) result = pthread_cond_timedwait(&cond, &mutex, &soon);
  if (result != ETIMEDOUT) return 5;
  pthread_mutex_unlock(&mutex);
  if (pthread_cond_init(&cond, NULL) != 0) return 6;
  pthread_t threads[kWaiters];
  for (int i = 0; i < 2; ++i) {
    start_waiters(threads);
    if (!release_waiters(threads)) return 7;
  }
  return pthread_cond_destroy(&cond) == 0 ? 0 : 8;
}

// The same with the parent's waiters asleep while a third thread forks.
static void* fork_once(void* round) {
  pthread_mutex_lock(&mutex);
  pid_t child = fork();
  if (child == 0) _exit(child_work((int)(intptr_t)round % 2));
  pthread_mutex_unlock(&mutex);
  return (void*)(intptr_t)child_status(child);
}

int main(void) {
  pthread_t threads[kWaiters];
  int good_children = 0;
  int good_parents = 0;
  for (int round = 0; round < kRounds; ++round) {
    start_waiters(threads);
    void* argument = (void*)(intptr_t)round;
    void* status = round < kRounds / 2 ? fork_once(argument) : on_other_thread(fork_once, argument);
    if (status != NULL) fprintf(stderr, "child: status %d\n", (int)(intptr_t)status);
    good_children += status == NULL;
    good_parents += release_waiters(threads);
  }
  CHECK_EQ("children that could go on", good_children, kRounds);
  CHECK_EQ("parents whose waiters all came back", good_parents, kRounds);
  CHECK_CALL("destroy", pthread_cond_destroy(&cond), 0);
  return done();
}
