#include "interpose/real.h"

#include <dlfcn.h>

#include "locks/linux_platform.h"

namespace relock {

RealFunctions g_real;
LibcFunctions g_libc;

namespace {

void* look_up(const char* name, const char* version) {
  void* found = nullptr;
  if (version[0] != '\0' && g_real.dlvsym != nullptr) {
    found = g_real.dlvsym(RTLD_NEXT, name, version);
  }
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  return found;
}

template <class Function>
void take_from(void* library, const char* name, Function* function) {
  if (void* found = dlsym(library, name); found != nullptr) {
    *function = reinterpret_cast<Function>(found);
  }
}

void take_libc_functions(void* library) {
  take_from(library, "clock_gettime", &linux_detail::clock_function);
  take_from(library, "sem_init", &g_libc.sem_init);
  take_from(library, "sem_post", &g_libc.sem_post);
  take_from(library, "sem_wait", &g_libc.sem_wait);
  take_from(library, "sem_clockwait", &g_libc.sem_clockwait);
}

}  // namespace

// pthread_mutex_lock is stored last: real() takes it as the sign that the table is complete. Two
// threads that get here at once store the same values.
void resolve_real_functions() {
  using Dlvsym = void* (*)(void*, const char*, const char*);
  g_real.dlvsym = reinterpret_cast<Dlvsym>(dlsym(RTLD_NEXT, "dlvsym"));
#define RELOCK_SYMBOL(name, version, result, arguments)                           \
  if (__builtin_strcmp(#name, "pthread_mutex_lock") != 0) {                       \
    g_real.name = reinterpret_cast<result(*) arguments>(look_up(#name, version)); \
  }
#include "interpose/symbols.def"
#undef RELOCK_SYMBOL
  take_libc_functions(RTLD_NEXT);
  auto* lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(look_up("pthread_mutex_lock", ""));
  __atomic_store_n(&g_real.pthread_mutex_lock, lock, __ATOMIC_RELEASE);
}

void resolve_libc_functions() {
  void* library = g_real.dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) take_libc_functions(library);
}

}  // namespace relock
