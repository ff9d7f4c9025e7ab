// A real-time thread and an ordinary one on the same processor share locks. The real-time thread
// always wins the processor, so while it waits it must let go of it; for a spinlock glibc itself
// lets the system's real-time limit break the tie, so there one meeting must be enough.
//
// conformance: serial
//
// Prints the same lines where real-time scheduling is not permitted; all threads are ordinary then.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"

enum { kTimes = 300, kTurns = 300 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static long count;  // under the mutex, like turn
static int turn;
static int owner_has;  // the ordinary thread holds the lock
static int asks;       // the real-time thread is about to wait
static int got;

static void stay_on_one_cpu(void) {
  cpu_set_t allowed;
  cpu_set_t one;
  CPU_ZERO(&one);
  MUST(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  MUST(sched_setaffinity(0, sizeof one, &one) == 0);
}

static void become_real_time(void) {
  struct sched_param parameters;
  memset(&parameters, 0, sizeof parameters);
  parameters.sched_priority = 1;
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);  // may be refused
}

// Holds the lock until the real-time thread has run into it, and a little longer.
static void hold_until_asked(int (*take)(void), void (*give)(void)) {
  take();
  set_flag(&owner_has);
  await_flag(&asks);
  sleep_ms(1);
  give();
}

static int take_mutex(void) { return pthread_mutex_lock(&mutex); }
static void give_mutex(void) { pthread_mutex_unlock(&mutex); }
static int take_recursive(void) { return pthread_mutex_lock(&recursive); }
static void give_recursive(void) { pthread_mutex_unlock(&recursive); }
static int take_timed(void) {
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  return pthread_mutex_timedlock(&mutex, &far);
}
static int take_spin(void) { return pthread_spin_lock(&spin); }
static void give_spin(void) { pthread_spin_unlock(&spin); }

struct Lock {
  int (*take)(void);
  void (*give)(void);
};

static void* wait_in_real_time(void* argument) {
  struct Lock* lock = argument;
  become_real_time();
  await_flag(&owner_has);
  set_flag(&asks);
  got = lock->take() == 0;
  lock->give();
  return NULL;
}

static void meet(const char* name, int (*take)(void), void (*give)(void)) {
  struct Lock lock = {take, give};
  pthread_t thread;
  owner_has = asks = got = 0;
  MUST(pthread_create(&thread, NULL, wait_in_real_time, &lock) == 0);
  hold_until_asked(take, give);
  pthread_join(thread, NULL);
  CHECK_EQ(name, got, 1);
}

static void* add(void* real_time) {
  if (real_time != NULL) become_real_time();
  for (int i = 0; i < kTimes; ++i) {
    pthread_mutex_lock(&mutex);
    ++count;
    if (i % 10 == 0) sleep_ms(0);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void* play(void* real_time) {
  int me = real_time != NULL;
  if (me) become_real_time();
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn % 2 != me) pthread_cond_wait(&cond, &mutex);
    ++turn;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  stay_on_one_cpu();
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  meet("mutex", take_mutex, give_mutex);
  meet("timed", take_timed, give_mutex);
  meet("recursive", take_recursive, give_recursive);
  pthread_create(&thread, NULL, add, &mutex);
  add(NULL);
  pthread_join(thread, NULL);
  CHECK_EQ("count", count, 2 * kTimes);
  pthread_create(&thread, NULL, play, &mutex);
  play(NULL);
  pthread_join(thread, NULL);
  CHECK_EQ("turns", turn, 2 * kTurns);
  meet("spinlock", take_spin, give_spin);
  return done();
}
