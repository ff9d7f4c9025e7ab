// Waiters of one condition variable, the first of which is stopped in a signal handler until the
// others have come back from their wait.
#ifndef RELOCK_TESTS_CONFORMANCE_COND_HANDLER_H
#define RELOCK_TESTS_CONFORMANCE_COND_HANDLER_H

#include "check.h"
#include "cond_support.h"

#include <signal.h>

// The handler looks for the others so long; then they count as lost.
enum { kWaiters = 4, kHandlerMs = 6000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;       // under the mutex
static int go;            // under the mutex
static int others_came;   // atomic
static int in_handler;    // flag
static int came_in_time;  // atomic: what the handler has seen

struct Waiter {
  pid_t tid;
  int first;
  int timed;
};
struct Crowd {
  pthread_t threads[kWaiters];
  struct Waiter waiters[kWaiters];
};

static void stop(int signal) {
  (void)signal;
  int saved = errno;
  set_flag(&in_handler);
  int came = 0;
  for (long long until = now_ms() + kHandlerMs; came < kWaiters - 1 && now_ms() < until;) {
    sleep_ms(1);
    came = __atomic_load_n(&others_came, __ATOMIC_ACQUIRE);
  }
  __atomic_store_n(&came_in_time, came, __ATOMIC_RELEASE);
  errno = saved;
}

static void handle_stops(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = stop;
  MUST(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void* wait_for_go(void* argument) {
  struct Waiter* waiter = argument;
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  pthread_mutex_lock(&mutex);
  __atomic_store_n(&waiter->tid, thread_id(), __ATOMIC_RELEASE);
  ++waiting;
  while (!go) {
    waiter->timed ? pthread_cond_timedwait(&cond, &mutex, &far) : pthread_cond_wait(&cond, &mutex);
  }
  pthread_mutex_unlock(&mutex);
  if (!waiter->first) __atomic_fetch_add(&others_came, 1, __ATOMIC_RELEASE);
  return NULL;
}

// When it returns all wait; waiter 0 came first.
static void start_crowd(struct Crowd* crowd, int timed) {
  waiting = go = others_came = in_handler = came_in_time = 0;
  for (int i = 0; i < kWaiters; ++i) {
    struct Waiter* waiter = &crowd->waiters[i];
    waiter->tid = 0;
    waiter->first = i == 0;
    waiter->timed = timed;
    MUST(pthread_create(&crowd->threads[i], NULL, wait_for_go, waiter) == 0);
    MUST(await_count(&mutex, &waiting, i + 1));
    await_sleep(waiter->tid);
  }
}

// When it returns the first waiter is in its handler.
static void stop_first(struct Crowd* crowd) {
  MUST(pthread_kill(crowd->threads[0], SIGUSR1) == 0);
  await_flag(&in_handler);
}

static void end_crowd(struct Crowd* crowd, const char* name) {
  for (int i = 0; i < kWaiters; ++i) pthread_join(crowd->threads[i], NULL);
  CHECK_EQ(label(name, "others that came while the first was in its handler"),
           __atomic_load_n(&came_in_time, __ATOMIC_ACQUIRE), kWaiters - 1);
}

#endif
