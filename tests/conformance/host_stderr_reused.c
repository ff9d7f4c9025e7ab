// A program that closes all three standard descriptors gets their numbers for its own data. Nothing
// may be written there: no warning, no log.
// conformance: any-lock
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"
#include "hammer.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void) {
  int report = fcntl(1, F_DUPFD_CLOEXEC, 10);
  MUST(report >= 0);
  close(0);
  close(1);
  close(2);
  for (int i = 0; i < 3; ++i) {
    char path[] = "/tmp/stderr_reused.XXXXXX";
    MUST(mkstemp(path) == i);
    unlink(path);
    MUST(write(i, "data", 4) == 4);
  }
  void* library = dlopen("lib_deepbind.so", RTLD_NOW | RTLD_DEEPBIND);
  int counted = tally(&mutex, 8, 20000);
  long sizes = 0;
  for (int i = 0; i < 3; ++i) {
    struct stat info;
    MUST(fstat(i, &info) == 0);
    sizes += (long)info.st_size;
  }
  MUST(dup2(report, 1) == 1);
  CHECK_TRUE("the library was opened", library != NULL);
  CHECK_TRUE("counted right", counted);
  CHECK_EQ("bytes in the three files", sizes, 12);
  return done();
}
