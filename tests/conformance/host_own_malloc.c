// A program that brings its own malloc, guarded by a mutex and started by dlsym, so that the first
// lock, the first dlsym and the first allocation happen inside each other, before any constructor.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

#include <dlfcn.h>
#include <stdint.h>

enum { kHeapBytes = 32 << 20, kThreads = 6, kTimes = 500 };

static char heap[kHeapBytes] __attribute__((aligned(16)));
static size_t used;  // under the mutex, like calls
static long calls;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int (*next_puts)(const char*);
static int starting;

// A bump allocator; the size stands before each block, for realloc.
static void* take(size_t size) {
  pthread_mutex_lock(&mutex);
  ++calls;
  if (next_puts == NULL && !starting) {
    starting = 1;
    pthread_mutex_unlock(&mutex);
    // May allocate: the calls that this makes come back here with `starting` set.
    *(void**)&next_puts = dlsym(RTLD_NEXT, "puts");
    pthread_mutex_lock(&mutex);
  }
  size_t start = used + 16;
  size_t end = (start + size + 15) / 16 * 16;
  void* memory = NULL;
  if (end <= kHeapBytes) {
    memory = heap + start;
    *(size_t*)(void*)(heap + start - 16) = size;
    used = end;
  }
  pthread_mutex_unlock(&mutex);
  return memory;
}

void* malloc(size_t size) { return take(size); }

void* calloc(size_t count, size_t size) { return take(count * size); }  // never reused: zero

void* realloc(void* memory, size_t size) {
  void* larger = take(size);
  if (memory == NULL || larger == NULL) return larger;
  size_t old = *(size_t*)(void*)((char*)memory - 16);
  return memcpy(larger, memory, old < size ? old : size);
}

void free(void* memory) {
  if (memory == NULL) return;
  pthread_mutex_lock(&mutex);
  ++calls;
  pthread_mutex_unlock(&mutex);
}

static void* allocate(void* unused) {
  (void)unused;
  intptr_t good = 0;
  for (int i = 0; i < kTimes; ++i) {
    char* memory = malloc(64);
    memset(memory, i & 0xff, 64);
    memory = realloc(memory, 128);
    good += memory[63] == (char)(i & 0xff);
    free(memory);
  }
  return (void*)good;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, allocate, NULL);
  long good = 0;
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    good += (long)result;
  }
  CHECK_EQ("blocks as they were left", good, kThreads * kTimes);
  CHECK_TRUE("every call was counted", calls >= 3L * kThreads * kTimes);
  CHECK_TRUE("dlsym found the next one", next_puts != NULL);
  CHECK_TRUE("the mutex still counts", tally(&mutex, 4, 500));
  return done();
}
