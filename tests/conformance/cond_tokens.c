// Signals race with timeouts. A waiter that reports ETIMEDOUT does not look whether there is
// something to take, so a signal that it had swallowed would leave a token lying while another
// thread waits for it without a limit.
#include "check.h"
#include "cond_support.h"

enum { kTimed = 3, kPatient = 3, kThreads = kTimed + kPatient, kTokens = 2500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t token_there = PTHREAD_COND_INITIALIZER;
static pthread_cond_t token_gone = PTHREAD_COND_INITIALIZER;
static int tokens;  // under the mutex, like all that follows
static int taken;
static int patient_waiting;
static int stop;
static int bad_results;

static void take_token(void) {
  if (tokens == 0) return;
  ++taken;
  if (--tokens == 0) pthread_cond_signal(&token_gone);
}

static void* wait_with_limit(void* argument) {
  uint32_t random_state = (uint32_t)(intptr_t)argument;
  pthread_mutex_lock(&mutex);
  while (!stop) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += 1000 + next_random(&random_state) % 200000;
    if (deadline.tv_nsec >= 1000000000L) {
      deadline.tv_nsec -= 1000000000L;
      deadline.tv_sec += 1;
    }
    int result = pthread_cond_clockwait(&token_there, &mutex, CLOCK_MONOTONIC, &deadline);
    if (result == 0) take_token();
    if (result != 0 && result != ETIMEDOUT) ++bad_results;
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* wait_patiently(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!stop) {
    ++patient_waiting;
    if (pthread_cond_wait(&token_there, &mutex) != 0) ++bad_results;
    --patient_waiting;
    take_token();
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

// Puts tokens down while at least as many patient threads wait, one signal for each, and gives
// back how many of them nobody came for.
static int offer(int count) {
  pthread_mutex_lock(&mutex);
  while (patient_waiting < count) {
    pthread_mutex_unlock(&mutex);
    sched_yield();
    pthread_mutex_lock(&mutex);
  }
  tokens = count;
  for (int i = 0; i < count; ++i) pthread_cond_signal(&token_there);
  struct timespec limit = deadline_ms(CLOCK_REALTIME, kPatienceMs);
  while (tokens != 0) {
    if (pthread_cond_timedwait(&token_gone, &mutex, &limit) == ETIMEDOUT) break;
  }
  int lost = tokens;
  tokens = 0;
  pthread_mutex_unlock(&mutex);
  return lost;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    void* (*work)(void*) = i < kTimed ? wait_with_limit : wait_patiently;
    MUST(pthread_create(&threads[i], NULL, work, (void*)(intptr_t)(i + 1)) == 0);
  }
  int offered = 0;
  int lost = 0;
  for (int i = 0; offered < kTokens && lost == 0; ++i) {
    int count = 1 + i % kPatient;
    lost += offer(count);
    offered += count;
  }
  pthread_mutex_lock(&mutex);
  stop = 1;
  pthread_cond_broadcast(&token_there);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("signals lost", lost, 0);
  CHECK_TRUE("every token was taken once", taken == offered);
  CHECK_EQ("unexpected results", bad_results, 0);
  return done();
}
