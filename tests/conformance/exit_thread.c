// Locks and condition variables used while a thread ends: in destructors of thread-specific data,
// in the last of their rounds too, and by detached threads whose end nobody sees.
#include "check.h"
#include "cond_support.h"
#include "hammer.h"

#include <limits.h>

enum { kThreads = 8, kBatches = 25, kDetached = 200, kKeys = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_key_t keys[kKeys];
static pthread_key_t stubborn;
static int destroyed;  // under the mutex, like all that follows
static int stubborn_rounds;
static int detached_over;
static long spin_count;  // under the spinlock

static void* lock_elsewhere(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void destroy_value(void* value) {
  pthread_spin_lock(&spin);
  ++spin_count;
  pthread_spin_unlock(&spin);
  pthread_mutex_lock(&mutex);
  ++destroyed;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  if ((intptr_t)value % 64 == 1) on_other_thread(lock_elsewhere, NULL);
}

// Sets its value anew, so that it is called in each of the rounds that the library makes.
static void destroy_stubborn(void* value) {
  intptr_t rounds = (intptr_t)value;
  pthread_mutex_lock(&mutex);
  ++stubborn_rounds;
  pthread_mutex_unlock(&mutex);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, -1);
  pthread_mutex_lock(&mutex);
  pthread_cond_timedwait(&cond, &mutex, &soon);
  pthread_mutex_unlock(&mutex);
  if (rounds < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(stubborn, (void*)(rounds + 1));
}

static void* end_with_values(void* number) {
  for (int i = 0; i < kKeys; ++i) {
    pthread_setspecific(keys[i], (void*)((intptr_t)number * kKeys + i + 1));
  }
  pthread_setspecific(stubborn, (void*)1);
  if ((intptr_t)number % 2 == 0) pthread_exit(NULL);
  return NULL;
}

static void specific_data(void) {
  for (int i = 0; i < kKeys; ++i) pthread_key_create(&keys[i], destroy_value);
  pthread_key_create(&stubborn, destroy_stubborn);
  struct Hammer hammer;
  hammer_start(&hammer, &mutex, 2);
  for (int batch = 0; batch < kBatches; ++batch) {
    pthread_t threads[kThreads];
    for (int i = 0; i < kThreads; ++i) {
      pthread_create(&threads[i], NULL, end_with_values, (void*)(intptr_t)i);
    }
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  }
  CHECK_TRUE("hammering threads lost nothing", hammer_stop(&hammer));
  CHECK_EQ("values destroyed", destroyed, kBatches * kThreads * kKeys);
  CHECK_EQ("under the spinlock too", spin_count, kBatches * kThreads * kKeys);
  CHECK_EQ("rounds of the stubborn value", stubborn_rounds,
           kBatches * kThreads * PTHREAD_DESTRUCTOR_ITERATIONS);
}

static void* run_detached(void* unused) {
  (void)unused;
  pthread_setspecific(keys[0], (void*)2);
  pthread_mutex_lock(&mutex);
  ++detached_over;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void detached_threads(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  destroyed = 0;
  for (int i = 0; i < kDetached; ++i) {
    pthread_t thread;
    MUST(pthread_create(&thread, &attributes, run_detached, NULL) == 0);
  }
  pthread_mutex_lock(&mutex);
  while (detached_over < kDetached || destroyed < kDetached) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  CHECK_EQ("detached threads", detached_over, kDetached);
  CHECK_EQ("and their values", destroyed, kDetached);
}

int main(void) {
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  specific_data();
  detached_threads();
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutex), 0);
  return done();
}
