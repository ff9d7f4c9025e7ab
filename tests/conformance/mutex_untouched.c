// Robust and process-shared mutexes belong to other processes and to the kernel too: their spare
// bytes stay as the C library leaves them, however they are contended for.
#include <sys/mman.h>

#include "check.h"
#include "hammer.h"

static void contend(const char* name, int robust, int shared) {
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(page != MAP_FAILED);
  pthread_mutex_t* mutex = page;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, shared);
  pthread_mutexattr_setrobust(&attributes, robust);
  pthread_mutex_init(mutex, &attributes);
  CHECK_TRUE(label(name, "counted right"), tally(mutex, 6, 20000));
  pthread_mutex_lock(mutex);
  struct timespec past = {0, 0};
  CHECK_EQ(label(name, "trylock"), pthread_mutex_trylock(mutex), EBUSY);
  CHECK_EQ(label(name, "timed"), pthread_mutex_timedlock(mutex, &past), ETIMEDOUT);
  pthread_mutex_unlock(mutex);
  // Bytes 24 to 39 hold the robust list's links while a robust mutex is locked, else nothing.
  static const char kNothing[16];
  CHECK_TRUE(label(name, "spare bytes are clear"),
             memcmp((const char*)mutex + 24, kNothing, sizeof kNothing) == 0);
  munmap(page, 4096);
}

int main(void) {
  contend("shared", PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_SHARED);
  contend("robust", PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE);
  contend("robust and shared", PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_SHARED);
  return done();
}
