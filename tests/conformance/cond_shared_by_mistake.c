// A private condition variable in memory that a parent and its child share. POSIX leaves it open,
// but waiters and signallers that are both in the child get along, whatever the parent calls.
#include <sys/mman.h>

#include "check.h"
#include "cond_support.h"

enum { kWaiters = 3 };

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  int waiting;
  int signalled;
};

static struct Shared* shared;

static void* wait_for_signal(void* unused) {
  pthread_mutex_lock(&shared->mutex);
  ++shared->waiting;
  while (!shared->signalled) pthread_cond_wait(&shared->cond, &shared->mutex);
  pthread_mutex_unlock(&shared->mutex);
  return unused;
}

static int child(int from_parent) {
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i)
    MUST(pthread_create(&threads[i], NULL, wait_for_signal, NULL) == 0);
  char byte;
  MUST(read(from_parent, &byte, 1) == 1);  // the parent has signalled
  pthread_mutex_lock(&shared->mutex);
  shared->signalled = 1;
  pthread_cond_broadcast(&shared->cond);
  pthread_mutex_unlock(&shared->mutex);
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  return 7;
}

int main(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared != MAP_FAILED);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &attributes);
  pthread_cond_init(&shared->cond, NULL);
  int pipe_ends[2];
  MUST(pipe(pipe_ends) == 0);
  pid_t pid = fork();
  MUST(pid >= 0);
  if (pid == 0) _exit(child(pipe_ends[0]));
  MUST(await_count(&shared->mutex, &shared->waiting, kWaiters));
  CHECK_CALL("signal in the parent", pthread_cond_signal(&shared->cond), 0);
  MUST(write(pipe_ends[1], "x", 1) == 1);
  CHECK_EQ("the child's waiters all came back", child_status(pid), 7);
  return done();
}
