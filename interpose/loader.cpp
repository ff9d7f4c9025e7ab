// What concerns the loading of libraries: dlopen, dlvsym, and the moment when loading is done.
#include <dlfcn.h>

#include <cstring>

#include "interpose/export.h"
#include "interpose/message.h"
#include "interpose/real.h"
#include "interpose/rules.h"
#include "interpose/runtime.h"

namespace relock {
namespace {

__attribute__((noinline)) void say_once() {
  static bool said;
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    say("relock: warning: dlopen with RTLD_DEEPBIND: the flag is dropped, so that the library's "
        "locks are the program's");
  }
}

// Where rules pick the lock, the symbols of what has been opened are looked up from here, so that
// no waiting thread has to. A name with a slash and without $ means the same file whoever asks, so
// this may be a call; other modules are seen when one of their objects is.
bool may_be_called_for(const char* file) {
  return file != nullptr && std::strchr(file, '/') != nullptr && std::strchr(file, '$') == nullptr;
}
__attribute__((noinline)) void* open_and_apply_rules(const char* file, int mode) {
  void* library = real().dlopen(file, mode);
  if (library != nullptr) rule_opened_modules();
  return library;
}

// The table's names, one after the other, each with its terminator.
constexpr char kNames[] =
#define RELOCK_SYMBOL(symbol, version, result, arguments) #symbol "\0"
#include "interpose/symbols.def"
#undef RELOCK_SYMBOL
    ;

__attribute__((noinline)) bool is_ours(const char* name) {
  for (const char* known = kNames; *known != '\0'; known += std::strlen(known) + 1) {
    if (std::strcmp(name, known) == 0) return true;
  }
  return false;
}

}  // namespace
}  // namespace relock

// A library opened with RTLD_DEEPBIND would bind its lock calls to the C library's functions
// directly; two encodings of one lock word would then lose updates. The call goes on by a jump, not
// a call, since the C library looks at the caller's address for the caller's RUNPATH.
RELOCK_EXPORT(void*, dlopen, (const char* file, int mode)) {
  if (relock::unlikely((mode & RTLD_DEEPBIND) != 0)) {
    relock::say_once();
    mode &= ~RTLD_DEEPBIND;
  }
  if (relock::unlikely(relock::g_runtime.mutexes_ruled) && relock::may_be_called_for(file)) {
    return relock::open_and_apply_rules(file, mode);
  }
  return relock::real().dlopen(file, mode);
}

// A look-up by version passes over definitions without one, which ours are, so that one definition
// answers references to every version. Hence it becomes a look-up without a version, by a jump:
// RTLD_NEXT depends on the caller's address.
RELOCK_EXPORT(void*, dlvsym, (void* handle, const char* name, const char* version)) {
  const bool searches = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
  if (searches && relock::is_ours(name)) return dlsym(handle, name);
  return relock::real().dlvsym(handle, name, version);
}

// The program's start-up code calls this when every library's constructor has run. The recorder is
// opened here and not in our constructor: ours runs before the C library's, and opening a library
// then would initialise the C library without the program's arguments and environment.
RELOCK_EXPORT(int, __libc_start_main,
              (int (*main_function)(int, char**, char**), int argc, char** argv, void (*init)(),
               void (*fini)(), void (*rtld_fini)(), void* stack_end)) {
  relock::real();
  relock::resolve_libc_functions();
  if (relock::unlikely(relock::g_runtime.options.profile)) relock::open_profiler();
  return relock::real().__libc_start_main(main_function, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}
