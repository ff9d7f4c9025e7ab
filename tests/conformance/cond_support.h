// Helpers for programs that must know where their other threads stand. Include it after check.h.
#ifndef RELOCK_TESTS_CONFORMANCE_COND_SUPPORT_H
#define RELOCK_TESTS_CONFORMANCE_COND_SUPPORT_H

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

// How long a program looks for something that must happen before it calls it lost. Long, because
// a loaded machine must never turn a slow run into a failed one.
enum { kPatienceMs = 20000 };

static CHECK_UNUSED pid_t thread_id(void) { return (pid_t)syscall(SYS_gettid); }

// The kernel's letter for a thread of this process ('S' sleeps), or 0.
static CHECK_UNUSED char thread_state(pid_t tid) {
  char path[64];
  char text[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* name_end = strrchr(text, ')');
  return name_end != NULL && name_end[1] == ' ' ? name_end[2] : 0;
}

// Waits until the thread sleeps in the kernel. The caller knows that it can sleep in one place
// only.
static CHECK_UNUSED void await_sleep(pid_t tid) {
  for (int i = 0; i < kPatienceMs * 10 && thread_state(tid) != 'S'; ++i) {
    struct timespec pause_time = {0, 100000};
    nanosleep(&pause_time, NULL);
  }
}

// Looks at a counter that is guarded by the mutex until it has reached the value; 0 when it never
// does.
static CHECK_UNUSED int await_count(pthread_mutex_t* mutex, const int* count, int value) {
  for (long long until = now_ms() + kPatienceMs;;) {
    pthread_mutex_lock(mutex);
    int reached = *count >= value;
    pthread_mutex_unlock(mutex);
    if (reached || now_ms() > until) return reached;
    struct timespec pause_time = {0, 50000};
    nanosleep(&pause_time, NULL);
  }
}

// For pthread_cleanup_push.
static CHECK_UNUSED void unlock_at_cleanup(void* mutex) {
  pthread_mutex_unlock((pthread_mutex_t*)mutex);
}

// A small generator, so that every thread has its own sequence without shared state.
static CHECK_UNUSED uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8;
}

#endif
