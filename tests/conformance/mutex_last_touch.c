// The last one out unmaps the memory that the lock lives in, while the one before it may still be
// on its way out of unlock: an unlock that looks at the lock again after it has released it dies
// here.
#include "mutex_kinds.h"

#include <sys/mman.h>

enum { kThreads = 3, kObjects = 100 };

typedef struct {
  pthread_mutex_t mutex;
  pthread_spinlock_t spin;
  int use_spin;
  int references;
} Object;

static Object* objects[kObjects];
static int unmapped;
static int arrived[kObjects];

// Everybody meets at each object, so that the last references are dropped at the same time.
static void meet(int index) {
  __atomic_fetch_add(&arrived[index], 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&arrived[index], __ATOMIC_ACQUIRE) < kThreads) sched_yield();
}

static void* drop_references(void* unused) {
  (void)unused;
  for (int i = 0; i < kObjects; i++) {
    Object* object = objects[i];
    meet(i);
    int use_spin = object->use_spin;
    int bad = use_spin ? pthread_spin_lock(&object->spin) : pthread_mutex_lock(&object->mutex);
    int last = --object->references == 0;
    bad |= use_spin ? pthread_spin_unlock(&object->spin) : pthread_mutex_unlock(&object->mutex);
    if (bad != 0) return (void*)1L;
    if (!last) continue;
    if (!use_spin && i % 2 == 0 && pthread_mutex_destroy(&object->mutex) != 0) return (void*)2L;
    if (munmap(object, sizeof *object) != 0) return (void*)3L;
    __atomic_fetch_add(&unmapped, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void all(const char* name, int kind, int use_spin) {
  pthread_t threads[kThreads];
  long bad = 0;
  unmapped = 0;
  memset(arrived, 0, sizeof arrived);
  for (int i = 0; i < kObjects; i++) {
    objects[i] =
        mmap(NULL, sizeof(Object), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(objects[i] != MAP_FAILED);
    make_static_mutex(&objects[i]->mutex, kind);
    MUST(pthread_spin_init(&objects[i]->spin, PTHREAD_PROCESS_PRIVATE) == 0);
    objects[i]->use_spin = use_spin;
    objects[i]->references = kThreads;
  }
  for (int i = 0; i < kThreads; i++) {
    MUST(pthread_create(&threads[i], NULL, drop_references, NULL) == 0);
  }
  for (int i = 0; i < kThreads; i++) {
    void* result = NULL;
    MUST(pthread_join(threads[i], &result) == 0);
    bad |= (long)result;
  }
  CHECK_EQ(label(name, "unmapped"), unmapped, kObjects);
  CHECK_EQ(label(name, "failed"), bad, 0);
}

int main(void) {
  all("normal:", PTHREAD_MUTEX_TIMED_NP, 0);
  all("recursive:", PTHREAD_MUTEX_RECURSIVE_NP, 0);
  all("errorcheck:", PTHREAD_MUTEX_ERRORCHECK_NP, 0);
  all("adaptive:", PTHREAD_MUTEX_ADAPTIVE_NP, 0);
  all("spinlock:", PTHREAD_MUTEX_TIMED_NP, 1);
  return done();
}
