// A replacement for malloc as programs preload it: it finds the C library's functions with dlsym at
// the first call, hands out a little memory of its own meanwhile (dlsym may allocate), and guards
// its accounts with a mutex and a spinlock that it takes on every call.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kEarlyBytes = 65536, kAlignment = 16 };

static void* (*real_malloc)(size_t);
static void* (*real_calloc)(size_t, size_t);
static void* (*real_realloc)(void*, size_t);
static void* (*real_aligned_alloc)(size_t, size_t);
static void (*real_free)(void*);

static char early_memory[kEarlyBytes] __attribute__((aligned(kAlignment)));
static size_t early_used;
static int looking_up;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_spinlock_t spin;
static int spin_ready;
static long calls;       // under the mutex
static long also_calls;  // under the mutex

static void* early(size_t size) {
  size_t start = (early_used + kAlignment - 1) / kAlignment * kAlignment;
  if (start + size > kEarlyBytes) abort();
  early_used = start + size;
  return early_memory + start;
}

static int is_early(const void* memory) {
  return (const char*)memory >= early_memory && (const char*)memory < early_memory + kEarlyBytes;
}

// The program has one thread when the first call comes.
static int look_up(void) {
  if (real_free != NULL) return 1;
  if (looking_up) return 0;
  looking_up = 1;
  *(void**)&real_malloc = dlsym(RTLD_NEXT, "malloc");
  *(void**)&real_calloc = dlsym(RTLD_NEXT, "calloc");
  *(void**)&real_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void**)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
  *(void**)&real_free = dlsym(RTLD_NEXT, "free");
  if (real_free == NULL || real_malloc == NULL) abort();
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  spin_ready = 1;
  looking_up = 0;
  return 1;
}

static void account(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&recursive);
  pthread_mutex_lock(&recursive);
  ++calls;
  if (spin_ready) {
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
  }
  if (++also_calls != calls) abort();
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&mutex);
}

void* malloc(size_t size) {
  if (!look_up()) return early(size);
  account();
  return real_malloc(size);
}

void* calloc(size_t count, size_t size) {
  if (!look_up()) return early(count * size);  // static memory: zero already
  account();
  return real_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  if (!look_up() || is_early(memory)) {
    void* larger = malloc(size);
    size_t reach = (size_t)(early_memory + kEarlyBytes - (char*)memory);
    if (memory != NULL) memcpy(larger, memory, size < reach ? size : reach);
    return larger;
  }
  account();
  return real_realloc(memory, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (!look_up()) return early(size);
  account();
  return real_aligned_alloc(alignment, size);
}

void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void** result, size_t alignment, size_t size) {
  *result = aligned_alloc(alignment, size);
  return *result != NULL ? 0 : ENOMEM;
}

void free(void* memory) {
  if (memory == NULL || is_early(memory)) return;
  if (!look_up()) return;
  account();
  real_free(memory);
}

// As jemalloc does it: the locks are held across fork.
static void before_fork(void) {
  pthread_mutex_lock(&mutex);
  pthread_spin_lock(&spin);
}

static void after_fork(void) {
  pthread_spin_unlock(&spin);
  pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void construct(void) {
  free(malloc(1));
  pthread_atfork(before_fork, after_fork, after_fork);
}
