// A robust, process-shared mutex whose owner process ends or is killed; with and without priority
// inheritance. Two processes, one mutex.
// conformance: any-lock
#include "mutex_kinds.h"

#include <signal.h>
#include <sys/mman.h>

typedef struct {
  pthread_mutex_t mutex;
  int flag;
  int second;
  long value;
} Shared;

static Shared* shared;

static int make_shared(int type, int protocol) {
  pthread_mutexattr_t attr;
  MUST(pthread_mutexattr_init(&attr) == 0);
  MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
  MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
  MUST(pthread_mutexattr_settype(&attr, type) == 0);
  MUST(pthread_mutexattr_setprotocol(&attr, protocol) == 0);
  memset(shared, 0, sizeof *shared);
  int result = pthread_mutex_init(&shared->mutex, &attr);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
  return result;
}

static void child_ends_with_it(const char* name) {
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) _exit(pthread_mutex_lock(&shared->mutex));
  CHECK_EQ(label(name, "child that ends with it"), child_status(child), 0);
  CHECK_CALL(label(name, "lock"), pthread_mutex_lock(&shared->mutex), EOWNERDEAD);
  CHECK_CALL(label(name, "consistent"), pthread_mutex_consistent(&shared->mutex), 0);
  CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&shared->mutex), 0);
}

static void child_killed_while_we_wait(const char* name) {
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    if (pthread_mutex_lock(&shared->mutex) != 0) _exit(1);
    set_flag(&shared->flag);
    sleep_ms(5);
    kill(getpid(), SIGKILL);
  }
  await_flag(&shared->flag);
  struct timespec later = deadline_ms(CLOCK_REALTIME, 20000);
  CHECK_CALL(label(name, "timedlock"), pthread_mutex_timedlock(&shared->mutex, &later), EOWNERDEAD);
  CHECK_CALL(label(name, "consistent"), pthread_mutex_consistent(&shared->mutex), 0);
  CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&shared->mutex), 0);
  CHECK_EQ(label(name, "child that is killed"), child_status(child), 1000 + SIGKILL);
}

static void parent_and_child_count(const char* name) {
  enum { kRounds = 400 };
  pid_t child = fork();
  MUST(child >= 0);
  int bad = 0;
  for (int i = 0; i < kRounds; i++) {
    bad |= pthread_mutex_lock(&shared->mutex) != 0;
    shared->value++;
    if (i % 50 == 0) sched_yield();
    bad |= pthread_mutex_unlock(&shared->mutex) != 0;
  }
  if (child == 0) _exit(bad);
  CHECK_EQ(label(name, "child counted"), child_status(child), 0);
  CHECK_EQ(label(name, "failed calls"), bad, 0);
  CHECK_EQ(label(name, "counted"), shared->value, 2 * kRounds);
}

static void child_gives_it_up(const char* name) {
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) _exit(pthread_mutex_lock(&shared->mutex));
  CHECK_EQ(label(name, "child that ends with it"), child_status(child), 0);
  CHECK_CALL(label(name, "trylock"), pthread_mutex_trylock(&shared->mutex), EOWNERDEAD);
  CHECK_CALL(label(name, "unlock, not consistent"), pthread_mutex_unlock(&shared->mutex), 0);
  child = fork();
  MUST(child >= 0);
  if (child == 0) _exit(pthread_mutex_lock(&shared->mutex));
  CHECK_EQ(label(name, "child finds it"), child_status(child), ENOTRECOVERABLE);
  CHECK_CALL(label(name, "destroy"), pthread_mutex_destroy(&shared->mutex), 0);
}

static void all(const char* name, int type, int protocol) {
  int result = make_shared(type, protocol);
  REPORT(label(name, "init"), result);
  if (result != 0) return;
  child_ends_with_it(name);
  child_killed_while_we_wait(name);
  parent_and_child_count(name);
  child_gives_it_up(name);
}

int main(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared != MAP_FAILED);
  all("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
  all("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
  all("errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE);
  all("inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
  return done();
}
