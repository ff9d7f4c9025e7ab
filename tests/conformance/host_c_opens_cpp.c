// A C program, without a C++ library of its own, that later opens a C++ library which throws and
// catches. Threads are cancelled before and after that, in C and in C++ frames.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;  // under the mutex, like unwound
static int unwound;
static int (*lib_throw_catch)(int);
static int (*lib_throw_in_threads)(int, int);
static void (*lib_throw_wait)(pthread_mutex_t*, pthread_cond_t*, int*, int*);

static void count_and_unlock(void* unused) {
  (void)unused;
  ++unwound;
  pthread_mutex_unlock(&mutex);
}

static void* wait_in_c(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(count_and_unlock, NULL);
  waiting = 1;
  for (;;) pthread_cond_wait(&cond, &mutex);
  pthread_cleanup_pop(0);
  return NULL;
}

static void* wait_in_cpp(void* unused) {
  lib_throw_wait(&mutex, &cond, &waiting, &unwound);
  return unused;
}

static void* leave_early(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(count_and_unlock, NULL);
  pthread_exit(&mutex);
  pthread_cleanup_pop(0);
  return unused;
}

static void cancel(const char* name, void* (*work)(void*)) {
  pthread_t thread;
  void* result = NULL;
  waiting = unwound = 0;
  MUST(pthread_create(&thread, NULL, work, NULL) == 0);
  for (int there = 0; !there; sched_yield()) {
    pthread_mutex_lock(&mutex);
    there = waiting;
    pthread_mutex_unlock(&mutex);
  }
  pthread_cancel(thread);
  pthread_join(thread, &result);
  CHECK_TRUE(name, result == PTHREAD_CANCELED);
  CHECK_EQ("handler ran", unwound, 1);
  CHECK_TRUE("pthread_exit", on_other_thread(leave_early, NULL) == &mutex);
  CHECK_EQ("its handler ran", unwound, 2);
}

int main(void) {
  struct Hammer hammer;
  CHECK_TRUE("contended before", tally(&mutex, 4, 2000));
  cancel("cancelled before", wait_in_c);
  void* library = dlopen("lib_throw.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  MUST(library != NULL);
  *(void**)&lib_throw_catch = dlsym(library, "lib_throw_catch");
  *(void**)&lib_throw_in_threads = dlsym(library, "lib_throw_in_threads");
  *(void**)&lib_throw_wait = dlsym(library, "lib_throw_wait");
  CHECK_EQ("thrown and caught", lib_throw_catch(30), 1);
  hammer_start(&hammer, &mutex, 3);
  CHECK_EQ("in threads", lib_throw_in_threads(4, 300), 1200);
  CHECK_TRUE("hammering threads lost nothing", hammer_stop(&hammer));
  cancel("cancelled after, in C", wait_in_c);
  cancel("cancelled after, in C++", wait_in_cpp);
  CHECK_EQ("thrown and caught again", lib_throw_catch(3), 1);
  CHECK_EQ("close", dlclose(library), 0);
  cancel("cancelled at last", wait_in_c);
  return done();
}
