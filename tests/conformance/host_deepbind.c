// A library opened with RTLD_DEEPBIND looks for symbols in itself and its own dependencies first,
// past everything that was preloaded. It shares locks with the program: both must mean the same by
// them. The library is found through the program's own run path.
//
// A preloaded library may say on stderr what it does about the flag: with the argument `loud` that
// is heard, otherwise not.
// conformance: any-lock
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>

enum { kTimes = 20000, kTurns = 2000, kThreads = 4 };

static pthread_mutex_t mutexes[] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};
static pthread_mutex_t* mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static long count;  // under the mutex, or under the spinlock in its phase
static int turn;    // under the mutex
static void (*lib_add)(pthread_mutex_t*, long*, int);
static void (*lib_spin)(pthread_spinlock_t*, long*, int);
static void (*lib_play)(pthread_mutex_t*, pthread_cond_t*, int*, int, int);

static void* add_in_library(void* unused) {
  lib_add(mutex, &count, kTimes);
  return unused;
}

static void* add_in_program(void* unused) {
  for (int i = 0; i < kTimes; ++i) {
    pthread_mutex_lock(mutex);
    ++count;
    pthread_mutex_unlock(mutex);
  }
  return unused;
}

static void* spin_in_library(void* unused) {
  lib_spin(&spin, &count, kTimes);
  return unused;
}

static void* spin_in_program(void* unused) {
  for (int i = 0; i < kTimes; ++i) {
    pthread_spin_lock(&spin);
    ++count;
    pthread_spin_unlock(&spin);
  }
  return unused;
}

static void* play_in_library(void* unused) {
  lib_play(mutex, &cond, &turn, 1, kTurns);
  return unused;
}

static void play_in_program(void) {
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(mutex);
    while (turn % 2 != 0) pthread_cond_wait(&cond, mutex);
    ++turn;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(mutex);
  }
}

static long together(void* (*in_library)(void*), void* (*in_program)(void*)) {
  pthread_t threads[kThreads];
  count = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, i % 2 ? in_library : in_program, NULL);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return count;
}

static void* open_deepbind(const char* name, int loud) {
  int kept = dup(2);
  int nowhere = open("/dev/null", O_WRONLY);
  MUST(kept >= 0 && nowhere >= 0);
  if (!loud) dup2(nowhere, 2);
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  dup2(kept, 2);
  close(kept);
  close(nowhere);
  return library;
}

int main(int arguments, char** argument) {
  int loud = arguments > 1 && strcmp(argument[1], "loud") == 0;
  static const char* const kNames[] = {"normal", "recursive", "error-checking", "adaptive"};
  void* library = open_deepbind("lib_deepbind.so", loud);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  MUST(library != NULL);
  *(void**)&lib_add = dlsym(library, "lib_deepbind_add");
  *(void**)&lib_spin = dlsym(library, "lib_deepbind_spin");
  *(void**)&lib_play = dlsym(library, "lib_deepbind_play");
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < 4; ++i) {
    mutex = &mutexes[i];
    CHECK_EQ(kNames[i], together(add_in_library, add_in_program), kThreads * kTimes);
  }
  CHECK_EQ("spin", together(spin_in_library, spin_in_program), kThreads * kTimes);
  mutex = &mutexes[0];
  pthread_t thread;
  pthread_create(&thread, NULL, play_in_library, NULL);
  play_in_program();
  pthread_join(thread, NULL);
  CHECK_EQ("turns", turn, 2 * kTurns);
  CHECK_EQ("close", dlclose(library), 0);
  CHECK_TRUE("a library that is not there", open_deepbind("lib_not_there.so", loud) == NULL);
  CHECK_TRUE("and says so", dlerror() != NULL);
  return done();
}
