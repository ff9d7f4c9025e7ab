// Threads that wait for a lock with little room left on their stacks: of the smallest size, most of
// it used, and on a small signal stack.
// conformance: any-lock
#include <alloca.h>
#include <limits.h>
#include <signal.h>

#include "check.h"
#include "cond_support.h"

enum { kThreads = 4, kRounds = 100, kUsedBytes = 7000, kSignalStack = 8192 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void __attribute__((noinline)) count_slowly(void) {
  pthread_mutex_lock(&mutex);
  ++counter;
  for (int i = 0; i < 20000; ++i) __asm__ volatile("" : : : "memory");
  pthread_mutex_unlock(&mutex);
}

static void* count_deep_down(void* unused) {
  char* used = (char*)alloca(kUsedBytes);
  memset(used, 1, kUsedBytes);
  __asm__ volatile("" : : "r"(used) : "memory");
  for (int i = 0; i < kRounds; ++i) count_slowly();
  return unused;
}

static void count_in_handler(int number) {
  (void)number;
  count_slowly();
}

static void* count_on_signal_stack(void* unused) {
  static char stacks[kThreads][kSignalStack] __attribute__((aligned(16)));
  static int next;
  stack_t mine = {.ss_sp = stacks[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)],
                  .ss_size = kSignalStack};
  sigaltstack(&mine, NULL);
  for (int i = 0; i < kRounds; ++i) raise(SIGUSR1);
  return unused;
}

static void on_threads(const char* name, void* (*work)(void*), size_t stack_size) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack_size != 0) pthread_attr_setstacksize(&attributes, stack_size);
  pthread_t threads[kThreads];
  counter = 0;
  for (int i = 0; i < kThreads; ++i) {
    MUST(pthread_create(&threads[i], &attributes, work, NULL) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK_EQ(name, counter, (long)kThreads * kRounds);
}

int main(void) {
  struct sigaction action = {.sa_handler = count_in_handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  on_threads("on the smallest stacks", count_deep_down, PTHREAD_STACK_MIN);
  on_threads("on small signal stacks", count_on_signal_stack, 0);
  return done();
}
