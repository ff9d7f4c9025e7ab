// Children that no fork handler has seen: _Fork, and a bare clone system call. The forking thread
// holds a mutex for which others queue; the child releases it and uses it.
#include "check.h"
#include "hammer.h"

#include <signal.h>
#include <sys/syscall.h>

enum { kThreads = 4, kRounds = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static struct Hammer hammer;

static pid_t child_by_fork(void) { return _Fork(); }

static pid_t child_by_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static void prepare(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&recursive);
  pthread_mutex_lock(&checking);
  struct timespec pause_time = {0, 30000};
  nanosleep(&pause_time, NULL);
}

static void release(void) {
  pthread_mutex_unlock(&checking);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&mutex);
}

static int child_work(int owner_error) {
  if (pthread_mutex_unlock(&checking) != owner_error) return 1;
  if (pthread_mutex_unlock(&recursive) != owner_error) return 2;
  if (pthread_mutex_trylock(&mutex) != EBUSY) return 3;
  if (pthread_mutex_unlock(&mutex) != 0) return 4;
  for (int i = 0; i < 100; ++i) {
    if (pthread_mutex_lock(&mutex) != 0) return 5;
    if (pthread_mutex_unlock(&mutex) != 0) return 6;
  }
  if (pthread_mutex_trylock(&mutex) != 0) return 7;
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 1);
  if (pthread_mutex_timedlock(&mutex, &soon) != ETIMEDOUT) return 8;
  if (pthread_mutex_unlock(&mutex) != 0) return 9;
  return tally(&mutex, 2, 100) ? 0 : 10;
}

static void rounds_with(const char* name, pid_t (*make_child)(void), int owner_error) {
  hammer_start(&hammer, &mutex, kThreads);
  int failed = 0;
  for (int i = 0; i < kRounds; ++i) {
    prepare();
    pid_t child = make_child();
    if (child == 0) _exit(child_work(owner_error));
    release();
    int status = child_status(child);
    if (status != 0) fprintf(stderr, "%s: status %d\n", name, status);
    failed += status != 0;
  }
  CHECK_EQ(name, failed, 0);
  CHECK_TRUE("the parent's threads went on", hammer_stop(&hammer));
}

int main(void) {
  // _Fork tells the child's thread its new id, so it is no longer the owner. The bare system call
  // does not, so it still is.
  rounds_with("_Fork: children that failed", child_by_fork, EPERM);
  rounds_with("clone: children that failed", child_by_clone, 0);
  return done();
}
