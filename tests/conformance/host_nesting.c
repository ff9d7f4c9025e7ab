// Many locks held at once: fifty nested, climbed by several threads; a ladder that is climbed hand
// over hand; a recursive mutex fifty deep; and locks given back in any order.
#include "check.h"
#include "cond_support.h"

enum { kDepth = 50, kThreads = 4, kClimbs = 120 };

static pthread_mutex_t rungs[kDepth];
static pthread_spinlock_t spin_rungs[kDepth];
static pthread_mutex_t deep = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static long rung_count[kDepth];  // each under its rung
static long deep_count;          // under the deep mutex
static int errors;               // atomic
static void (*climb)(uint32_t*);

static void expect(int result) {
  if (result != 0) __atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED);  // a mere count
}

static void hold_all(uint32_t* random_state) {
  (void)random_state;
  for (int i = 0; i < kDepth; ++i) expect(pthread_mutex_lock(&rungs[i]));
  for (int i = 0; i < kDepth; ++i) ++rung_count[i];
  for (int i = kDepth - 1; i >= 0; --i) expect(pthread_mutex_unlock(&rungs[i]));
}

static void release_in_any_order(uint32_t* random_state) {
  int start = (int)(next_random(random_state) % kDepth);
  for (int i = 0; i < kDepth; ++i) expect(pthread_mutex_lock(&rungs[i]));
  for (int i = 0; i < kDepth; ++i) {
    int rung = (start + i * 7) % kDepth;
    ++rung_count[rung];
    expect(pthread_mutex_unlock(&rungs[rung]));
  }
}

static void hand_over_hand(uint32_t* random_state) {
  (void)random_state;
  expect(pthread_mutex_lock(&rungs[0]));
  for (int i = 0; i < kDepth; ++i) {
    ++rung_count[i];
    if (i + 1 < kDepth) expect(pthread_mutex_lock(&rungs[i + 1]));
    expect(pthread_mutex_unlock(&rungs[i]));
  }
}

static void hold_all_spinlocks(uint32_t* random_state) {
  (void)random_state;
  for (int i = 0; i < kDepth; ++i) expect(pthread_spin_lock(&spin_rungs[i]));
  for (int i = 0; i < kDepth; ++i) ++rung_count[i];
  for (int i = kDepth - 1; i >= 0; --i) expect(pthread_spin_unlock(&spin_rungs[i]));
}

static void go_deep(uint32_t* random_state) {
  (void)random_state;
  for (int i = 0; i < kDepth; ++i) {
    expect(i % 2 ? pthread_mutex_lock(&deep)
                 : pthread_mutex_trylock(&deep) && pthread_mutex_lock(&deep));
    ++deep_count;
  }
  for (int i = 0; i < kDepth; ++i) expect(pthread_mutex_unlock(&deep));
}

// Pairs in both directions: the second one is only tried, and the first given back if it fails.
static void pairs_in_both_directions(uint32_t* random_state) {
  int first = (int)(next_random(random_state) % kDepth);
  for (int taken = 0; taken < kDepth;) {
    int second = (first + 1 + (int)(next_random(random_state) % (kDepth - 1))) % kDepth;
    expect(pthread_mutex_lock(&rungs[first]));
    if (pthread_mutex_trylock(&rungs[second]) == 0) {
      ++taken;
      ++rung_count[first];
      expect(pthread_mutex_unlock(&rungs[second]));
    }
    expect(pthread_mutex_unlock(&rungs[first]));
    first = second;
  }
}

static void* climb_often(void* argument) {
  uint32_t random_state = (uint32_t)(intptr_t)argument;
  for (int i = 0; i < kClimbs; ++i) climb(&random_state);
  return NULL;
}

static void run(const char* name, void (*way)(uint32_t*)) {
  pthread_t threads[kThreads];
  memset(rung_count, 0, sizeof rung_count);
  climb = way;
  for (intptr_t i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, climb_often, (void*)(i + 1));
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  long sum = deep_count;
  deep_count = 0;
  for (int i = 0; i < kDepth; ++i) sum += rung_count[i];
  CHECK_EQ(name, sum, (long)kThreads * kClimbs * kDepth);
}

int main(void) {
  for (int i = 0; i < kDepth; ++i) {
    pthread_mutex_init(&rungs[i], NULL);
    pthread_spin_init(&spin_rungs[i], PTHREAD_PROCESS_PRIVATE);
  }
  run("fifty nested", hold_all);
  run("released in any order", release_in_any_order);
  run("hand over hand", hand_over_hand);
  run("fifty spinlocks", hold_all_spinlocks);
  run("recursive, fifty deep", go_deep);
  run("pairs in both directions", pairs_in_both_directions);
  CHECK_EQ("errors", errors, 0);
  int destroyed = 0;
  for (int i = 0; i < kDepth; ++i) destroyed += pthread_mutex_destroy(&rungs[i]) == 0;
  CHECK_EQ("destroyed", destroyed, kDepth);
  return done();
}
