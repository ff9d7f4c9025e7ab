// dlopen: drops RTLD_DEEPBIND, once with a word about it.
//
// A library opened with that flag would bind its lock calls to the C library's functions directly;
// two encodings of one lock word would then lose updates. The call goes on by a jump, not a call,
// since the C library looks at the caller's address for the caller's RUNPATH.
#include <dlfcn.h>

#include "interpose/export.h"
#include "interpose/message.h"
#include "interpose/real.h"
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

}  // namespace
}  // namespace relock

RELOCK_EXPORT(void*, dlopen, (const char* file, int mode)) {
  if (relock::unlikely((mode & RTLD_DEEPBIND) != 0)) {
    relock::say_once();
    mode &= ~RTLD_DEEPBIND;
  }
  return relock::real().dlopen(file, mode);
}
