// Process-shared condition variables: between processes with a shared mutex, and inside one process
// with an ordinary mutex, which works because only this process uses both.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"

#include <sys/mman.h>

enum { kTurns = 400, kChildren = 3, kThreads = 4, kRounds = 100 };

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  pthread_cond_t came;
  int turn;
  int generation;
  int waiting;
};

static struct Shared* make_shared(int mutex_sharing, int robust) {
  struct Shared* shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared != MAP_FAILED);
  pthread_mutexattr_t mutex_attributes;
  pthread_condattr_t cond_attributes;
  pthread_mutexattr_init(&mutex_attributes);
  pthread_condattr_init(&cond_attributes);
  pthread_mutexattr_setpshared(&mutex_attributes, mutex_sharing);
  pthread_mutexattr_setrobust(&mutex_attributes, robust);
  MUST(pthread_condattr_setpshared(&cond_attributes, PTHREAD_PROCESS_SHARED) == 0);
  MUST(pthread_mutex_init(&shared->mutex, &mutex_attributes) == 0);
  MUST(pthread_cond_init(&shared->cond, &cond_attributes) == 0);
  MUST(pthread_cond_init(&shared->came, &cond_attributes) == 0);
  return shared;
}

static int play_turns(struct Shared* shared, int me) {
  int bad = 0;
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turn % 2 != me) bad += pthread_cond_wait(&shared->cond, &shared->mutex) != 0;
    ++shared->turn;
    pthread_cond_signal(&shared->cond);
    pthread_mutex_unlock(&shared->mutex);
  }
  return bad;
}

static void ping_pong_between_processes(int robust) {
  struct Shared* shared = make_shared(PTHREAD_PROCESS_SHARED, robust);
  pid_t child = fork();
  if (child == 0) _exit(play_turns(shared, 1));
  CHECK_EQ("bad waits in the parent", play_turns(shared, 0), 0);
  CHECK_EQ("bad waits in the child", child_status(child), 0);
  CHECK_EQ("turns", shared->turn, 2 * kTurns);
  CHECK_CALL("destroy the condition variable", pthread_cond_destroy(&shared->cond), 0);
  CHECK_CALL("destroy the mutex", pthread_mutex_destroy(&shared->mutex), 0);
  munmap(shared, sizeof *shared);
}

static int follow_generations(struct Shared* shared, int followers, int rounds) {
  int bad = 0;
  for (int round = 0; round < rounds; ++round) {
    pthread_mutex_lock(&shared->mutex);
    int seen = shared->generation;
    if (++shared->waiting == followers) pthread_cond_signal(&shared->came);
    while (shared->generation == seen) {
      bad += pthread_cond_wait(&shared->cond, &shared->mutex) != 0;
    }
    pthread_mutex_unlock(&shared->mutex);
  }
  return bad;
}

static void lead_generations(struct Shared* shared, int followers, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->waiting < followers) pthread_cond_wait(&shared->came, &shared->mutex);
    shared->waiting = 0;
    ++shared->generation;
    pthread_cond_broadcast(&shared->cond);
    pthread_mutex_unlock(&shared->mutex);
  }
}

static void broadcast_between_processes(void) {
  struct Shared* shared = make_shared(PTHREAD_PROCESS_SHARED, PTHREAD_MUTEX_STALLED);
  pid_t children[kChildren];
  for (int i = 0; i < kChildren; ++i) {
    children[i] = fork();
    if (children[i] == 0) _exit(follow_generations(shared, kChildren, kRounds));
  }
  lead_generations(shared, kChildren, kRounds);
  int bad = 0;
  for (int i = 0; i < kChildren; ++i) bad += child_status(children[i]);
  CHECK_EQ("broadcast to processes: bad waits", bad, 0);
  CHECK_EQ("broadcast to processes: generations", shared->generation, kRounds);
  munmap(shared, sizeof *shared);
}

static void* follow_thread(void* shared) {
  return (void*)(long)follow_generations(shared, kThreads, kRounds);
}

static void* wait_to_be_cancelled(void* argument) {
  struct Shared* shared = argument;
  pthread_mutex_lock(&shared->mutex);
  shared->waiting = 1;
  pthread_cleanup_push(unlock_at_cleanup, &shared->mutex);
  while (shared->waiting) pthread_cond_wait(&shared->cond, &shared->mutex);
  pthread_cleanup_pop(1);
  return NULL;
}

// A process-shared condition variable with a mutex of either sharing, used by threads.
static void threads_of_one_process(int mutex_sharing) {
  struct Shared* shared = make_shared(mutex_sharing, PTHREAD_MUTEX_STALLED);
  pthread_t threads[kThreads];
  long bad = 0;
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, follow_thread, shared);
  lead_generations(shared, kThreads, kRounds);
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    bad += (long)result;
  }
  CHECK_EQ("threads: bad waits", bad, 0);
  CHECK_EQ("threads: generations", shared->generation, kRounds);

  pthread_mutex_lock(&shared->mutex);
  long long start = now_ms();
  struct timespec at = deadline_ms(CLOCK_REALTIME, 15);
  int result = 0;  // a spurious return is allowed, an early ETIMEDOUT is not
  while (result == 0) result = pthread_cond_timedwait(&shared->cond, &shared->mutex, &at);
  CHECK_EQ("threads: timedwait", result, ETIMEDOUT);
  CHECK_TRUE("threads: not early", now_ms() - start >= 13);
  at = deadline_ms(CLOCK_MONOTONIC, -1);
  CHECK_CALL("threads: past",
             pthread_cond_clockwait(&shared->cond, &shared->mutex, CLOCK_MONOTONIC, &at),
             ETIMEDOUT);
  at.tv_nsec = -1;
  CHECK_CALL("threads: invalid", pthread_cond_timedwait(&shared->cond, &shared->mutex, &at),
             EINVAL);
  pthread_mutex_unlock(&shared->mutex);

  pthread_t thread;
  void* ended = NULL;
  shared->waiting = 0;
  pthread_create(&thread, NULL, wait_to_be_cancelled, shared);
  MUST(await_count(&shared->mutex, &shared->waiting, 1));
  pthread_cancel(thread);
  pthread_join(thread, &ended);
  CHECK_TRUE("threads: cancelled", ended == PTHREAD_CANCELED);
  CHECK_CALL("threads: mutex free after it", pthread_mutex_trylock(&shared->mutex), 0);
  pthread_mutex_unlock(&shared->mutex);
  CHECK_CALL("threads: destroy", pthread_cond_destroy(&shared->cond), 0);
  CHECK_CALL("threads: destroy the mutex", pthread_mutex_destroy(&shared->mutex), 0);
  munmap(shared, sizeof *shared);
}

int main(void) {
  ping_pong_between_processes(PTHREAD_MUTEX_STALLED);
  ping_pong_between_processes(PTHREAD_MUTEX_ROBUST);
  broadcast_between_processes();
  threads_of_one_process(PTHREAD_PROCESS_SHARED);
  threads_of_one_process(PTHREAD_PROCESS_PRIVATE);
  return done();
}
