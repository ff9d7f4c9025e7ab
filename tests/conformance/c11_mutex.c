// C11 mutexes of every type: results, the fields behind them, and what a mistake gets.
#include "mutex_kinds.h"

#include <threads.h>

typedef struct {
  const char* name;
  int type;
} C11Kind;

static const C11Kind kKinds[] = {
    {"plain", mtx_plain},
    {"timed", mtx_timed},
    {"plain recursive", mtx_plain | mtx_recursive},
    {"timed recursive", mtx_timed | mtx_recursive},
    {"recursive alone", mtx_recursive},
};

enum { kKindCount = sizeof kKinds / sizeof kKinds[0], kThreads = 8, kRounds = 80 };

static mtx_t mutex;
static long counter;
static int ready;

// mtx_t has the layout of a pthread mutex in glibc; that is what debuggers look at.
static void fields(const C11Kind* kind, const char* step, int owned, unsigned count,
                   unsigned users) {
  pthread_mutex_t as_pthread;
  _Static_assert(sizeof as_pthread == sizeof mutex, "a mtx_t is as large as a pthread mutex");
  memcpy(&as_pthread, &mutex, sizeof as_pthread);
  int recursive = (kind->type & mtx_recursive) != 0;
  check_fields(label(kind->name, step), &as_pthread, owned, count, users,
               recursive ? PTHREAD_MUTEX_RECURSIVE_NP : 0x200);
}

static const char* result_name(int result) {
  switch (result) {
    case thrd_success:
      return "success";
    case thrd_busy:
      return "busy";
    case thrd_error:
      return "error";
    case thrd_nomem:
      return "nomem";
    case thrd_timedout:
      return "timedout";
    default:
      return "unknown";
  }
}

#define CHECK_C11(name, call, expected)                                                \
  do {                                                                                 \
    errno = kErrnoSentinel;                                                            \
    int got_ = (call);                                                                 \
    int untouched_ = errno == kErrnoSentinel;                                          \
    printf("%s: %s%s\n", (name), result_name(got_), untouched_ ? "" : " errno");       \
    fflush(stdout);                                                                    \
    if (got_ != (expected) || !untouched_) {                                           \
      check_fail();                                                                    \
      fprintf(stderr, "%s: %s is %d, expected %d\n", (name), #call, got_, (expected)); \
    }                                                                                  \
  } while (0)

static int try_here(void* unused) {
  (void)unused;
  return mtx_trylock(&mutex);
}

static int time_out_here(void* unused) {
  (void)unused;
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 4);
  return mtx_timedlock(&mutex, &soon);
}

static int bad_time_here(void* unused) {
  (void)unused;
  struct timespec invalid = {.tv_sec = 1, .tv_nsec = 1000000000L};
  return mtx_timedlock(&mutex, &invalid);
}

static int unlock_here(void* unused) {
  (void)unused;
  return mtx_unlock(&mutex);
}

static int in_c11_thread(thrd_start_t work) {
  thrd_t thread;
  int result = -1;
  MUST(thrd_create(&thread, work, NULL) == thrd_success);
  MUST(thrd_join(thread, &result) == thrd_success);
  return result;
}

static void steps(const C11Kind* kind) {
  int recursive = (kind->type & mtx_recursive) != 0;
  struct timespec later = deadline_ms(CLOCK_REALTIME, 5000);
  struct timespec past = {.tv_sec = 1};
  memset(&mutex, 0x5a, sizeof mutex);
  CHECK_C11(label(kind->name, "init"), mtx_init(&mutex, kind->type), thrd_success);
  fields(kind, "fresh", 0, 0, 0);
  CHECK_C11(label(kind->name, "lock"), mtx_lock(&mutex), thrd_success);
  fields(kind, "locked", 1, recursive ? 1 : 0, 1);
  CHECK_C11(label(kind->name, "owner trylock"), mtx_trylock(&mutex),
            recursive ? thrd_success : thrd_busy);
  CHECK_C11(label(kind->name, "owner timedlock, past"), mtx_timedlock(&mutex, &past),
            recursive ? thrd_success : thrd_timedout);
  fields(kind, "then", 1, recursive ? 3 : 0, 1);
  CHECK_C11(label(kind->name, "trylock by another"), in_c11_thread(try_here), thrd_busy);
  CHECK_C11(label(kind->name, "timedlock by another"), in_c11_thread(time_out_here), thrd_timedout);
  CHECK_C11(label(kind->name, "timedlock, bad time"), in_c11_thread(bad_time_here), thrd_error);
  CHECK_C11(label(kind->name, "unlock by another"), in_c11_thread(unlock_here),
            recursive ? thrd_error : thrd_success);
  for (int i = 0; recursive && i < 3; i++) {
    CHECK_C11(label(kind->name, "unlock"), mtx_unlock(&mutex), thrd_success);
  }
  fields(kind, "unlocked", 0, 0, 0);
  CHECK_C11(label(kind->name, "unlock unlocked"), mtx_unlock(&mutex),
            recursive ? thrd_error : thrd_success);
  CHECK_C11(label(kind->name, "init again"), mtx_init(&mutex, kind->type), thrd_success);
  CHECK_C11(label(kind->name, "timedlock"), mtx_timedlock(&mutex, &later), thrd_success);
  CHECK_C11(label(kind->name, "unlock"), mtx_unlock(&mutex), thrd_success);
  CHECK_C11(label(kind->name, "trylock"), mtx_trylock(&mutex), thrd_success);
  CHECK_C11(label(kind->name, "unlock"), mtx_unlock(&mutex), thrd_success);
}

static int count_up(void* argument) {
  int number = (int)(long)argument;
  int bad = 0;
  await_flag(&ready);
  for (int i = 0; i < kRounds; i++) {
    int result = thrd_success;
    switch ((i + number) % 3) {
      case 0:
        result = mtx_lock(&mutex);
        break;
      case 1:
        while ((result = mtx_trylock(&mutex)) == thrd_busy) thrd_yield();
        break;
      default:
        do {
          struct timespec soon = deadline_ms(CLOCK_REALTIME, i % 4);
          result = mtx_timedlock(&mutex, &soon);
        } while (result == thrd_timedout);
    }
    bad |= result != thrd_success;
    counter++;
    if (i % 32 == 0) thrd_yield();
    bad |= mtx_unlock(&mutex) != thrd_success;
  }
  return bad;
}

static void exclude(const C11Kind* kind) {
  thrd_t threads[kThreads];
  int bad = 0;
  counter = 0;
  ready = 0;
  for (long i = 0; i < kThreads; i++) {
    MUST(thrd_create(&threads[i], count_up, (void*)i) == thrd_success);
  }
  set_flag(&ready);
  for (int i = 0; i < kThreads; i++) {
    int result = -1;
    MUST(thrd_join(threads[i], &result) == thrd_success);
    bad |= result;
  }
  CHECK_EQ(label(kind->name, "counted"), counter, kThreads * kRounds);
  CHECK_EQ(label(kind->name, "failed"), bad, 0);
}

static void destroyed(const C11Kind* kind) {
  struct timespec later = deadline_ms(CLOCK_REALTIME, 5000);
  mtx_destroy(&mutex);
  CHECK_C11(label(kind->name, "destroyed: lock"), mtx_lock(&mutex), thrd_error);
  CHECK_C11(label(kind->name, "destroyed: trylock"), mtx_trylock(&mutex), thrd_error);
  CHECK_C11(label(kind->name, "destroyed: timedlock"), mtx_timedlock(&mutex, &later), thrd_error);
  CHECK_C11(label(kind->name, "destroyed: unlock"), mtx_unlock(&mutex), thrd_error);
}

static void locked_destroy(void) {
  MUST(mtx_init(&mutex, mtx_plain) == thrd_success);
  CHECK_C11("locked: lock", mtx_lock(&mutex), thrd_success);
  mtx_destroy(&mutex);  // refuses without a word
  CHECK_C11("locked: trylock after destroy", mtx_trylock(&mutex), thrd_busy);
  CHECK_C11("locked: unlock", mtx_unlock(&mutex), thrd_success);
  CHECK_C11("locked: trylock", mtx_trylock(&mutex), thrd_success);
  CHECK_C11("locked: unlock", mtx_unlock(&mutex), thrd_success);
}

int main(void) {
  for (int i = 0; i < kKindCount; i++) {
    steps(&kKinds[i]);
    exclude(&kKinds[i]);
    destroyed(&kKinds[i]);
  }
  locked_destroy();
  CHECK_C11("unknown type: init", mtx_init(&mutex, 64), thrd_success);
  REPORT("unknown type: lock", mtx_lock(&mutex));
  // The same mutex through both families of calls.
  MUST(mtx_init(&mutex, mtx_timed) == thrd_success);
  CHECK_C11("both families: mtx_lock", mtx_lock(&mutex), thrd_success);
  CHECK_CALL("both families: pthread trylock", pthread_mutex_trylock((pthread_mutex_t*)&mutex),
             EBUSY);
  CHECK_CALL("both families: pthread unlock", pthread_mutex_unlock((pthread_mutex_t*)&mutex), 0);
  CHECK_CALL("both families: pthread lock", pthread_mutex_lock((pthread_mutex_t*)&mutex), 0);
  CHECK_C11("both families: mtx_trylock", mtx_trylock(&mutex), thrd_busy);
  CHECK_C11("both families: mtx_unlock", mtx_unlock(&mutex), thrd_success);
  return done();
}
