// Process-shared mutexes of each type: the fields, the error codes, and two processes that exclude
// each other; priority inheritance across processes as well.
// conformance: any-lock
#include "mutex_kinds.h"

#include <sys/mman.h>

enum { kRounds = 400, kProcesses = 3 };

typedef struct {
  pthread_mutex_t mutex;
  int flag;
  int release;
  long value;
  long copy;
} Shared;

static Shared* shared;

static int make_shared(int type, int protocol) {
  pthread_mutexattr_t attr;
  MUST(pthread_mutexattr_init(&attr) == 0);
  MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
  MUST(pthread_mutexattr_settype(&attr, type) == 0);
  MUST(pthread_mutexattr_setprotocol(&attr, protocol) == 0);
  memset(shared, 0x5a, sizeof *shared);
  int result = pthread_mutex_init(&shared->mutex, &attr);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
  shared->flag = shared->release = 0;
  shared->value = shared->copy = 0;
  return result;
}

static void fields(const char* name, const char* step) {
  const pthread_mutex_t* mutex = &shared->mutex;
  int owner = mutex->__data.__owner;
  printf("%s %s: owner %s, count %u, nusers %u, kind 0x%x\n", name, step,
         owner == 0           ? "nobody"
         : owner == own_tid() ? "self"
                              : "another",
         mutex->__data.__count, mutex->__data.__nusers,
         (unsigned)DOCUMENTED_KIND(mutex->__data.__kind));
}

static void one_process(const char* name, int type) {
  fields(name, "fresh");
  CHECK_CALL(label(name, "lock"), pthread_mutex_lock(&shared->mutex), 0);
  fields(name, "locked");
  int recursive = type == PTHREAD_MUTEX_RECURSIVE;
  REPORT(label(name, "owner trylock"), pthread_mutex_trylock(&shared->mutex));
  if (recursive) CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&shared->mutex), 0);
  if (type == PTHREAD_MUTEX_ERRORCHECK) {
    CHECK_CALL(label(name, "owner lock"), pthread_mutex_lock(&shared->mutex), EDEADLK);
  }
  CHECK_CALL(label(name, "destroy locked"), pthread_mutex_destroy(&shared->mutex), EBUSY);
  CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&shared->mutex), 0);
  fields(name, "unlocked");
}

static int count_up(void) {
  int bad = 0;
  for (int i = 0; i < kRounds; i++) {
    int result;
    if (i % 3 == 0) {
      struct timespec later = deadline_ms(CLOCK_MONOTONIC, 20000);
      result = pthread_mutex_clocklock(&shared->mutex, CLOCK_MONOTONIC, &later);
      // Priority inheritance knows one clock only, on kernels that know one only.
      if (result == EINVAL) result = pthread_mutex_lock(&shared->mutex);
    } else if (i % 3 == 1) {
      while ((result = pthread_mutex_trylock(&shared->mutex)) == EBUSY) sched_yield();
    } else {
      result = pthread_mutex_lock(&shared->mutex);
    }
    bad |= result != 0 || shared->value != shared->copy;
    shared->value++;
    if (i % 40 == 0) sched_yield();
    shared->copy++;
    bad |= pthread_mutex_unlock(&shared->mutex) != 0;
  }
  return bad;
}

static void processes_count(const char* name) {
  pid_t children[kProcesses];
  for (int i = 0; i < kProcesses; i++) {
    children[i] = fork();
    MUST(children[i] >= 0);
    if (children[i] == 0) _exit(count_up());
  }
  int bad = count_up();
  for (int i = 0; i < kProcesses; i++) bad += child_status(children[i]);
  CHECK_EQ(label(name, "counted"), shared->value, (kProcesses + 1) * kRounds);
  CHECK_EQ(label(name, "failed"), bad, 0);
  fields(name, "counted");
}

// The child holds it: what the parent can see and do.
static void child_holds(const char* name, int type, int protocol) {
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    int bad = pthread_mutex_lock(&shared->mutex) != 0;
    set_flag(&shared->flag);
    await_flag(&shared->release);
    bad |= pthread_mutex_unlock(&shared->mutex) != 0;
    _exit(bad);
  }
  await_flag(&shared->flag);
  fields(name, "held by the child");
  CHECK_CALL(label(name, "trylock"), pthread_mutex_trylock(&shared->mutex), EBUSY);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 3);
  CHECK_CALL(label(name, "timedlock"), pthread_mutex_timedlock(&shared->mutex, &soon), ETIMEDOUT);
  int checks_owner = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
  if (checks_owner || protocol == PTHREAD_PRIO_INHERIT) {
    CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&shared->mutex), EPERM);
  }
  set_flag(&shared->release);
  CHECK_CALL(label(name, "lock"), pthread_mutex_lock(&shared->mutex), 0);
  fields(name, "ours");
  CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&shared->mutex), 0);
  CHECK_EQ(label(name, "child"), child_status(child), 0);
  CHECK_CALL(label(name, "destroy"), pthread_mutex_destroy(&shared->mutex), 0);
  fields(name, "destroyed");
}

static void all(const char* name, int type, int protocol) {
  int result = make_shared(type, protocol);
  REPORT(label(name, "init"), result);
  if (result != 0) return;
  one_process(name, type);
  processes_count(name);
  child_holds(name, type, protocol);
  fflush(stdout);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared != MAP_FAILED);
  all("default", PTHREAD_MUTEX_DEFAULT, PTHREAD_PRIO_NONE);
  all("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
  all("errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE);
  all("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE);
  all("inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
  all("inherit errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT);
  return done();
}
