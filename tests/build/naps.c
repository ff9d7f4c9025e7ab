// A thread waits a fifth of a second for a spinlock. Prints how often it slept meanwhile, and how
// many milliseconds of CPU time it took.
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static pthread_spinlock_t lock;

static void* wait_for_it(void* unused) {
  pthread_spin_lock(&lock);
  pthread_spin_unlock(&lock);
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  struct timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  printf("%ld %ld\n", usage.ru_nvcsw, cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000);
  return unused;
}

int main(void) {
  pthread_t waiter;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  pthread_spin_lock(&lock);
  pthread_create(&waiter, NULL, wait_for_it, NULL);
  usleep(200000);
  pthread_spin_unlock(&lock);
  pthread_join(waiter, NULL);
  return 0;
}
