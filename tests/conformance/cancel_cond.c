// Cancelling a thread that waits on a condition variable. It holds the mutex again when its cleanup
// handlers run, so a handler may unlock it; every form of waiting is a cancellation point.
#include "check.h"
#include "cond_support.h"

enum Form { kWait, kTimedwait, kClockMonotonic, kClockRealtime, kForms };
enum { kMany = 8 };

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int tid;           // of the waiter, under the mutex
static int handler_runs;  // written by handlers under the mutex, read after joining
static int handler_unlock;
static int handler_tried;
static int handler_saw;
static int flag;

static void init_mutex(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  MUST(pthread_mutex_init(&mutex, &attributes) == 0);
  tid = handler_runs = handler_saw = flag = 0;
  handler_unlock = handler_tried = -1;
}

static void* try_mutex(void* unused) {
  (void)unused;
  int result = pthread_mutex_trylock(&mutex);
  if (result == 0) pthread_mutex_unlock(&mutex);
  return (void*)(long)result;
}

static void unlock_in_handler(void* unused) {
  (void)unused;
  ++handler_runs;
  handler_saw = flag;
  handler_tried = (int)(long)on_other_thread(try_mutex, NULL);
  handler_unlock = pthread_mutex_unlock(&mutex);
}

static int wait_in_form(enum Form form) {
  struct timespec monotonic = deadline_ms(CLOCK_MONOTONIC, 600000);
  struct timespec realtime = deadline_ms(CLOCK_REALTIME, 600000);
  switch (form) {
    case kWait:
      return pthread_cond_wait(&cond, &mutex);
    case kTimedwait:
      return pthread_cond_timedwait(&cond, &mutex, &realtime);
    case kClockMonotonic:
      return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &monotonic);
    default:
      return pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &realtime);
  }
}

static void* wait_for_ever(void* form) {
  pthread_mutex_lock(&mutex);
  tid = thread_id();
  pthread_cleanup_push(unlock_in_handler, NULL);
  for (;;) wait_in_form((enum Form)(intptr_t)form);
  pthread_cleanup_pop(0);
  return NULL;
}

static void while_waiting(const char* title, int type, enum Form form) {
  printf("%s\n", title);
  init_mutex(type);
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, wait_for_ever, (void*)(intptr_t)form);
  MUST(await_count(&mutex, &tid, 1));
  await_sleep(tid);
  CHECK_CALL("cancel", pthread_cancel(thread), 0);
  CHECK_CALL("join", pthread_join(thread, &result), 0);
  CHECK_TRUE("was cancelled", result == PTHREAD_CANCELED);
  CHECK_EQ("handler ran", handler_runs, 1);
  CHECK_EQ("handler: mutex is held", handler_tried, EBUSY);
  CHECK_EQ("handler: unlock", handler_unlock, 0);
  CHECK_CALL("free afterwards", pthread_mutex_trylock(&mutex), 0);
  CHECK_CALL("unlock", pthread_mutex_unlock(&mutex), 0);
  CHECK_CALL("destroy the mutex", pthread_mutex_destroy(&mutex), 0);
}

// The canceller holds the mutex; the handler may run only after it let go.
static void waits_for_the_mutex(void) {
  init_mutex(PTHREAD_MUTEX_ERRORCHECK);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_ever, (void*)kWait);
  MUST(await_count(&mutex, &tid, 1));
  pthread_mutex_lock(&mutex);
  pthread_cancel(thread);
  sleep_ms(3);
  flag = 1;
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  CHECK_EQ("the handler runs after the holder's unlock", handler_saw, 1);
  CHECK_EQ("and may unlock", handler_unlock, 0);
}

static int go;

static void* wait_with_pending(void* form) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  await_flag(&go);
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock_in_handler, NULL);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  struct timespec invalid = {0, -1};
  // These two return before they would wait, so they are no cancellation points.
  int first = pthread_cond_timedwait(&cond, &mutex, &invalid);
  int second = pthread_cond_clockwait(&cond, &mutex, 9999, &invalid);
  flag = first == EINVAL && second == EINVAL;
  wait_in_form((enum Form)(intptr_t)form);
  flag = 0;
  pthread_cleanup_pop(1);
  return NULL;
}

static void pending_on_entry(enum Form form) {
  init_mutex(PTHREAD_MUTEX_ERRORCHECK);
  go = 0;
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, wait_with_pending, (void*)(intptr_t)form);
  pthread_cancel(thread);
  set_flag(&go);
  pthread_join(thread, &result);
  CHECK_TRUE("pending on entry: cancelled", result == PTHREAD_CANCELED);
  CHECK_EQ("pending on entry: but not in a refused call", flag, 1);
  CHECK_EQ("pending on entry: mutex is held", handler_tried, EBUSY);
  CHECK_EQ("pending on entry: unlock", handler_unlock, 0);
}

static int woken;  // under the mutex
static int disabled_result;

static void* wait_disabled(void* form) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  pthread_mutex_lock(&mutex);
  tid = thread_id();
  while (!flag) disabled_result = wait_in_form((enum Form)(intptr_t)form);
  woken = 1;
  pthread_mutex_unlock(&mutex);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_testcancel();
  return NULL;
}

static void disabled(enum Form form) {
  init_mutex(PTHREAD_MUTEX_NORMAL);
  woken = 0;
  disabled_result = -1;
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, wait_disabled, (void*)(intptr_t)form);
  MUST(await_count(&mutex, &tid, 1));
  await_sleep(tid);
  pthread_cancel(thread);
  sleep_ms(3);
  pthread_mutex_lock(&mutex);
  CHECK_EQ("disabled: waits on", woken, 0);
  flag = 1;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, &result);
  CHECK_EQ("disabled: woken by the signal", woken, 1);
  CHECK_EQ("disabled: result", disabled_result, 0);
  CHECK_TRUE("disabled: cancelled later", result == PTHREAD_CANCELED);
}

static void* wait_asynchronous(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock_in_handler, NULL);
  tid = thread_id();
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (;;) pthread_cond_wait(&cond, &mutex);
  pthread_cleanup_pop(0);
  return NULL;
}

static void asynchronous(void) {
  init_mutex(PTHREAD_MUTEX_ERRORCHECK);
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, wait_asynchronous, NULL);
  MUST(await_count(&mutex, &tid, 1));
  await_sleep(tid);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  CHECK_TRUE("asynchronous: cancelled", result == PTHREAD_CANCELED);
  CHECK_EQ("asynchronous: unlock", handler_unlock, 0);
}

static void count_and_unlock(void* unused) {
  (void)unused;
  ++handler_runs;
  pthread_mutex_unlock(&mutex);
}

static void* wait_as_one_of_many(void* form) {
  pthread_mutex_lock(&mutex);
  ++tid;
  pthread_cleanup_push(count_and_unlock, NULL);
  for (;;) wait_in_form((enum Form)(intptr_t)form);
  pthread_cleanup_pop(0);
  return NULL;
}

static void many_at_once(void) {
  init_mutex(PTHREAD_MUTEX_NORMAL);
  pthread_t threads[kMany];
  for (int i = 0; i < kMany; ++i) {
    pthread_create(&threads[i], NULL, wait_as_one_of_many, (void*)(intptr_t)(i % kForms));
  }
  MUST(await_count(&mutex, &tid, kMany));
  for (int i = 0; i < kMany; ++i) pthread_cancel(threads[i]);
  for (int i = 0; i < kMany; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("many: handlers", handler_runs, kMany);
  CHECK_CALL("many: mutex is free", pthread_mutex_destroy(&mutex), 0);
}

int main(void) {
  while_waiting("wait, error-checking", PTHREAD_MUTEX_ERRORCHECK, kWait);
  while_waiting("wait, normal", PTHREAD_MUTEX_NORMAL, kWait);
  while_waiting("wait, recursive", PTHREAD_MUTEX_RECURSIVE, kWait);
  while_waiting("timedwait, error-checking", PTHREAD_MUTEX_ERRORCHECK, kTimedwait);
  while_waiting("clockwait monotonic", PTHREAD_MUTEX_ERRORCHECK, kClockMonotonic);
  while_waiting("clockwait realtime", PTHREAD_MUTEX_ERRORCHECK, kClockRealtime);
  waits_for_the_mutex();
  for (int form = 0; form < kForms; ++form) {
    pending_on_entry((enum Form)form);
    disabled((enum Form)form);
  }
  asynchronous();
  many_at_once();
  CHECK_CALL("destroy the condition variable", pthread_cond_destroy(&cond), 0);
  return done();
}
