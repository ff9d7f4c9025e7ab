// Starting other programs while threads contend: vfork and exec, posix_spawn, system, popen, and
// two threads that fork at the same time.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

#include <spawn.h>

enum { kThreads = 4, kRounds = 2 };

extern char** environ;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char* const kExit3[] = {(char*)"sh", (char*)"-c", (char*)"exit 3", NULL};

static int by_vfork(void) {
  pid_t child = vfork();
  if (child == 0) {
    execve("/bin/sh", kExit3, environ);
    _exit(127);
  }
  return child_status(child);
}

static int by_spawn(void) {
  pid_t child = 0;
  if (posix_spawn(&child, "/bin/sh", NULL, NULL, kExit3, environ) != 0) return -1;
  return child_status(child);
}

static int by_fork(void) {
  pid_t child = fork();
  if (child == 0) {
    execve("/bin/sh", kExit3, environ);
    _exit(127);
  }
  return child_status(child);
}

static int by_system(void) {
  int status = system("exit 3");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int by_popen(void) {
  char text[32] = "";
  FILE* pipe = popen("echo relayed; exit 3", "r");
  if (pipe == NULL || fgets(text, sizeof text, pipe) == NULL) return -1;
  int status = pclose(pipe);
  return strcmp(text, "relayed\n") == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void repeat(const char* name, int (*start)(void)) {
  int good = 0;
  for (int i = 0; i < kRounds; ++i) good += start() == 3;
  CHECK_EQ(name, good, kRounds);
}

static void* fork_often(void* unused) {
  (void)unused;
  long good = 0;
  for (int i = 0; i < kRounds * 4; ++i) {
    pid_t child = fork();
    if (child == 0) {
      // The hammering threads may have held the mutex at that moment; a new one is free.
      pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
      _exit(tally(&own, 2, 50) ? 3 : 1);
    }
    good += child_status(child) == 3;
  }
  return (void*)good;
}

static void two_at_once(void) {
  pthread_t thread;
  void* good = NULL;
  pthread_create(&thread, NULL, fork_often, NULL);
  long mine = (long)fork_often(NULL);
  pthread_join(thread, &good);
  CHECK_EQ("two threads that fork", mine + (long)good, 2 * kRounds * 4);
}

int main(void) {
  struct Hammer hammer;
  hammer_start(&hammer, &mutex, kThreads);
  repeat("vfork and exec", by_vfork);
  repeat("posix_spawn", by_spawn);
  repeat("fork and exec", by_fork);
  repeat("system", by_system);
  repeat("popen", by_popen);
  two_at_once();
  CHECK_TRUE("no update was lost", hammer_stop(&hammer));
  return done();
}
