// The measuring loops of lockbench.

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "tools/lockbench.h"

namespace lockbench {

namespace {

constexpr std::uint64_t kWatchStepNs = 5'000'000;
constexpr std::size_t kStackBytes = std::size_t{256} * 1024;
constexpr int kQueueCapacity = 16;

double turns_per_ns = 1.0;

// Everything that the threads share; each lock has a cache line to itself, as in a careful program.
struct Shared {
  Settings settings;
  pthread_barrier_t start;
  alignas(128) int stop = 0;
  alignas(128) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  alignas(128) pthread_spinlock_t spin;
  alignas(128) pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  alignas(128) pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
  pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
  int queued = 0;
  // Deliberately not atomic: two threads in the section at once lose an update.
  alignas(128) volatile std::uint64_t counter = 0;
};

Shared shared;

bool stopped() { return __atomic_load_n(&shared.stop, __ATOMIC_RELAXED) != 0; }

void work_turns(std::uint64_t turns) {
  std::uint64_t value = turns;
  for (std::uint64_t i = 0; i < turns; ++i) {
    // The chain of dependent steps makes a turn cost the same wherever the loop is inlined.
    value = value * 3 + 1;
    asm volatile("" : "+r"(value));
  }
}

void work_ns(std::uint64_t ns) {
  if (ns != 0) work_turns(static_cast<std::uint64_t>(static_cast<double>(ns) * turns_per_ns));
}

std::uint64_t next_random(Worker* worker) {
  std::uint64_t x = worker->random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return worker->random = x;
}

void think(Worker* worker) {
  const std::uint64_t mean = shared.settings.think_ns;
  if (mean != 0) work_ns(next_random(worker) % (2 * mean + 1));
}

// What an owner does to its own lock's line: waiters that look there as well keep taking it away.
void read_line() {
  const void* const locks[] = {&shared.mutex, const_cast<const int*>(&shared.spin), &shared.mutex,
                               &shared.rwlock};
  const auto* word =
      static_cast<const volatile std::uint32_t*>(locks[static_cast<int>(shared.settings.object)]);
  for (std::uint32_t i = 0; i < shared.settings.line_reads; ++i) (void)*word;
}

// The section: reads the counter, works, writes it one higher.
void update_section(Worker* worker) {
  const std::uint64_t before = shared.counter;
  work_ns(shared.settings.section_ns);
  if (shared.settings.line_reads != 0) read_line();
  shared.counter = before + 1;
  ++worker->updates;
}

void read_section(Worker* worker) {
  const std::uint64_t before = shared.counter;
  work_ns(shared.settings.section_ns);
  if (shared.settings.line_reads != 0) read_line();
  if (shared.counter != before) ++worker->torn_reads;
}

// One kind of object: acquire(), section and release. The waiting time is that of acquire().
struct MutexObject {
  static void acquire(Worker*) { pthread_mutex_lock(&shared.mutex); }
  static void section(Worker* worker) { update_section(worker); }
  static void release(Worker*) { pthread_mutex_unlock(&shared.mutex); }
};

struct SpinObject {
  static void acquire(Worker*) { pthread_spin_lock(&shared.spin); }
  static void section(Worker* worker) { update_section(worker); }
  static void release(Worker*) { pthread_spin_unlock(&shared.spin); }
};

struct RwlockObject {
  static void acquire(Worker* worker) {
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
struct CondObject {
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

template <typename Object>
void run_until_stopped(Worker* worker) {
  const std::uint32_t sample_every = shared.settings.sample_every;
  // Threads sample at different operations, and the first one of each is among them.
  std::uint32_t until_sample = 1;
  std::uint64_t operations = 0;
  while (!stopped()) {
    const bool sampled = --until_sample == 0;
    const std::uint64_t asked = sampled ? now_ns() : 0;
    Object::acquire(worker);
    if (sampled) {
      worker->waits.add(now_ns() - asked);
      until_sample = 1 + static_cast<std::uint32_t>(next_random(worker) % (2 * sample_every - 1));
    }
    Object::section(worker);
    // What was acquired after the end of the measurement is not part of it.
    if (!stopped()) __atomic_store_n(&worker->operations, ++operations, __ATOMIC_RELAXED);
    Object::release(worker);
    think(worker);
  }
}

void run_worker(Worker* worker) {
  switch (shared.settings.object) {
    case ObjectKind::kMutex:
      return run_until_stopped<MutexObject>(worker);
    case ObjectKind::kSpin:
      return run_until_stopped<SpinObject>(worker);
    case ObjectKind::kCond:
      return run_until_stopped<CondObject>(worker);
    case ObjectKind::kRwlock:
      return run_until_stopped<RwlockObject>(worker);
  }
}

void* worker_main(void* argument) {
  pthread_barrier_wait(&shared.start);
  run_worker(static_cast<Worker*>(argument));
  return nullptr;
}

std::uint64_t cpu_time_ns() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto in_ns = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_usec) * 1000;
  };
  return in_ns(usage.ru_utime) + in_ns(usage.ru_stime);
}

// Sampled waits miss most of the rare long ones, so the main thread looks every few milliseconds
// who has not moved since when.
void watch(std::uint64_t begin, Result* result) {
  const int threads = shared.settings.threads;
  const std::uint64_t end = begin + shared.settings.duration_ns;
  auto* seen = static_cast<std::uint64_t*>(calloc(2 * static_cast<std::size_t>(threads), 8));
  std::uint64_t* since = seen + threads;
  for (int i = 0; seen != nullptr && i < threads; ++i) since[i] = begin;
  for (std::uint64_t now = begin; now < end; now = now_ns()) {
    const std::uint64_t step = end - now < kWatchStepNs ? end - now : kWatchStepNs;
    const timespec pause = {static_cast<time_t>(step / 1'000'000'000),
                            static_cast<long>(step % 1'000'000'000)};
    nanosleep(&pause, nullptr);
    const std::uint64_t looked = now_ns();
    for (int i = 0; seen != nullptr && i < threads; ++i) {
      const std::uint64_t count = __atomic_load_n(&result->workers[i].operations, __ATOMIC_RELAXED);
      const std::uint64_t stalled = looked - since[i];
      if (count == seen[i] && stalled > result->longest_stall_ns)
        result->longest_stall_ns = stalled;
      if (count == seen[i]) continue;
      seen[i] = count;
      since[i] = looked;
    }
  }
  free(seen);
}

void stop_all() {
  __atomic_store_n(&shared.stop, 1, __ATOMIC_RELAXED);
  if (shared.settings.object != ObjectKind::kCond) return;
  pthread_mutex_lock(&shared.mutex);
  pthread_cond_broadcast(&shared.not_empty);
  pthread_cond_broadcast(&shared.not_full);
  pthread_mutex_unlock(&shared.mutex);
}

void stop_on_alarm(int) { __atomic_store_n(&shared.stop, 1, __ATOMIC_RELAXED); }

// No second thread exists, so a timer's signal ends the loop.
void measure_alone(Result* result) {
  struct sigaction action = {};
  action.sa_handler = stop_on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  const std::uint64_t microseconds = shared.settings.duration_ns / 1000;
  itimerval timer = {};
  timer.it_value.tv_sec = static_cast<time_t>(microseconds / 1'000'000);
  timer.it_value.tv_usec = static_cast<suseconds_t>(microseconds % 1'000'000);
  const std::uint64_t cpu = cpu_time_ns();
  const std::uint64_t begin = now_ns();
  setitimer(ITIMER_REAL, &timer, nullptr);
  run_worker(&result->workers[0]);
  result->elapsed_ns = now_ns() - begin;
  result->cpu_ns = cpu_time_ns() - cpu;
}

int measure_threads(Result* result) {
  const int threads = shared.settings.threads;
  auto* ids = static_cast<pthread_t*>(calloc(static_cast<std::size_t>(threads), sizeof(pthread_t)));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_barrier_init(&shared.start, nullptr, static_cast<unsigned>(threads) + 1);
  for (int i = 0; i < threads; ++i) {
    // The threads that exist already wait at the barrier for good: the caller ends the process.
    const int error = ids == nullptr
                          ? ENOMEM
                          : pthread_create(&ids[i], &attributes, worker_main, &result->workers[i]);
    if (error != 0) return error;
  }
  pthread_attr_destroy(&attributes);
  const std::uint64_t cpu = cpu_time_ns();
  pthread_barrier_wait(&shared.start);
  const std::uint64_t begin = now_ns();
  watch(begin, result);
  result->elapsed_ns = now_ns() - begin;
  result->cpu_ns = cpu_time_ns() - cpu;
  stop_all();
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], nullptr);
  free(ids);
  return 0;
}

}  // namespace

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void calibrate() {
  constexpr std::uint64_t kTurns = 400'000;
  std::uint64_t least = UINT64_MAX;  // the run that nothing interrupted
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t begin = now_ns();
    work_turns(kTurns);
    const std::uint64_t taken = now_ns() - begin;
    if (taken < least) least = taken;
  }
  turns_per_ns = static_cast<double>(kTurns) / static_cast<double>(least == 0 ? 1 : least);
}

int measure(const Settings& settings, Result* result) {
  shared.settings = settings;
  const std::size_t bytes = static_cast<std::size_t>(settings.threads) * sizeof(Worker);
  result->workers = static_cast<Worker*>(aligned_alloc(alignof(Worker), bytes));
  if (result->workers == nullptr) return ENOMEM;
  for (int i = 0; i < settings.threads; ++i) {
    result->workers[i] = Worker{};
    result->workers[i].index = i;
    result->workers[i].random = 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(i) + 1);
  }
  pthread_spin_init(&shared.spin, PTHREAD_PROCESS_PRIVATE);
  int error = 0;
  if (settings.alone) {
    measure_alone(result);
  } else {
    error = measure_threads(result);
  }
  result->counter = shared.counter;
  return error;
}

}  // namespace lockbench
