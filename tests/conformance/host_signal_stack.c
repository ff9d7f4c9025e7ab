// Handlers on one signal stack that come in the middle of each other: the first waits for a lock
// there, the second comes meanwhile. What the first has on its stack stays as it was.
// conformance: any-lock
#include <signal.h>

#include "check.h"
#include "cond_support.h"

enum { kRounds = 400, kBytes = 64 * 1024, kPattern = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static int damaged;
static int handled;

static void* hold_now_and_then(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 20000; ++i) __asm__ volatile("" : : : "memory");
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

static void lock_in_handler(int number) {
  (void)number;
  volatile unsigned char pattern[kPattern];
  for (int i = 0; i < kPattern; ++i) pattern[i] = (unsigned char)(i * 7);
  pthread_mutex_lock(&mutex);
  ++handled;
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < kPattern; ++i) damaged += pattern[i] != (unsigned char)(i * 7);
}

static void fill_in_handler(int number) {
  (void)number;
  volatile unsigned char used[4 * kPattern];
  for (int i = 0; i < 4 * kPattern; ++i) used[i] = 0xee;
  damaged += used[0] != 0xee;
}

struct Target {
  pthread_t thread;
  uint32_t random;
};

static void* send_signals(void* argument) {
  struct Target* target = (struct Target*)argument;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_kill(target->thread, SIGUSR2);
    for (uint32_t k = next_random(&target->random) % 20000; k > 0; --k) {
      __asm__ volatile("" : : : "memory");
    }
  }
  return NULL;
}

int main(void) {
  static char stack[kBytes] __attribute__((aligned(16)));
  stack_t mine = {.ss_sp = stack, .ss_size = kBytes};
  sigaltstack(&mine, NULL);
  struct sigaction first = {.sa_handler = lock_in_handler, .sa_flags = SA_ONSTACK};
  struct sigaction second = {.sa_handler = fill_in_handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &first, NULL);
  sigaction(SIGUSR2, &second, NULL);
  struct Target target = {pthread_self(), 1};
  pthread_t threads[2];
  MUST(pthread_create(&threads[0], NULL, hold_now_and_then, NULL) == 0);
  MUST(pthread_create(&threads[1], NULL, send_signals, &target) == 0);
  for (int i = 0; i < kRounds; ++i) raise(SIGUSR1);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ("handlers that got the lock", handled, kRounds);
  CHECK_EQ("bytes damaged", damaged, 0);
  return done();
}
