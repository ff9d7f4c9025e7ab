// A mutex that is taken in the prepare handler of fork and released in parent and child, while four
// other threads are queued for it. Those threads do not exist in the child, which must nevertheless
// be able to use the mutex, to start threads that contend for it, and to fork again.
// conformance: any-lock
#include "check.h"
#include "hammer.h"

enum { kThreads = 4, kRounds = 10 };

static pthread_mutex_t mutexes[] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t* hot = &mutexes[0];
static struct Hammer hammer;
static int handler_errors;

static void prepare(void) {
  for (int i = 0; i < 3; ++i) handler_errors += pthread_mutex_lock(&mutexes[i]) != 0;
  struct timespec pause_time = {0, 30000};  // time for the others to queue up
  nanosleep(&pause_time, NULL);
}

static void release(void) {
  for (int i = 2; i >= 0; --i) handler_errors += pthread_mutex_unlock(&mutexes[i]) != 0;
}

static int usable(void) {
  int good = handler_errors == 0;
  good &= hammer.first == hammer.second;
  for (int i = 0; i < 3; ++i) {
    good &= pthread_mutex_lock(&mutexes[i]) == 0;
    good &= pthread_mutex_trylock(&mutexes[i]) == EBUSY;
    good &= pthread_mutex_unlock(&mutexes[i]) == 0;
    good &= pthread_mutex_trylock(&mutexes[i]) == 0;
    good &= pthread_mutex_unlock(&mutexes[i]) == 0;
  }
  return good;
}

static int grandchild(void) { return usable() && tally(hot, 2, 50) ? 0 : 1; }

static int child_work(void) {
  if (!usable()) return 1;
  if (!tally(hot, 3, 100)) return 2;
  pid_t again = fork();
  if (again == 0) _exit(grandchild());
  if (child_status(again) != 0) return 3;
  if (!tally(hot, 2, 50)) return 4;
  for (int i = 0; i < 3; ++i) {
    if (pthread_mutex_destroy(&mutexes[i]) != 0) {
      // The threads that were queued in the parent do not count as users.
      return 5;
    }
  }
  return 0;
}

static void rounds_with(const char* name, pthread_mutex_t* mutex) {
  hot = mutex;
  hammer_start(&hammer, hot, kThreads);
  int failed = 0;
  for (int i = 0; i < kRounds; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(child_work());
    failed += child_status(child) != 0;
  }
  CHECK_EQ(name, failed, 0);
  CHECK_TRUE("the parent's threads went on", hammer_stop(&hammer));
}

int main(void) {
  MUST(pthread_atfork(prepare, release, release) == 0);
  rounds_with("children that failed, normal", &mutexes[0]);
  rounds_with("children that failed, adaptive", &mutexes[1]);
  CHECK_EQ("errors in the parent's handlers", handler_errors, 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&mutexes[0]), 0);
  return done();
}
