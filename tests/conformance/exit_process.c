// A process ends while eight of its threads hammer on mutexes, spinlocks and condition variables.
// Whatever the way it ends, the status is the right one and nothing is said about it.
//
// The program starts itself again for each ending, so that these are real starts and ends.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>

enum { kThreads = 8, kRounds = 2 };

extern char** environ;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static int turn;
static int at_work;  // atomic
static int held_by_nobody_else;

static void* hammer(void* argument) {
  intptr_t me = (intptr_t)argument;
  for (long i = 0;; ++i) {
    if (i == 5) __atomic_fetch_add(&at_work, 1, __ATOMIC_ACQ_REL);
    if (me < 3) {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    } else if (me < 5) {
      struct timespec soon = deadline_ms(CLOCK_REALTIME, 1);
      if (pthread_mutex_timedlock(&recursive, &soon) == 0) pthread_mutex_unlock(&recursive);
    } else if (me < 6) {
      pthread_spin_lock(&spin);
      pthread_spin_unlock(&spin);
    } else {
      struct timespec soon = deadline_ms(CLOCK_REALTIME, 1);
      pthread_mutex_lock(&mutex);
      ++turn;
      pthread_cond_broadcast(&cond);
      pthread_cond_timedwait(&cond, &mutex, &soon);
      pthread_mutex_unlock(&mutex);
    }
  }
  return NULL;
}

static void* exit_from_thread(void* unused) {
  (void)unused;
  exit(16);
}

static void* leave_for_good(void* unused) {
  (void)unused;
  sleep_ms(2);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* hold_for_ever(void* unused) {
  (void)unused;
  pthread_mutex_lock(&recursive);
  set_flag(&held_by_nobody_else);
  for (;;) pause();
  return NULL;
}

static void lock_once(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

// Ends the process in the named way; the status is in kEndings below.
static int end(const char* how) {
  pthread_t thread;
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (strcmp(how, "main leaves") == 0) {
    atexit(lock_once);
    for (int i = 0; i < kThreads; ++i) pthread_create(&thread, NULL, leave_for_good, NULL);
    pthread_exit(NULL);
  }
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < kThreads; ++i) pthread_create(&thread, NULL, hammer, (void*)(intptr_t)i);
  while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE) < kThreads) sleep_ms(1);
  if (strcmp(how, "exit") == 0) exit(11);
  if (strcmp(how, "_exit") == 0) _exit(12);
  if (strcmp(how, "quick_exit") == 0) {
    at_quick_exit(lock_once);
    quick_exit(13);
  }
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "return") == 0) return 14;
  if (strcmp(how, "exit holding") == 0) {
    pthread_create(&thread, NULL, hold_for_ever, NULL);
    await_flag(&held_by_nobody_else);
    pthread_mutex_lock(&mutex);
    exit(15);
  }
  if (strcmp(how, "exit in a thread") == 0) {
    pthread_create(&thread, NULL, exit_from_thread, NULL);
    for (;;) pause();
  }
  if (strcmp(how, "atexit locks") == 0) {
    atexit(lock_once);
    exit(17);
  }
  if (strcmp(how, "killed") == 0) raise(SIGKILL);
  if (strcmp(how, "terminated") == 0) raise(SIGTERM);
  if (strcmp(how, "crashed") == 0) raise(SIGSEGV);
  return 99;
}

static const struct {
  const char* how;
  int status;
} kEndings[] = {{"exit", 11},
                {"_exit", 12},
                {"quick_exit", 13},
                {"return", 14},
                {"exit holding", 15},
                {"exit in a thread", 16},
                {"atexit locks", 17},
                {"main leaves", 0},
                {"abort", 1000 + SIGABRT},
                {"killed", 1000 + SIGKILL},
                {"terminated", 1000 + SIGTERM},
                {"crashed", 1000 + SIGSEGV}};

// Starts the program for one ending. Gives back its status; adds to *said what it wrote.
static int run_ending(const char* how, long* said) {
  int ends[2];
  MUST(pipe2(ends, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  char* const arguments[] = {(char*)"exit_process", (char*)how, NULL};
  pid_t child = 0;
  MUST(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char text[512];
  for (ssize_t size; (size = read(ends[0], text, sizeof text)) > 0; *said += size) {
    fprintf(stderr, "%s: said: %.*s\n", how, (int)size, text);
  }
  close(ends[0]);
  return child_status(child);
}

int main(int count, char** arguments) {
  if (count > 1) return end(arguments[1]);
  long said = 0;
  for (size_t i = 0; i < sizeof kEndings / sizeof kEndings[0]; ++i) {
    int right = 0;
    for (int round = 0; round < kRounds; ++round) {
      right += run_ending(kEndings[i].how, &said) == kEndings[i].status;
    }
    CHECK_EQ(kEndings[i].how, right, kRounds);
  }
  CHECK_EQ("bytes written at the end", said, 0);
  return done();
}
