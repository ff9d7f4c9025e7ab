// The measuring loops of lockbench.

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "tools/lockbench_objects.h"

namespace lockbench {

Shared shared;

namespace {

constexpr std::uint64_t kWatchStepNs = 5'000'000;
constexpr std::size_t kStackBytes = std::size_t{256} * 1024;

double turns_per_ns = 1.0;

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

void think(Worker* worker) {
  const std::uint64_t mean = shared.settings.think_ns;
  if (mean != 0) work_ns(next_random(worker) % (2 * mean + 1));
}

const void* lock_address() {
  switch (shared.settings.object) {
    case ObjectKind::kSpin:
      return const_cast<const int*>(&shared.spin);
    case ObjectKind::kRwlock:
      return &shared.rwlock;
    case ObjectKind::kC11Mutex:
      return &shared.c11_mutex;
    default:
      return &shared.mutex;
  }
}

// What an owner does to its own lock's line: waiters that look there as well keep taking it away.
void read_line() {
  const auto* word = static_cast<const volatile std::uint32_t*>(lock_address());
  for (std::uint32_t i = 0; i < shared.settings.line_reads; ++i) (void)*word;
}

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
      Histogram& waits = worker->reading ? worker->read_waits : worker->waits;
      const std::uint64_t now = now_ns();
      const std::uint64_t since = Object::waited_since(asked);
      waits.add(now > since ? now - since : 0);
      until_sample = 1 + static_cast<std::uint32_t>(next_random(worker) % (2 * sample_every - 1));
    }
    Object::section(worker);
    // What was acquired after the end of the measurement is not part of it.
    if (!stopped()) {
      __atomic_store_n(&worker->operations, ++operations, __ATOMIC_RELAXED);
      if (worker->reading) ++worker->reads;
    }
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
    case ObjectKind::kRwlock:
      return run_until_stopped<RwlockObject>(worker);
    case ObjectKind::kC11Mutex:
      return run_until_stopped<C11MutexObject>(worker);
    case ObjectKind::kCondQueue:
      return run_until_stopped<CondQueueObject>(worker);
    case ObjectKind::kCondPingpong:
      return run_until_stopped<CondPingpongObject>(worker);
    case ObjectKind::kCondBroadcast:
      return run_until_stopped<CondBroadcastObject>(worker);
    case ObjectKind::kNone:
      return run_until_stopped<NoObject>(worker);
  }
}

void wait_for_start() {
  __atomic_add_fetch(&shared.arrived, 1, __ATOMIC_RELAXED);
  pthread_barrier_wait(&shared.start);
}

void* worker_main(void* argument) {
  auto* worker = static_cast<Worker*>(argument);
  wait_for_start();
  worker->started_ns = now_ns();
  run_worker(worker);
  return nullptr;
}

void* broadcaster_main(void*) {
  wait_for_start();
  CondBroadcastObject::broadcast_until_stopped();
  return nullptr;
}

std::uint64_t read_clock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_ns(std::uint64_t ns) {
  const timespec pause = {static_cast<time_t>(ns / 1'000'000'000),
                          static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&pause, nullptr);
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
    sleep_ns(end - now < kWatchStepNs ? end - now : kWatchStepNs);
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

void wake_all_waiters() {
  pthread_mutex_lock(&shared.mutex);
  pthread_cond_broadcast(&shared.not_empty);
  pthread_cond_broadcast(&shared.not_full);
  pthread_cond_broadcast(&shared.go);
  pthread_cond_broadcast(&shared.all_wait);
  for (int i = 0; i < shared.settings.threads; i += 2)
    pthread_cond_broadcast(&shared.pairs[i / 2].turn_changed);
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
  const std::uint64_t cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t begin = now_ns();
  setitimer(ITIMER_REAL, &timer, nullptr);
  run_worker(&result->workers[0]);
  result->elapsed_ns = now_ns() - begin;
  result->cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
}

// The threads that exist when one cannot be started wait at the barrier for good: the caller ends
// the process.
int start_threads(pthread_t* ids, int count, Result* result) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_barrier_init(&shared.start, nullptr, static_cast<unsigned>(count) + 1);
  for (int i = 0; i < count; ++i) {
    const bool works = i < shared.settings.threads;
    const int error = pthread_create(&ids[i], &attributes, works ? worker_main : broadcaster_main,
                                     works ? &result->workers[i] : nullptr);
    if (error != 0) return error;
  }
  pthread_attr_destroy(&attributes);
  // The last to arrive at the barrier is the one that reads the clock.
  while (__atomic_load_n(&shared.arrived, __ATOMIC_RELAXED) != count) sleep_ns(100'000);
  return 0;
}

int measure_threads(Result* result) {
  const bool broadcasts = shared.settings.object == ObjectKind::kCondBroadcast;
  const int count = shared.settings.threads + (broadcasts ? 1 : 0);
  auto* ids = static_cast<pthread_t*>(calloc(static_cast<std::size_t>(count), sizeof(pthread_t)));
  const int error = ids == nullptr ? ENOMEM : start_threads(ids, count, result);
  if (error != 0) return error;
  // Nobody works before `begin`, and nothing that ends after `end` counts, so no operation falls
  // outside of the time it is divided by, however late this thread gets a CPU.
  const std::uint64_t cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t begin = now_ns();
  pthread_barrier_wait(&shared.start);
  watch(begin, result);
  __atomic_store_n(&shared.stop, 1, __ATOMIC_RELAXED);
  const std::uint64_t end = now_ns();
  result->elapsed_ns = end - begin;
  result->cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  wake_all_waiters();
  for (int i = 0; i < count; ++i) pthread_join(ids[i], nullptr);
  result->drain_ns = now_ns() - end;
  for (int i = 0; i < shared.settings.threads; ++i) {
    const std::uint64_t late = result->workers[i].started_ns - begin;
    if (late > result->latest_start_ns) result->latest_start_ns = late;
  }
  free(ids);
  return 0;
}

// With fixed roles, at least one thread of each kind unless the percentage says none.
bool reads_only(int index, const Settings& settings) {
  const auto threads = static_cast<std::uint32_t>(settings.threads);
  std::uint32_t readers = (threads * settings.read_percent + 50) / 100;
  if (settings.read_percent > 0 && readers == 0) readers = 1;
  if (settings.read_percent < 100 && readers == threads && threads > 1) readers = threads - 1;
  return static_cast<std::uint32_t>(index) < readers;
}

}  // namespace

std::uint64_t next_random(Worker* worker) {
  std::uint64_t x = worker->random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return worker->random = x;
}

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

std::uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }

double calibrate() {
  constexpr std::uint64_t kTurns = 400'000;
  std::uint64_t least = UINT64_MAX;  // the run that nothing interrupted
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t begin = now_ns();
    work_turns(kTurns);
    const std::uint64_t taken = now_ns() - begin;
    if (taken < least) least = taken;
  }
  return static_cast<double>(kTurns) / static_cast<double>(least == 0 ? 1 : least);
}

void set_turns_per_ns(double turns) { turns_per_ns = turns; }

int measure(const Settings& settings, Result* result) {
  shared.settings = settings;
  const std::size_t bytes = static_cast<std::size_t>(settings.threads) * sizeof(Worker);
  result->workers = static_cast<Worker*>(aligned_alloc(alignof(Worker), bytes));
  if (result->workers == nullptr) return ENOMEM;
  for (int i = 0; i < settings.threads; ++i) {
    Worker& worker = result->workers[i] = Worker{};
    worker.index = i;
    worker.random = 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(i) + 1);
    worker.reading =
        settings.object == ObjectKind::kRwlock && settings.fixed_roles && reads_only(i, settings);
  }
  pthread_spin_init(&shared.spin, PTHREAD_PROCESS_PRIVATE);
  mtx_init(&shared.c11_mutex, mtx_plain);
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
