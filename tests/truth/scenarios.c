// Programs whose contention is known: by construction, and measured by themselves around each call.
//   truth SCENARIO
// prints what a report of it must show, in lines of the form `NAME KEY VALUE`. Functions and locks
// have external names, so that they are found in stacks and reports.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t hot_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t cold_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;

// What a function has waited. Each is written by one thread at a time, or summed up atomically.
typedef struct {
  uint64_t waits, ns, longest_ns;
} Waited;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static void sleep_us(long us) {
  struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}
static void work_us(uint64_t us) {
  for (const uint64_t end = now_ns() + us * 1000; now_ns() < end;) {
  }
}
static void add_wait(Waited* waited, uint64_t ns) {
  __atomic_fetch_add(&waited->waits, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&waited->ns, ns, __ATOMIC_RELAXED);
  uint64_t seen = __atomic_load_n(&waited->longest_ns, __ATOMIC_RELAXED);
  while (seen < ns && !__atomic_compare_exchange_n(&waited->longest_ns, &seen, ns, 0,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
static void print_waited(const char* name, const Waited* waited) {
  printf("%s waits %llu\n%s wait_ns %llu\n%s longest_ns %llu\n", name,
         (unsigned long long)waited->waits, name, (unsigned long long)waited->ns, name,
         (unsigned long long)waited->longest_ns);
}

// Keeps a call from becoming a jump, and its function from being merged with its like.
#define STAYS_A_CALL(number) __asm__ volatile("# " #number ::: "memory")
#define OUTSIDE __attribute__((noinline, noclone))

OUTSIDE void timed_lock(pthread_mutex_t* lock, Waited* waited) {
  const uint64_t start = now_ns();
  pthread_mutex_lock(lock);
  if (waited != NULL) add_wait(waited, now_ns() - start);
}

static void on_threads(int count, void* (*work)(void*)) {
  pthread_t threads[16];
  for (intptr_t i = 0; i < count; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

// ---- one lock hot by a known time, another one hardly ------------------------------------------

enum { kHotRounds = 30, kHotUs = 2000, kColdUs = 20 };
static Waited hot, cold;
static uint64_t hot_held_ns;  // under the hot lock

OUTSIDE void use_hot(void) {
  timed_lock(&hot_lock, &hot);
  const uint64_t start = now_ns();
  sleep_us(kHotUs);
  hot_held_ns += now_ns() - start;
  pthread_mutex_unlock(&hot_lock);
  STAYS_A_CALL(1);
}
OUTSIDE void use_cold(void) {
  timed_lock(&cold_lock, &cold);
  work_us(kColdUs);
  pthread_mutex_unlock(&cold_lock);
  STAYS_A_CALL(2);
}
static void* hot_worker(void* unused) {
  for (int i = 0; i < kHotRounds; ++i) {
    use_hot();
    if (i % 4 == 0) use_cold();
  }
  return unused;
}
static void run_hot(void) {
  on_threads(3, hot_worker);
  print_waited("hot", &hot);
  print_waited("cold", &cold);
  printf("hot acquisitions %d\ncold acquisitions %d\n", 3 * kHotRounds, 3 * (kHotRounds / 4));
  printf("hot hold_ns %llu\n", (unsigned long long)(hot_held_ns / (3 * kHotRounds)));
}

// ---- a holder, and a waiter that surely waits for it -------------------------------------------

static int held;   // how often the holder has taken the lock
static int taken;  // how often the waiter has had it after the holder

// Holds for about as long as the waiter is told to wait.
static void hold_for(int round, long us) {
  pthread_mutex_lock(&hot_lock);
  __atomic_store_n(&held, round + 1, __ATOMIC_RELEASE);
  sleep_us(us);
  pthread_mutex_unlock(&hot_lock);
  while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) <= round) sleep_us(20);
}
static void await_holder(int round) {
  while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) <= round) sleep_us(20);
}
static void let_go(int round) {
  pthread_mutex_unlock(&hot_lock);
  __atomic_store_n(&taken, round + 1, __ATOMIC_RELEASE);
}

// ---- two waiting stacks, 70 to 30, and two blocking ones ---------------------------------------

enum { kSplitRounds = 100, kSplitUs = 2000 };
static Waited path_a, path_b;
static Waited because_of_c, because_of_d;  // the same waits by who held the lock meanwhile

OUTSIDE void wait_for_holder(int round, Waited* waited) {
  const uint64_t start = now_ns();
  pthread_mutex_lock(&hot_lock);
  const uint64_t ns = now_ns() - start;
  add_wait(waited, ns);
  add_wait(round % 2 == 0 ? &because_of_c : &because_of_d, ns);
}
OUTSIDE void wait_in_a(int round) {
  wait_for_holder(round, &path_a);
  let_go(round);
  STAYS_A_CALL(3);
}
OUTSIDE void wait_in_b(int round) {
  wait_for_holder(round, &path_b);
  let_go(round);
  STAYS_A_CALL(4);
}
OUTSIDE void hold_in_c(int round) {
  hold_for(round, kSplitUs);
  STAYS_A_CALL(5);
}
OUTSIDE void hold_in_d(int round) {
  hold_for(round, kSplitUs);
  STAYS_A_CALL(6);
}
static void* split_holder(void* unused) {
  for (int i = 0; i < kSplitRounds; ++i) i % 2 == 0 ? hold_in_c(i) : hold_in_d(i);
  return unused;
}
static void* split_waiter(void* unused) {
  for (int i = 0; i < kSplitRounds; ++i) {
    await_holder(i);
    i % 10 < 7 ? wait_in_a(i) : wait_in_b(i);
  }
  return unused;
}
static void* split_thread(void* number) {
  return number == NULL ? split_holder(number) : split_waiter(number);
}
static void run_split(void) {
  on_threads(2, split_thread);
  print_waited("wait_in_a", &path_a);
  print_waited("wait_in_b", &path_b);
  print_waited("hold_in_c", &because_of_c);
  print_waited("hold_in_d", &because_of_d);
  printf("hot acquisitions %d\n", 2 * kSplitRounds);
}

// ---- a blocker that never waits ----------------------------------------------------------------

enum { kBlockRounds = 30, kBlockUs = 4000 };
static Waited blocked;

OUTSIDE void audit_everything(int round) {
  hold_for(round, kBlockUs);
  STAYS_A_CALL(7);
}
OUTSIDE void serve_request(int round) {
  timed_lock(&hot_lock, &blocked);
  let_go(round);
  STAYS_A_CALL(8);
}
static void* blocker_thread(void* number) {
  for (int i = 0; i < kBlockRounds; ++i) {
    if (number == NULL) {
      audit_everything(i);
    } else {
      await_holder(i);
      serve_request(i);
    }
  }
  return number;
}
static void run_blocker(void) {
  on_threads(2, blocker_thread);
  print_waited("serve_request", &blocked);
}

// ---- a convoy: everybody always wants the same lock --------------------------------------------

enum { kConvoyThreads = 6, kConvoyRounds = 30, kConvoyUs = 1000 };
static Waited convoy;

OUTSIDE void join_convoy(void) {
  timed_lock(&hot_lock, &convoy);
  sleep_us(kConvoyUs);
  pthread_mutex_unlock(&hot_lock);
  STAYS_A_CALL(9);
}
static uint64_t convoy_ns;  // lives of its threads

static void* convoy_thread(void* unused) {
  const uint64_t start = now_ns();
  for (int i = 0; i < kConvoyRounds; ++i) join_convoy();
  __atomic_fetch_add(&convoy_ns, now_ns() - start, __ATOMIC_RELAXED);
  return unused;
}
static void run_convoy(void) {
  const uint64_t start = now_ns();
  on_threads(kConvoyThreads, convoy_thread);
  print_waited("join_convoy", &convoy);
  // The main thread waits for the others to end; it is one of the process's threads.
  printf("all thread_ns %llu\n", (unsigned long long)(convoy_ns + now_ns() - start));
  printf("hot acquisitions %d\n", kConvoyThreads * kConvoyRounds);
}

// ---- readers that keep a writer out ------------------------------------------------------------

enum { kStormRounds = 40, kStormUs = 2000 };
static Waited writers;
static int reading, writing;

OUTSIDE void read_table(int round) {
  pthread_rwlock_rdlock(&table_lock);
  __atomic_fetch_add(&reading, 1, __ATOMIC_RELEASE);
  sleep_us(kStormUs);
  pthread_rwlock_unlock(&table_lock);
  while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE) <= round) sleep_us(20);
  STAYS_A_CALL(10);
}
OUTSIDE void change_table(int round) {
  while (__atomic_load_n(&reading, __ATOMIC_ACQUIRE) < 3 * (round + 1)) sleep_us(20);
  const uint64_t start = now_ns();
  pthread_rwlock_wrlock(&table_lock);
  add_wait(&writers, now_ns() - start);
  pthread_rwlock_unlock(&table_lock);
  __atomic_store_n(&writing, round + 1, __ATOMIC_RELEASE);
  STAYS_A_CALL(11);
}
static void* storm_thread(void* number) {
  for (int i = 0; i < kStormRounds; ++i) number == NULL ? change_table(i) : read_table(i);
  return number;
}
static void run_storm(void) {
  on_threads(4, storm_thread);
  print_waited("change_table", &writers);
  printf("reads acquisitions %d\nwrites acquisitions %d\n", 3 * kStormRounds, kStormRounds);
}

// ---- two threads that wake each other ----------------------------------------------------------

enum { kTurns = 100, kTurnUs = 1000 };
static Waited turns;
static int turn;

OUTSIDE void wait_for_turn(int me) {
  while (turn % 2 != me) {
    const uint64_t start = now_ns();
    pthread_cond_wait(&turn_changed, &cold_lock);
    add_wait(&turns, now_ns() - start);
  }
  STAYS_A_CALL(12);
}
OUTSIDE void give_turn(void) {
  pthread_mutex_lock(&cold_lock);
  ++turn;
  pthread_cond_signal(&turn_changed);
  pthread_mutex_unlock(&cold_lock);
  STAYS_A_CALL(15);
}
static void* pingpong_thread(void* number) {
  const int me = (int)(intptr_t)number;
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(&cold_lock);
    wait_for_turn(me);
    pthread_mutex_unlock(&cold_lock);
    sleep_us(kTurnUs);
    give_turn();
  }
  return number;
}
static void run_pingpong(void) {
  on_threads(2, pingpong_thread);
  print_waited("wait_for_turn", &turns);
}

// ---- a crowd that one thread wakes all at once -------------------------------------------------

enum { kCrowd = 6, kGates = 50 };
static Waited crowd;
static int gates_opened;

OUTSIDE void wait_at_gate(int gate) {
  pthread_mutex_lock(&cold_lock);
  while (gates_opened <= gate) {
    const uint64_t start = now_ns();
    pthread_cond_wait(&turn_changed, &cold_lock);
    add_wait(&crowd, now_ns() - start);
  }
  pthread_mutex_unlock(&cold_lock);
  STAYS_A_CALL(16);
}
OUTSIDE void open_gate(void) {
  pthread_mutex_lock(&cold_lock);
  ++gates_opened;
  pthread_cond_broadcast(&turn_changed);
  pthread_mutex_unlock(&cold_lock);
  STAYS_A_CALL(17);
}
static void* crowd_thread(void* number) {
  for (int gate = 0; gate < kGates; ++gate) {
    if (number != NULL) {
      wait_at_gate(gate);
    } else {
      sleep_us(2000);
      open_gate();
    }
  }
  return number;
}
static void run_crowd(void) {
  on_threads(kCrowd + 1, crowd_thread);
  print_waited("wait_at_gate", &crowd);
}

// ---- more waits than stacks may be taken -------------------------------------------------------

enum { kManyThreads = 4 };
static Waited often, seldom;
static int over;

OUTSIDE void wait_often(void) {
  timed_lock(&hot_lock, &often);
  work_us(8);
  pthread_mutex_unlock(&hot_lock);
  STAYS_A_CALL(13);
}
OUTSIDE void wait_seldom(void) {
  timed_lock(&hot_lock, &seldom);
  work_us(8);
  pthread_mutex_unlock(&hot_lock);
  STAYS_A_CALL(14);
}
static void* many_thread(void* number) {
  for (unsigned i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); ++i) {
    i % 5 < 2 ? wait_seldom() : wait_often();
    work_us(2);
  }
  return number;
}
static void* many_watch(void* number) {
  if (number != NULL) return many_thread(number);
  // The longest of these waits are seldom: in 2.5 s the shares came out right within 1.6 %
  // (standard deviation, 50 runs), once in 25 runs they were off by more than 5.
  sleep_us(getenv("SLOW") != NULL && *getenv("SLOW") != '\0' ? 20000000 : 6000000);
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  return number;
}
static void run_many(void) {
  on_threads(kManyThreads + 1, many_watch);
  print_waited("wait_often", &often);
  print_waited("wait_seldom", &seldom);
}

static const struct {
  const char* name;
  void (*run)(void);
} kScenarios[] = {{"hot", run_hot},       {"split", run_split}, {"blocker", run_blocker},
                  {"convoy", run_convoy}, {"storm", run_storm}, {"pingpong", run_pingpong},
                  {"crowd", run_crowd},   {"many", run_many}};

int main(int argc, char** argv) {
  for (unsigned i = 0; argc == 2 && i < sizeof kScenarios / sizeof *kScenarios; ++i) {
    if (strcmp(argv[1], kScenarios[i].name) != 0) continue;
    kScenarios[i].run();
    return 0;
  }
  return 2;
}
