// timedlock and clocklock: every clock and every time, on a free and on a held mutex.
#include "mutex_kinds.h"

static pthread_mutex_t mutex;
static int held;

// A time and what a held mutex says about it; a free one is locked without a look at the time.
typedef struct {
  const char* name;
  time_t seconds;
  long nanoseconds;
  int from_now;
  int when_held;
} Moment;

static const Moment kMoments[] = {
    {"soon", 0, 4000000, 1, ETIMEDOUT},
    {"now", 0, 0, 1, ETIMEDOUT},
    {"a second ago", -1, 0, 1, ETIMEDOUT},
    {"the epoch", 0, 0, 0, ETIMEDOUT},
    {"before the epoch", -1, 0, 0, ETIMEDOUT},
    {"the first second there is", (time_t)(1ULL << 63), 0, 0, ETIMEDOUT},
    {"nanoseconds -1", 100, -1, 2, EINVAL},
    {"nanoseconds 10^9", 100, 1000000000L, 2, EINVAL},
    {"nanoseconds most negative", 100, (long)(1UL << 63), 2, EINVAL},
    {"nanoseconds largest", 100, (long)(~0UL >> 1), 2, EINVAL},
    {"nanoseconds -1, before the epoch", -1, -1, 0, ETIMEDOUT},
    {"nanoseconds 10^9, in the past", 1, 1000000000L, 0, EINVAL},
};

enum { kMomentCount = sizeof kMoments / sizeof kMoments[0] };

static struct timespec time_of(const Moment* moment, clockid_t clock) {
  struct timespec at = {.tv_sec = moment->seconds, .tv_nsec = moment->nanoseconds};
  if (moment->from_now == 0) return at;
  struct timespec now = deadline_ms(clock, 0);
  at.tv_sec += now.tv_sec;
  if (moment->from_now == 1) {
    at.tv_nsec += now.tv_nsec;
    if (at.tv_nsec >= 1000000000L) {
      at.tv_nsec -= 1000000000L;
      at.tv_sec += 1;
    }
  }
  return at;
}

static void* each_moment(void* kind_name) {
  for (int i = 0; i < kMomentCount; i++) {
    const Moment* moment = &kMoments[i];
    int expected = held ? moment->when_held : 0;
    const char* name = label((const char*)kind_name, held ? "held," : "free,");
    struct timespec at = time_of(moment, CLOCK_REALTIME);
    char text[160];
    snprintf(text, sizeof text, "%s %s: timedlock", name, moment->name);
    CHECK_CALL(text, pthread_mutex_timedlock(&mutex, &at), expected);
    if (expected == 0) MUST(pthread_mutex_unlock(&mutex) == 0);
    snprintf(text, sizeof text, "%s %s: clocklock realtime", name, moment->name);
    CHECK_CALL(text, pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &at), expected);
    if (expected == 0) MUST(pthread_mutex_unlock(&mutex) == 0);
    at = time_of(moment, CLOCK_MONOTONIC);
    snprintf(text, sizeof text, "%s %s: clocklock monotonic", name, moment->name);
    CHECK_CALL(text, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at), expected);
    if (expected == 0) MUST(pthread_mutex_unlock(&mutex) == 0);
  }
  return NULL;
}

static void* other_clocks(void* kind_name) {
  static const int clocks[] = {CLOCK_PROCESS_CPUTIME_ID,
                               CLOCK_THREAD_CPUTIME_ID,
                               CLOCK_MONOTONIC_RAW,
                               CLOCK_REALTIME_COARSE,
                               CLOCK_MONOTONIC_COARSE,
                               CLOCK_BOOTTIME,
                               CLOCK_TAI,
                               77,
                               -1,
                               -6};
  struct timespec at = deadline_ms(CLOCK_MONOTONIC, 1000);
  for (unsigned i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
    char text[160];
    snprintf(text, sizeof text, "%s %s, clock %d", (const char*)kind_name, held ? "held" : "free",
             clocks[i]);
    CHECK_CALL(text, pthread_mutex_clocklock(&mutex, clocks[i], &at), EINVAL);
  }
  return NULL;
}

// A timed lock must wait as long as it says, and not much longer.
static void* wait_for_it(void* kind_name) {
  long long before = now_ms();
  struct timespec at = deadline_ms(CLOCK_REALTIME, 30);
  CHECK_CALL(label((const char*)kind_name, "30 ms: timedlock"),
             pthread_mutex_timedlock(&mutex, &at), ETIMEDOUT);
  struct timespec after = deadline_ms(CLOCK_REALTIME, 0);
  CHECK_TRUE("not early", after.tv_sec > at.tv_sec ||
                              (after.tv_sec == at.tv_sec && after.tv_nsec >= at.tv_nsec));
  at = deadline_ms(CLOCK_MONOTONIC, 30);
  CHECK_CALL(label((const char*)kind_name, "30 ms: clocklock"),
             pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
  after = deadline_ms(CLOCK_MONOTONIC, 0);
  CHECK_TRUE("not early", after.tv_sec > at.tv_sec ||
                              (after.tv_sec == at.tv_sec && after.tv_nsec >= at.tv_nsec));
  CHECK_TRUE("not seconds late", now_ms() - before < 5000);
  return NULL;
}

static void all_times(const MutexKind* kind) {
  make_mutex(&mutex, kind);
  held = 0;
  each_moment((void*)kind->name);
  other_clocks((void*)kind->name);
  CHECK_CALL(label(kind->name, "lock"), pthread_mutex_lock(&mutex), 0);
  held = 1;
  on_other_thread(each_moment, (void*)kind->name);
  on_other_thread(other_clocks, (void*)kind->name);
  on_other_thread(wait_for_it, (void*)kind->name);
  unsigned count = kind->behaviour == kRecursive ? 1 : 0;
  check_fields(label(kind->name, "after all"), &mutex, 1, count, 1, kind->kind);
  // The owner of these two is told before anybody looks at the time; the clock comes first.
  if (kind->behaviour != kPlain) {
    int again = kind->behaviour == kRecursive ? 0 : EDEADLK;
    struct timespec invalid = {.tv_sec = 1, .tv_nsec = -5};
    CHECK_CALL(label(kind->name, "owner, bad time"), pthread_mutex_timedlock(&mutex, &invalid),
               again);
    if (again == 0) MUST(pthread_mutex_unlock(&mutex) == 0);
    CHECK_CALL(label(kind->name, "owner, bad clock"),
               pthread_mutex_clocklock(&mutex, CLOCK_BOOTTIME, &invalid), EINVAL);
  }
  CHECK_CALL(label(kind->name, "unlock"), pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL(label(kind->name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
  for (int i = 0; i < kMutexKindCount; i++) {
    if (kMutexKinds[i].type == kStatic || kMutexKinds[i].type == PTHREAD_MUTEX_NORMAL) {
      all_times(&kMutexKinds[i]);
    }
  }
  return done();
}
