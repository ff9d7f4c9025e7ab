// What lockbench measures: for each kind of object an acquire(), a section and a release().
#pragma once

#include <pthread.h>
#include <threads.h>

#include "tools/lockbench.h"

namespace lockbench {

constexpr int kMaxThreads = 4096;
constexpr int kQueueCapacity = 16;

// Two threads that take turns.
struct alignas(128) Pair {
  pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
  int turn = 0;
};

// Everything that the threads share; each lock has a cache line to itself, as in a careful program.
struct Shared {
  Settings settings;
  pthread_barrier_t start;
  int arrived = 0;  // threads that are about to wait at the barrier
  alignas(128) int stop = 0;
  alignas(128) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  alignas(128) pthread_spinlock_t spin;
  alignas(128) pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  alignas(128) mtx_t c11_mutex;
  alignas(128) pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
  pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
  int queued = 0;
  alignas(128) pthread_cond_t go = PTHREAD_COND_INITIALIZER;
  pthread_cond_t all_wait = PTHREAD_COND_INITIALIZER;
  int waiting = 0;  // threads that wait for `go`
  std::uint64_t round = 0;
  std::uint64_t broadcast_ns = 0;
  // Deliberately not atomic: two threads in the section at once lose an update.
  alignas(128) volatile std::uint64_t counter = 0;
  Pair pairs[kMaxThreads / 2];
};

extern Shared shared;

inline bool stopped() { return __atomic_load_n(&shared.stop, __ATOMIC_RELAXED) != 0; }

std::uint64_t next_random(Worker* worker);
// The section: reads the counter, works, writes it one higher.
void update_section(Worker* worker);
void read_section(Worker* worker);

// The waiting time of an operation is that of acquire(), which began at `asked`.
struct SimpleObject {
  static std::uint64_t waited_since(std::uint64_t asked) { return asked; }
  static void section(Worker* worker) { update_section(worker); }
};

struct MutexObject : SimpleObject {
  static void acquire(Worker*) { pthread_mutex_lock(&shared.mutex); }
  static void release(Worker*) { pthread_mutex_unlock(&shared.mutex); }
};

struct SpinObject : SimpleObject {
  static void acquire(Worker*) { pthread_spin_lock(&shared.spin); }
  static void release(Worker*) { pthread_spin_unlock(&shared.spin); }
};

struct C11MutexObject : SimpleObject {
  static void acquire(Worker*) { mtx_lock(&shared.c11_mutex); }
  static void release(Worker*) { mtx_unlock(&shared.c11_mutex); }
};

// No lock at all: what an operation costs besides its lock. Several threads lose updates.
struct NoObject : SimpleObject {
  static void acquire(Worker*) {}
  static void release(Worker*) { asm volatile("" ::: "memory"); }
};

struct RwlockObject : SimpleObject {
  static void acquire(Worker* worker) {
    if (!shared.settings.fixed_roles)
      worker->reading = (next_random(worker) >> 16) % 100 < shared.settings.read_percent;
    if (worker->reading) {
      pthread_rwlock_rdlock(&shared.rwlock);
    } else {
      pthread_rwlock_wrlock(&shared.rwlock);
    }
  }
  static void section(Worker* worker) {
    if (worker->reading) {
      read_section(worker);
    } else {
      update_section(worker);
    }
  }
  static void release(Worker*) { pthread_rwlock_unlock(&shared.rwlock); }
};

// A bounded queue: threads with an even number put, the others take; a single one does both in
// turn. acquire() ends when there is room, or something to take, or the time is up.
struct CondQueueObject : SimpleObject {
  static bool puts(const Worker* worker) {
    return (shared.settings.threads > 1 ? worker->index : static_cast<int>(worker->updates)) % 2 ==
           0;
  }
  static void acquire(Worker* worker) {
    pthread_mutex_lock(&shared.mutex);
    while (puts(worker) && shared.queued == kQueueCapacity && !stopped()) {
      pthread_cond_wait(&shared.not_full, &shared.mutex);
    }
    while (!puts(worker) && shared.queued == 0 && !stopped()) {
      pthread_cond_wait(&shared.not_empty, &shared.mutex);
    }
  }
  static void section(Worker* worker) {
    if (puts(worker)) {
      ++shared.queued;
      pthread_cond_signal(&shared.not_empty);
    } else {
      --shared.queued;
      pthread_cond_signal(&shared.not_full);
    }
    update_section(worker);
  }
  static void release(Worker*) { pthread_mutex_unlock(&shared.mutex); }
};

// Threads 2k and 2k+1 take turns, all pairs under one mutex; one without a partner has every turn.
struct CondPingpongObject : SimpleObject {
  static Pair& pair_of(const Worker* worker) { return shared.pairs[worker->index / 2]; }
  static void acquire(Worker* worker) {
    pthread_mutex_lock(&shared.mutex);
    Pair& pair = pair_of(worker);
    while (pair.turn != worker->index % 2 && !stopped()) {
      pthread_cond_wait(&pair.turn_changed, &shared.mutex);
    }
  }
  static void section(Worker* worker) {
    update_section(worker);
    const int partner = worker->index ^ 1;
    if (partner < shared.settings.threads) pair_of(worker).turn = partner % 2;
    pthread_cond_signal(&pair_of(worker).turn_changed);
  }
  static void release(Worker*) { pthread_mutex_unlock(&shared.mutex); }
};

// All threads wait for `go`; one more thread broadcasts as soon as all of them do. An operation is
// one thread's return from its wait, with the mutex held again.
struct CondBroadcastObject : SimpleObject {
  static std::uint64_t waited_since(std::uint64_t) { return shared.broadcast_ns; }
  static void acquire(Worker*) {
    pthread_mutex_lock(&shared.mutex);
    const std::uint64_t round = shared.round;
    if (++shared.waiting == shared.settings.threads) pthread_cond_signal(&shared.all_wait);
    while (shared.round == round && !stopped()) pthread_cond_wait(&shared.go, &shared.mutex);
  }
  static void release(Worker*) { pthread_mutex_unlock(&shared.mutex); }
  static void broadcast_until_stopped() {
    pthread_mutex_lock(&shared.mutex);
    while (!stopped()) {
      if (shared.waiting < shared.settings.threads) {
        pthread_cond_wait(&shared.all_wait, &shared.mutex);
        continue;
      }
      shared.waiting = 0;
      ++shared.round;
      shared.broadcast_ns = now_ns();
      pthread_cond_broadcast(&shared.go);
    }
    pthread_mutex_unlock(&shared.mutex);
  }
};

}  // namespace lockbench
