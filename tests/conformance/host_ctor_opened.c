// A library that locks and runs threads in its constructor is opened while the loader's own lock is
// held, closed, and opened again; meanwhile other threads contend.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long open_work_close(void) {
  void* library = dlopen("lib_ctor.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return -1;
  }
  long (*work)(void) = NULL;
  *(void**)&work = dlsym(library, "lib_ctor_work");
  long count = work != NULL ? work() : -2;
  return dlclose(library) == 0 ? count : -3;
}

static void* open_on_thread(void* unused) {
  (void)unused;
  return (void*)open_work_close();
}

int main(void) {
  struct Hammer hammer;
  CHECK_EQ("before any other thread exists", open_work_close(), 1200);
  hammer_start(&hammer, &mutex, 3);
  int good = 0;
  for (int i = 0; i < 10; ++i) good += open_work_close() == 1200;
  CHECK_EQ("opened and closed", good, 10);
  CHECK_EQ("on another thread", (long)on_other_thread(open_on_thread, NULL), 1200);
  CHECK_TRUE("hammering threads lost nothing", hammer_stop(&hammer));
  return done();
}
