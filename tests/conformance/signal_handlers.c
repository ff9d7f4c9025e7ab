// Signal handlers that lock a mutex of their own and signal a condition variable of their own,
// while the interrupted thread waits for another lock or holds it. The handlers contend with each
// other too.
#include "check.h"
#include "cond_support.h"

#include <semaphore.h>
#include <signal.h>

enum Kind { kMutex, kTimed, kRecursive, kSpin, kCond, kKinds };
enum { kThreads = 4, kTimes = 4000, kHelpers = 2, kSignals = 1000 };

static pthread_mutex_t handler_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handler_cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t handler_spin;
static sem_t handler_sem;
static long handler_count;       // under handler_mutex
static long handler_spin_count;  // under handler_spin
static long helper_seen;         // under handler_mutex
static int helper_stop;          // under handler_mutex

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_spinlock_t spin;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static enum Kind kind;
static long count;
static int turn;
static int finished;  // atomic
static int errors;    // atomic

static void handle(int signal) {
  (void)signal;
  int saved = errno;
  pthread_mutex_lock(&handler_mutex);
  ++handler_count;
  pthread_cond_signal(&handler_cond);
  pthread_mutex_unlock(&handler_mutex);
  pthread_spin_lock(&handler_spin);
  ++handler_spin_count;
  pthread_spin_unlock(&handler_spin);
  sem_post(&handler_sem);
  errno = saved;
}

// Waits for what the handlers signal; takes no signals itself.
static void* watch_handlers(void* unused) {
  (void)unused;
  pthread_mutex_lock(&handler_mutex);
  while (!helper_stop) {
    pthread_cond_wait(&handler_cond, &handler_mutex);
    ++helper_seen;
  }
  pthread_mutex_unlock(&handler_mutex);
  return NULL;
}

static void expect(int result, int expected) {
  if (result != expected) __atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED);  // a mere count
}

static void work_once(int me) {
  struct timespec far = deadline_ms(CLOCK_REALTIME, 600000);
  switch (kind) {
    case kMutex:
      expect(pthread_mutex_lock(&mutex), 0);
      ++count;
      expect(pthread_mutex_unlock(&mutex), 0);
      break;
    case kTimed:
      expect(pthread_mutex_timedlock(&mutex, &far), 0);
      ++count;
      expect(pthread_mutex_unlock(&mutex), 0);
      break;
    case kRecursive:
      expect(pthread_mutex_lock(&recursive), 0);
      expect(pthread_mutex_lock(&recursive), 0);
      ++count;
      expect(pthread_mutex_unlock(&recursive), 0);
      expect(pthread_mutex_unlock(&recursive), 0);
      break;
    case kSpin:
      expect(pthread_spin_lock(&spin), 0);
      ++count;
      expect(pthread_spin_unlock(&spin), 0);
      break;
    default:
      expect(pthread_mutex_lock(&mutex), 0);
      while (turn % kThreads != me) {
        expect(
            me % 2 ? pthread_cond_wait(&cond, &mutex) : pthread_cond_timedwait(&cond, &mutex, &far),
            0);
      }
      ++turn;
      ++count;
      expect(pthread_cond_broadcast(&cond), 0);
      expect(pthread_mutex_unlock(&mutex), 0);
      break;
  }
}

static void* work(void* me) {
  int times = kind == kCond ? kTimes / 10 : kTimes;
  for (int i = 0; i < times; ++i) work_once((int)(intptr_t)me);
  __atomic_fetch_add(&finished, 1, __ATOMIC_ACQ_REL);
  return NULL;
}

static void run(const char* name, enum Kind which) {
  pthread_t threads[kThreads];
  kind = which;
  count = 0;
  turn = 0;
  finished = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i);
  }
  // Bounded, so that slow handlers can delay the work but never keep it from ending.
  for (int i = 0; i < kSignals && __atomic_load_n(&finished, __ATOMIC_ACQUIRE) < kThreads; ++i) {
    pthread_kill(threads[i % kThreads], SIGUSR1);
    struct timespec pause_time = {0, 20000};
    nanosleep(&pause_time, NULL);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ(name, count, kThreads * (which == kCond ? kTimes / 10 : kTimes));
}

static void start_helpers(pthread_t* helpers) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  for (int i = 0; i < kHelpers; ++i) pthread_create(&helpers[i], NULL, watch_handlers, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(void) {
  static const char* const kNames[kKinds] = {"mutex", "timed", "recursive", "spin", "cond"};
  pthread_t helpers[kHelpers];
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_spin_init(&handler_spin, PTHREAD_PROCESS_PRIVATE);
  sem_init(&handler_sem, 0, 0);
  start_helpers(helpers);
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < kKinds; ++i) run(kNames[i], (enum Kind)i);
  signal(SIGUSR1, SIG_IGN);
  pthread_mutex_lock(&handler_mutex);
  helper_stop = 1;
  pthread_cond_broadcast(&handler_cond);
  pthread_mutex_unlock(&handler_mutex);
  for (int i = 0; i < kHelpers; ++i) pthread_join(helpers[i], NULL);
  int posts = 0;
  sem_getvalue(&handler_sem, &posts);
  CHECK_EQ("errors", errors, 0);
  CHECK_TRUE("handlers ran", handler_count > 0);
  CHECK_TRUE("each did all of its work",
             handler_count == handler_spin_count && handler_count == posts);
  CHECK_TRUE("helpers were woken", helper_seen > 0);
  return done();
}
