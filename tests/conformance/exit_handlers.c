// Locks, condition variables and threads used by atexit handlers and by the destructor functions of
// the program, some while other threads queue for the same mutexes.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static struct Hammer hammer;
static int ready;  // under the mutex

static void* make_ready(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void wait_for_thread(void) {
  pthread_t thread;
  ready = 0;
  MUST(pthread_create(&thread, NULL, make_ready, NULL) == 0);
  pthread_mutex_lock(&mutex);
  while (!ready) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

static void use_everything(const char* name) {
  int good = 1;
  for (int i = 0; i < 200; ++i) {
    good &= pthread_mutex_lock(&mutex) == 0;
    good &= pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&recursive) == 0;
    good &= pthread_spin_lock(&spin) == 0 && pthread_spin_unlock(&spin) == 0;
    good &= pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0;
    good &= pthread_mutex_unlock(&mutex) == 0;
  }
  wait_for_thread();
  good &= tally(&recursive, 3, 200);
  CHECK_TRUE(name, good);
}

static void first_handler(void) { use_everything("the handler registered first runs last"); }

static void second_handler(void) { use_everything("the handler registered last runs first"); }

static void on_exit_handler(int status, void* argument) {
  (void)argument;
  CHECK_EQ("on_exit sees the status", status, 0);
  use_everything("on_exit handler");
}

__attribute__((constructor)) static void construct(void) {
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  use_everything("constructor");
}

__attribute__((destructor)) static void destruct(void) {
  use_everything("destructor");
  CHECK_TRUE("hammering threads lost nothing", hammer_stop(&hammer));
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
  if (done() != 0) _exit(1);
}

int main(void) {
  atexit(first_handler);
  on_exit(on_exit_handler, NULL);
  atexit(second_handler);
  hammer_start(&hammer, &mutex, 4);
  return done();
}
