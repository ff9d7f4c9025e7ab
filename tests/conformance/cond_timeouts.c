// Deadlines of condition variables: clocks, the past, and values that are no time at all. Whatever
// the result, the caller holds the mutex afterwards, as the error-checking mutex tells.
#include "check.h"

static pthread_mutex_t mutex;
static pthread_cond_t realtime_cond = PTHREAD_COND_INITIALIZER;
static pthread_cond_t monotonic_cond;

static void* try_mutex(void* unused) {
  (void)unused;
  int result = pthread_mutex_trylock(&mutex);
  if (result == 0) pthread_mutex_unlock(&mutex);
  return (void*)(long)result;
}

static void set_up(void) {
  pthread_mutexattr_t mutex_attributes;
  pthread_mutexattr_init(&mutex_attributes);
  pthread_mutexattr_settype(&mutex_attributes, PTHREAD_MUTEX_ERRORCHECK);
  MUST(pthread_mutex_init(&mutex, &mutex_attributes) == 0);
  pthread_condattr_t attributes;
  clockid_t clock = 77;
  pthread_condattr_init(&attributes);
  CHECK_EQ("the default clock", (pthread_condattr_getclock(&attributes, &clock), clock),
           CLOCK_REALTIME);
  CHECK_CALL("a clock attribute that is no such clock",
             pthread_condattr_setclock(&attributes, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
  CHECK_CALL("the monotonic attribute", pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
  CHECK_CALL("init with it", pthread_cond_init(&monotonic_cond, &attributes), 0);
  CHECK_EQ("the clock it names", (pthread_condattr_getclock(&attributes, &clock), clock),
           CLOCK_MONOTONIC);
  pthread_condattr_destroy(&attributes);
}

static void check_held(const char* name) {
  CHECK_EQ(name, (long)on_other_thread(try_mutex, NULL), EBUSY);
}

static void real_waits(void) {
  long long start = now_ms();
  struct timespec at = deadline_ms(CLOCK_REALTIME, 15);
  CHECK_CALL("realtime", pthread_cond_timedwait(&realtime_cond, &mutex, &at), ETIMEDOUT);
  CHECK_TRUE("realtime: not early", now_ms() - start >= 13);
  check_held("realtime: held after");

  start = now_ms();
  at = deadline_ms(CLOCK_MONOTONIC, 15);
  CHECK_CALL("monotonic attribute", pthread_cond_timedwait(&monotonic_cond, &mutex, &at),
             ETIMEDOUT);
  CHECK_TRUE("monotonic attribute: not early", now_ms() - start >= 14);

  start = now_ms();
  at = deadline_ms(CLOCK_MONOTONIC, 15);
  CHECK_CALL("clockwait monotonic",
             pthread_cond_clockwait(&realtime_cond, &mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  CHECK_TRUE("clockwait monotonic: not early", now_ms() - start >= 14);

  start = now_ms();
  at = deadline_ms(CLOCK_REALTIME, 15);
  CHECK_CALL("clockwait realtime overrides the attribute",
             pthread_cond_clockwait(&monotonic_cond, &mutex, CLOCK_REALTIME, &at), ETIMEDOUT);
  CHECK_TRUE("clockwait realtime: not early", now_ms() - start >= 13);
}

static void past_deadlines(void) {
  struct timespec past = deadline_ms(CLOCK_REALTIME, -1000);
  CHECK_CALL("a second ago", pthread_cond_timedwait(&realtime_cond, &mutex, &past), ETIMEDOUT);
  check_held("a second ago: held after");
  struct timespec zero = {0, 0};
  CHECK_CALL("time zero", pthread_cond_timedwait(&realtime_cond, &mutex, &zero), ETIMEDOUT);
  CHECK_CALL("time zero, monotonic",
             pthread_cond_clockwait(&realtime_cond, &mutex, CLOCK_MONOTONIC, &zero), ETIMEDOUT);
  struct timespec negative = {-5, 999999999};
  CHECK_CALL("negative seconds", pthread_cond_timedwait(&realtime_cond, &mutex, &negative),
             ETIMEDOUT);
  check_held("negative seconds: held after");
  CHECK_CALL("negative seconds, monotonic attribute",
             pthread_cond_timedwait(&monotonic_cond, &mutex, &negative), ETIMEDOUT);
  CHECK_CALL("negative seconds, clockwait",
             pthread_cond_clockwait(&monotonic_cond, &mutex, CLOCK_REALTIME, &negative), ETIMEDOUT);
}

static void invalid_times(void) {
  struct timespec too_many = deadline_ms(CLOCK_REALTIME, 1000);
  too_many.tv_nsec = 1000000000L;
  CHECK_CALL("a billion nanoseconds", pthread_cond_timedwait(&realtime_cond, &mutex, &too_many),
             EINVAL);
  check_held("a billion nanoseconds: held after");
  struct timespec negative = deadline_ms(CLOCK_REALTIME, -1000);
  negative.tv_nsec = -1;
  CHECK_CALL("negative nanoseconds", pthread_cond_timedwait(&monotonic_cond, &mutex, &negative),
             EINVAL);
  CHECK_CALL("clockwait, a billion nanoseconds",
             pthread_cond_clockwait(&realtime_cond, &mutex, CLOCK_MONOTONIC, &too_many), EINVAL);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 1000);
  CHECK_CALL("clockwait on processor time",
             pthread_cond_clockwait(&realtime_cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &soon),
             EINVAL);
  check_held("clockwait on processor time: held after");
  CHECK_CALL("clockwait on boot time",
             pthread_cond_clockwait(&realtime_cond, &mutex, CLOCK_BOOTTIME, &soon), EINVAL);
  CHECK_CALL("clockwait on no clock", pthread_cond_clockwait(&realtime_cond, &mutex, 9999, &soon),
             EINVAL);
}

int main(void) {
  set_up();
  CHECK_CALL("lock", pthread_mutex_lock(&mutex), 0);
  real_waits();
  past_deadlines();
  invalid_times();
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  struct timespec invalid = {0, -1};
  CHECK_CALL("invalid nanoseconds come before not owning the mutex",
             pthread_cond_timedwait(&realtime_cond, &mutex, &invalid), EINVAL);
  CHECK_CALL("nobody holds it now", pthread_mutex_unlock(&mutex), EPERM);
  CHECK_CALL("destroy", pthread_cond_destroy(&realtime_cond), 0);
  CHECK_CALL("destroy monotonic", pthread_cond_destroy(&monotonic_cond), 0);
  CHECK_CALL("destroy mutex", pthread_mutex_destroy(&mutex), 0);
  return done();
}
