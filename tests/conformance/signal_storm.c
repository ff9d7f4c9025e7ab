// A timer interrupts a thread ten thousand times a second while it waits. No call may report EINTR,
// end early or last for ever, and no handler run may be lost.
#include "check.h"
#include "cond_support.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t ticks;
static int handler_runs;
static int go_on;  // under the mutex
static int ready;
static int held_ms = 12;

static void handle(int signal) {
  (void)signal;
  ++handler_runs;
  sem_post(&ticks);
}

static void timer_every(long microseconds) {
  struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void block_signals(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void* hold_everything(void* unused) {
  (void)unused;
  block_signals();
  pthread_mutex_lock(&held);
  pthread_spin_lock(&spin);
  pthread_rwlock_wrlock(&rwlock);
  set_flag(&ready);
  sleep_ms(held_ms);
  pthread_mutex_unlock(&held);
  sleep_ms(held_ms);
  pthread_spin_unlock(&spin);
  sleep_ms(held_ms);
  pthread_rwlock_unlock(&rwlock);
  sleep_ms(held_ms);
  pthread_mutex_lock(&mutex);
  go_on = 1;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* hold_until_told(void* unused) {
  (void)unused;
  block_signals();
  pthread_mutex_lock(&held);
  set_flag(&ready);
  pthread_mutex_lock(&mutex);
  while (!go_on) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&held);
  return NULL;
}

static void plain_waits(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, hold_everything, NULL);
  await_flag(&ready);
  CHECK_CALL("mutex", pthread_mutex_lock(&held), 0);
  CHECK_CALL("spin", pthread_spin_lock(&spin), 0);
  CHECK_CALL("read lock", pthread_rwlock_rdlock(&rwlock), 0);
  pthread_mutex_lock(&mutex);
  int result = 0;
  while (!go_on && result == 0) result = pthread_cond_wait(&cond, &mutex);
  CHECK_EQ("cond", result, 0);
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&held);
  pthread_spin_unlock(&spin);
  pthread_rwlock_unlock(&rwlock);
  pthread_join(thread, NULL);
}

static void timed_waits(void) {
  pthread_t thread;
  go_on = ready = 0;
  pthread_create(&thread, NULL, hold_until_told, NULL);
  await_flag(&ready);
  long long start = now_ms();
  struct timespec at = deadline_ms(CLOCK_REALTIME, 12);
  CHECK_CALL("timedlock", pthread_mutex_timedlock(&held, &at), ETIMEDOUT);
  CHECK_TRUE("timedlock: not early", now_ms() - start >= 10);
  start = now_ms();
  at = deadline_ms(CLOCK_MONOTONIC, 12);
  CHECK_CALL("clocklock", pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  CHECK_TRUE("clocklock: not early", now_ms() - start >= 11);
  pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  start = now_ms();
  at = deadline_ms(CLOCK_MONOTONIC, 12);
  int result = 0;
  while (result == 0) result = pthread_cond_clockwait(&nobody, &mutex, CLOCK_MONOTONIC, &at);
  CHECK_EQ("clockwait", result, ETIMEDOUT);
  CHECK_TRUE("clockwait: not early", now_ms() - start >= 11);
  go_on = 1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sem_init(&ticks, 0, 0);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  sigaction(SIGALRM, &action, NULL);  // no SA_RESTART: system calls do see EINTR
  timer_every(100);
  plain_waits();
  timed_waits();
  timer_every(0);
  signal(SIGALRM, SIG_IGN);
  int posted = 0;
  sem_getvalue(&ticks, &posted);
  CHECK_TRUE("handlers ran", handler_runs > 0);
  CHECK_EQ("posts that are missing", handler_runs - posted, 0);
  return done();
}
