#include "interpose/real.h"

#include <dlfcn.h>

namespace relock {

RealFunctions g_real;

namespace {

void* look_up(const char* name, const char* version) {
  void* found = nullptr;
  if (version[0] != '\0') found = dlvsym(RTLD_NEXT, name, version);
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  return found;
}

}  // namespace

// pthread_mutex_lock is stored last: real() takes it as the sign that the table is complete. Two
// threads that get here at once store the same values.
void resolve_real_functions() {
#define RELOCK_SYMBOL(name, version, result, arguments)                                 \
  if (__builtin_strcmp(#name, "pthread_mutex_lock") != 0) {                             \
    g_real.name = reinterpret_cast<result(*) arguments>(look_up(#name, version));       \
  }
#include "interpose/symbols.def"
#undef RELOCK_SYMBOL
  auto* lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(look_up("pthread_mutex_lock", ""));
  __atomic_store_n(&g_real.pthread_mutex_lock, lock, __ATOMIC_RELEASE);
}

}  // namespace relock
