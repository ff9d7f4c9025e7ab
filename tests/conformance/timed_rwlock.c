// The timed readers-writer calls: every clock and every time, on a free, a read and a written lock.
// Other than a mutex, a readers-writer lock looks at the time before it looks at itself.
// conformance: any-lock
#include "check.h"

static pthread_rwlock_t lock;

enum { kFree, kRead, kWritten };

static const char* const kStates[] = {"free", "read", "written"};

typedef struct {
  const char* name;
  time_t seconds;
  long nanoseconds;
  int result;  // if it has to wait
  int always;  // or not
} Moment;

static const Moment kMoments[] = {
    {"the epoch", 0, 0, ETIMEDOUT, 0},
    {"in the past", 1000, 999999999L, ETIMEDOUT, 0},
    {"before the epoch", -1, 0, ETIMEDOUT, 0},
    {"nanoseconds -1", 1, -1, EINVAL, EINVAL},
    {"nanoseconds 10^9", 1, 1000000000L, EINVAL, EINVAL},
    {"nanoseconds 10^9 far ahead", 1L << 40, 1000000000L, EINVAL, EINVAL},
    {"nanoseconds most negative", 1, (long)(1UL << 63), EINVAL, EINVAL},
    {"nanoseconds -1, before the epoch", -1, -1, EINVAL, EINVAL},
};

enum { kMomentCount = sizeof kMoments / sizeof kMoments[0] };

static int and_unlock(int result) {
  if (result == 0) pthread_rwlock_unlock(&lock);
  return result;
}

static void at_moment(const char* kind, int state, const Moment* moment) {
  struct timespec at = {.tv_sec = moment->seconds, .tv_nsec = moment->nanoseconds};
  int reads = state == kWritten ? moment->result : moment->always;
  int writes = state == kFree ? moment->always : moment->result;
  char name[96];
  snprintf(name, sizeof name, "%s %s, %s:", kind, kStates[state], moment->name);
  CHECK_CALL(label(name, "timedrdlock"), and_unlock(pthread_rwlock_timedrdlock(&lock, &at)), reads);
  CHECK_CALL(label(name, "timedwrlock"), and_unlock(pthread_rwlock_timedwrlock(&lock, &at)),
             writes);
  static const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
  for (int i = 0; i < 2; i++) {
    CHECK_CALL(label(name, i ? "clockrdlock monotonic" : "clockrdlock realtime"),
               and_unlock(pthread_rwlock_clockrdlock(&lock, clocks[i], &at)), reads);
    CHECK_CALL(label(name, i ? "clockwrlock monotonic" : "clockwrlock realtime"),
               and_unlock(pthread_rwlock_clockwrlock(&lock, clocks[i], &at)), writes);
  }
}

static void other_clocks(const char* kind, int state) {
  static const int clocks[] = {CLOCK_PROCESS_CPUTIME_ID,
                               CLOCK_MONOTONIC_RAW,
                               CLOCK_REALTIME_COARSE,
                               CLOCK_BOOTTIME,
                               CLOCK_TAI,
                               77,
                               -1};
  struct timespec at = deadline_ms(CLOCK_MONOTONIC, 1000);
  for (unsigned i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
    char name[96];
    snprintf(name, sizeof name, "%s %s, clock %d:", kind, kStates[state], clocks[i]);
    CHECK_CALL(label(name, "clockrdlock"), pthread_rwlock_clockrdlock(&lock, clocks[i], &at),
               EINVAL);
    CHECK_CALL(label(name, "clockwrlock"), pthread_rwlock_clockwrlock(&lock, clocks[i], &at),
               EINVAL);
  }
}

typedef struct {
  const char* kind;
  int state;
} Case;

static void* all_times(void* argument) {
  const Case* now = argument;
  for (int i = 0; i < kMomentCount; i++) at_moment(now->kind, now->state, &kMoments[i]);
  other_clocks(now->kind, now->state);
  if (now->state == kFree) return NULL;
  struct timespec at = deadline_ms(CLOCK_MONOTONIC, 10);
  CHECK_CALL(label(now->kind, "10 ms: clockwrlock"),
             pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  struct timespec after = deadline_ms(CLOCK_MONOTONIC, 0);
  CHECK_TRUE("not early", after.tv_sec > at.tv_sec ||
                              (after.tv_sec == at.tv_sec && after.tv_nsec >= at.tv_nsec));
  return NULL;
}

static void each_state(const char* kind) {
  Case now = {kind, kFree};
  on_other_thread(all_times, &now);
  CHECK_CALL(label(kind, "rdlock"), pthread_rwlock_rdlock(&lock), 0);
  now.state = kRead;
  on_other_thread(all_times, &now);
  CHECK_CALL(label(kind, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(kind, "wrlock"), pthread_rwlock_wrlock(&lock), 0);
  now.state = kWritten;
  on_other_thread(all_times, &now);
  // For the writer itself the time comes first as well.
  struct timespec invalid = {.tv_sec = 1, .tv_nsec = -1};
  CHECK_CALL(label(kind, "writer, bad time"), pthread_rwlock_timedrdlock(&lock, &invalid), EINVAL);
  CHECK_CALL(label(kind, "writer, bad time"), pthread_rwlock_timedwrlock(&lock, &invalid), EINVAL);
  invalid.tv_nsec = 0;
  CHECK_CALL(label(kind, "writer, past"), pthread_rwlock_timedrdlock(&lock, &invalid), EDEADLK);
  CHECK_CALL(label(kind, "writer, past"), pthread_rwlock_timedwrlock(&lock, &invalid), EDEADLK);
  CHECK_CALL(label(kind, "unlock"), pthread_rwlock_unlock(&lock), 0);
  CHECK_CALL(label(kind, "destroy"), pthread_rwlock_destroy(&lock), 0);
}

int main(void) {
  static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP,
                              PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
  for (int shared = 0; shared < 2; shared++) {
    for (int i = 0; i < 2; i++) {
      pthread_rwlockattr_t attr;
      char name[48];
      snprintf(name, sizeof name, "%s, prefers %s", shared ? "shared" : "private",
               i ? "writers" : "readers");
      MUST(pthread_rwlockattr_init(&attr) == 0);
      MUST(pthread_rwlockattr_setkind_np(&attr, kinds[i]) == 0);
      MUST(pthread_rwlockattr_setpshared(&attr, shared) == 0);
      MUST(pthread_rwlock_init(&lock, &attr) == 0);
      each_state(name);
    }
  }
  return done();
}
