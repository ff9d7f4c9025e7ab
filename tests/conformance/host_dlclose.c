// Locks that lived in a library which was closed after use, sometimes while they were held.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

#include <dlfcn.h>

enum { kRounds = 30, kTimes = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int use_once(int leave_locked) {
  void* library = dlopen("lib_static.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  long (*use)(int, int) = NULL;
  *(void**)&use = dlsym(library, "lib_static_use");
  int right = use(kTimes, 0) == 4 * kTimes;
  right &= use(kTimes, leave_locked) == 8 * kTimes;
  right &= dlclose(library) == 0;
  right &= dlopen("lib_static.so", RTLD_NOW | RTLD_NOLOAD) == NULL;
  return right;
}

int main(void) {
  int right = 0;
  for (int i = 0; i < kRounds; ++i) right += use_once(i % 3 == 2);
  CHECK_EQ("opened, used and closed", right, kRounds);
  CHECK_TRUE("the program's own mutex", tally(&mutex, 4, 2000));
  return done();
}
