// Threads that take and release one mutex without pause until they are told to stop. Include it
// after check.h.
#ifndef RELOCK_TESTS_CONFORMANCE_HAMMER_H
#define RELOCK_TESTS_CONFORMANCE_HAMMER_H

#include <sched.h>

enum { kMaxHammers = 16 };

struct Hammer {
  pthread_mutex_t* mutex;
  int threads;
  int stop;    // set with release, read with acquire
  long first;  // under the mutex; equal to second whenever the mutex is free
  long second;
  pthread_t thread[kMaxHammers];
};

static CHECK_UNUSED void* hammer_work(void* argument) {
  struct Hammer* hammer = (struct Hammer*)argument;
  while (!__atomic_load_n(&hammer->stop, __ATOMIC_ACQUIRE)) {
    pthread_mutex_lock(hammer->mutex);
    ++hammer->first;
    for (int i = 0; i < 20; ++i) __asm__ volatile("" : : : "memory");
    ++hammer->second;
    pthread_mutex_unlock(hammer->mutex);
  }
  return NULL;
}

// Comes back when the threads are at work.
static CHECK_UNUSED void hammer_start(struct Hammer* hammer, pthread_mutex_t* mutex, int threads) {
  memset(hammer, 0, sizeof *hammer);
  hammer->mutex = mutex;
  hammer->threads = threads;
  for (int i = 0; i < threads; ++i) {
    MUST(pthread_create(&hammer->thread[i], NULL, hammer_work, hammer) == 0);
  }
  for (long done_so_far = 0; done_so_far < 100; sched_yield()) {
    pthread_mutex_lock(mutex);
    done_so_far = hammer->first;
    pthread_mutex_unlock(mutex);
  }
}

// Ends the threads; 1 when no update was lost.
static CHECK_UNUSED int hammer_stop(struct Hammer* hammer) {
  __atomic_store_n(&hammer->stop, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < hammer->threads; ++i) pthread_join(hammer->thread[i], NULL);
  return hammer->first == hammer->second;
}

struct Tally {
  pthread_mutex_t* mutex;
  int times;
  long count;  // under the mutex
};

static CHECK_UNUSED void* tally_work(void* argument) {
  struct Tally* tally = (struct Tally*)argument;
  for (int i = 0; i < tally->times; ++i) {
    pthread_mutex_lock(tally->mutex);
    ++tally->count;
    pthread_mutex_unlock(tally->mutex);
  }
  return NULL;
}

// New threads contend for the mutex; 1 when their count comes out right.
static CHECK_UNUSED int tally(pthread_mutex_t* mutex, int threads, int times) {
  struct Tally work = {mutex, times, 0};
  pthread_t thread[kMaxHammers];
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&thread[i], NULL, tally_work, &work) != 0) return 0;
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  return work.count == (long)threads * times;
}

#endif
