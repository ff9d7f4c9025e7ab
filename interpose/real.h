// The C library's own definitions of the symbols that this library defines too.
//
// They are looked up in the constructor, all at once. A call that comes earlier (a preloaded malloc
// locks before any constructor has run) resolves what it needs by itself; nothing is ever looked up
// later, when another thread may hold the loader's lock.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

namespace relock {

struct RealFunctions {
#define RELOCK_SYMBOL(name, version, result, arguments) result(*name) arguments;
#include "interpose/symbols.def"
#undef RELOCK_SYMBOL
};

// Functions of the C library that this library calls on lock paths, whatever the program has put in
// front of them. Before the constructor: as linked. From it on: what comes behind this library.
struct LibcFunctions {
  int (*sem_init)(sem_t*, int, unsigned) = ::sem_init;
  int (*sem_post)(sem_t*) = ::sem_post;
  int (*sem_wait)(sem_t*) = ::sem_wait;
  int (*sem_clockwait)(sem_t*, clockid_t, const timespec*) = ::sem_clockwait;
};
extern LibcFunctions g_libc;

// Filled by resolve_real_functions(); entries that this C library lacks are null.
extern RealFunctions g_real;

void resolve_real_functions();

// LibcFunctions through the C library's own handle, so that nothing in front of it is found. Opens
// a library: not before all constructors have run.
void resolve_libc_functions();

// The table, resolved now if it has not been yet.
inline const RealFunctions& real() {
  // Pairs with the release at the end of resolve_real_functions(), in case two threads come first.
  if (__builtin_expect(__atomic_load_n(&g_real.pthread_mutex_lock, __ATOMIC_ACQUIRE) == nullptr,
                       0)) {
    resolve_real_functions();
  }
  return g_real;
}

}  // namespace relock
