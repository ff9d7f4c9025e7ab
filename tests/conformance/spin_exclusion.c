// Mutual exclusion of spinlocks with 2, 4 and 16 threads, by lock and trylock, on objects that were
// made in every way; an array of them side by side in one cache line; and across processes.
#include "check.h"

#include <sched.h>
#include <sys/mman.h>

#if defined(__x86_64__) || defined(__i386__)
enum { kFree = 1 };
#else
enum { kFree = 0 };
#endif

enum { kMaxThreads = 16, kAcquisitionsInAll = 3200, kNeighbours = 16 };

typedef union {
  pthread_spinlock_t lock;
  int value;
} Spin;

typedef struct {
  Spin spin;
  long value;
  long copy;
} Guarded;

static Guarded guarded;
static int each;
static int start;

static int count_up(Guarded* object, int times) {
  int bad = 0;
  for (int i = 0; i < times; i++) {
    int result;
    if (i % 4 == 0) {
      while ((result = pthread_spin_trylock(&object->spin.lock)) == EBUSY) sched_yield();
    } else {
      result = pthread_spin_lock(&object->spin.lock);
    }
    bad |= result != 0 || object->value != object->copy;
    object->value++;
    if (i % 64 == 0) sched_yield();
    object->copy++;
    bad |= pthread_spin_unlock(&object->spin.lock) != 0;
  }
  return bad;
}

static void* work(void* unused) {
  (void)unused;
  await_flag(&start);
  errno = kErrnoSentinel;
  long bad = count_up(&guarded, each);
  return (void*)(bad | (errno != kErrnoSentinel));
}

static void exclude(const char* how, int threads) {
  pthread_t ids[kMaxThreads];
  char name[64];
  long bad = 0;
  snprintf(name, sizeof name, "%s, %d threads:", how, threads);
  guarded.value = guarded.copy = 0;
  each = kAcquisitionsInAll / threads;
  start = 0;
  for (int i = 0; i < threads; i++) MUST(pthread_create(&ids[i], NULL, work, NULL) == 0);
  set_flag(&start);
  for (int i = 0; i < threads; i++) {
    void* result = NULL;
    MUST(pthread_join(ids[i], &result) == 0);
    bad |= (long)result;
  }
  CHECK_EQ(label(name, "counted"), guarded.value, kAcquisitionsInAll);
  CHECK_EQ(label(name, "failed"), bad, 0);
}

static void all_counts(const char* how) {
  exclude(how, 2);
  exclude(how, 4);
  exclude(how, 16);
}

static Guarded neighbours[kNeighbours];
static Spin row[kNeighbours];

static void* walk_the_row(void* unused) {
  (void)unused;
  long bad = 0;
  for (int round = 0; round < 40; round++) {
    for (int i = 0; i < kNeighbours; i++) {
      bad |= pthread_spin_lock(&row[i].lock) != 0;
      neighbours[i].value++;
      bad |= pthread_spin_unlock(&row[i].lock) != 0;
    }
  }
  return (void*)bad;
}

static void in_a_row(void) {
  pthread_t ids[4];
  long bad = 0;
  long counted = 0;
  for (int i = 0; i < kNeighbours; i++) {
    MUST(pthread_spin_init(&row[i].lock, PTHREAD_PROCESS_PRIVATE) == 0);
  }
  for (int i = 0; i < 4; i++) MUST(pthread_create(&ids[i], NULL, walk_the_row, NULL) == 0);
  for (int i = 0; i < 4; i++) {
    void* result = NULL;
    MUST(pthread_join(ids[i], &result) == 0);
    bad |= (long)result;
  }
  for (int i = 0; i < kNeighbours; i++) counted += neighbours[i].value;
  CHECK_EQ("in a row: counted", counted, 4 * 40 * kNeighbours);
  CHECK_EQ("in a row: failed", bad, 0);
}

static void across_processes(const char* name, int by_hand) {
  enum { kProcesses = 3, kRounds = 600 };
  Guarded* shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared != MAP_FAILED);
  if (by_hand) {
    shared->spin.value = kFree;
  } else {
    MUST(pthread_spin_init(&shared->spin.lock, PTHREAD_PROCESS_SHARED) == 0);
  }
  pid_t children[kProcesses];
  for (int i = 0; i < kProcesses; i++) {
    children[i] = fork();
    MUST(children[i] >= 0);
    if (children[i] == 0) _exit(count_up(shared, kRounds));
  }
  int bad = count_up(shared, kRounds);
  for (int i = 0; i < kProcesses; i++) bad |= child_status(children[i]);
  CHECK_EQ(label(name, "counted"), shared->value, (kProcesses + 1) * kRounds);
  CHECK_EQ(label(name, "failed"), bad, 0);
  MUST(munmap(shared, sizeof *shared) == 0);
}

int main(void) {
  MUST(pthread_spin_init(&guarded.spin.lock, PTHREAD_PROCESS_PRIVATE) == 0);
  all_counts("private");
  MUST(pthread_spin_init(&guarded.spin.lock, PTHREAD_PROCESS_SHARED) == 0);
  all_counts("shared");
  guarded.spin.value = kFree;
  all_counts("by hand");
  in_a_row();
  across_processes("processes:", 0);
  across_processes("processes, by hand:", 1);
  return done();
}
