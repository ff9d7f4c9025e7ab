// Signals that arrive while a thread waits for a lock: the handler runs, the wait goes on, no call
// says EINTR, times out early or touches errno.
#include "mutex_kinds.h"

#include <signal.h>

enum { kSignals = 20 };

static pthread_mutex_t mutex;
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static int handled;
static int trouble;
static int waiting;
static int over;

// Locks another mutex than the one its thread waits for; only the waiting thread gets here.
static void on_signal(int number) {
  (void)number;
  int before = errno;
  if (pthread_mutex_lock(&of_handler) != 0) trouble = 1;
  if (pthread_mutex_unlock(&of_handler) != 0) trouble = 1;
  if (errno != before) trouble = 1;
  __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

typedef int (*WaitCall)(void);

static int wait_lock(void) { return pthread_mutex_lock(&mutex); }
static int wait_write(void) { return pthread_rwlock_wrlock(&rwlock); }
static int wait_spin(void) { return pthread_spin_lock(&spin); }

static int wait_timed(void) {
  struct timespec later = deadline_ms(CLOCK_REALTIME, 20000);
  return pthread_mutex_timedlock(&mutex, &later);
}

static int wait_clock(void) {
  struct timespec later = deadline_ms(CLOCK_MONOTONIC, 20000);
  return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &later);
}

static int wait_read(void) {
  struct timespec later = deadline_ms(CLOCK_MONOTONIC, 20000);
  return pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &later);
}

// Gives up after its time and not before, however often it is interrupted.
static int wait_in_vain(void) {
  struct timespec soon = deadline_ms(CLOCK_MONOTONIC, 30);
  int result = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon);
  struct timespec now = deadline_ms(CLOCK_MONOTONIC, 0);
  int early = now.tv_sec < soon.tv_sec || (now.tv_sec == soon.tv_sec && now.tv_nsec < soon.tv_nsec);
  return early ? 1000 : result;
}

static void* waiter(void* call) {
  set_flag(&waiting);
  errno = kErrnoSentinel;
  int result = (*(WaitCall*)call)();
  if (errno != kErrnoSentinel) result = 2000;
  set_flag(&over);
  return (void*)(long)result;
}

typedef enum { kHeldMutex, kHeldRwlock, kHeldSpin } Held;

static void hold(Held held) {
  if (held == kHeldMutex) MUST(pthread_mutex_lock(&mutex) == 0);
  if (held == kHeldRwlock) MUST(pthread_rwlock_wrlock(&rwlock) == 0);
  if (held == kHeldSpin) MUST(pthread_spin_lock(&spin) == 0);
}

static int let_go(Held held) {
  if (held == kHeldMutex) return pthread_mutex_unlock(&mutex);
  if (held == kHeldRwlock) return pthread_rwlock_unlock(&rwlock);
  return pthread_spin_unlock(&spin);
}

// What the waiter took ends with it in these three types, so it is unlocked from here.
static void interrupted(const char* name, WaitCall call, Held held, int expected) {
  pthread_t thread;
  void* result = (void*)-1L;
  waiting = over = handled = 0;
  hold(held);
  MUST(pthread_create(&thread, NULL, waiter, &call) == 0);
  await_flag(&waiting);
  for (int i = 0; i < kSignals; i++) {
    if (expected == 0 || __atomic_load_n(&over, __ATOMIC_ACQUIRE) == 0) {
      MUST(pthread_kill(thread, SIGUSR1) == 0);
    }
    struct timespec pause = {.tv_nsec = 300000};
    nanosleep(&pause, NULL);
  }
  if (expected == 0) {
    CHECK_EQ(label(name, "over while held"), __atomic_load_n(&over, __ATOMIC_ACQUIRE), 0);
    CHECK_EQ(label(name, "let go"), let_go(held), 0);
  }
  MUST(pthread_join(thread, &result) == 0);
  CHECK_EQ(label(name, "result"), (long)result, expected);
  CHECK_TRUE(label(name, "handler ran"), handled >= 1);
  if (expected != 0) CHECK_EQ(label(name, "let go"), let_go(held), 0);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  MUST(sigaction(SIGUSR1, &action, NULL) == 0);
  MUST(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
  static const int kinds[] = {PTHREAD_MUTEX_TIMED_NP, PTHREAD_MUTEX_ADAPTIVE_NP};
  for (int i = 0; i < 2; i++) {
    const char* kind = i == 0 ? "normal" : "adaptive";
    static const struct {
      const char* name;
      WaitCall call;
    } calls[] = {{"lock:", wait_lock}, {"timedlock:", wait_timed}, {"clocklock:", wait_clock}};
    for (int j = 0; j < 3; j++) {
      make_static_mutex(&mutex, kinds[i]);
      interrupted(label(kind, calls[j].name), calls[j].call, kHeldMutex, 0);
      CHECK_CALL(label(kind, "unlock for the waiter"), pthread_mutex_unlock(&mutex), 0);
    }
    interrupted(label(kind, "in vain:"), wait_in_vain, kHeldMutex, ETIMEDOUT);
  }
  interrupted("spin:", wait_spin, kHeldSpin, 0);
  CHECK_CALL("spin: unlock for the waiter", pthread_spin_unlock(&spin), 0);
  interrupted("wrlock:", wait_write, kHeldRwlock, 0);
  rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;  // its writer is gone
  interrupted("clockrdlock:", wait_read, kHeldRwlock, 0);
  CHECK_EQ("trouble in the handler", trouble, 0);
  return done();
}
