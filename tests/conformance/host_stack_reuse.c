// Lock objects of every type in one place of the stack, one after the other, thousands of them.
// Most are never destroyed; each is contended by two threads; no state of one may reach the next.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"

enum { kObjects = 2400, kTimes = 4 };
enum Type {
  kStatic,
  kStaticRecursive,
  kStaticChecking,
  kNormal,
  kRecursive,
  kChecking,
  kAdaptive,
  kRobust,
  kInherit,
  kShared,
  kSpin,
  kCond,
  kTypes
};

union Object {
  pthread_mutex_t mutex;
  pthread_spinlock_t spin;
  struct {
    pthread_cond_t cond;
    pthread_mutex_t mutex;
  } pair;
  unsigned char bytes[128];
};

struct Task {
  union Object* object;
  enum Type type;
  int turn;
  long count;
};

static struct Task* task;  // handed over with release and acquire
static int over;           // atomic

static void init_attributes(pthread_mutex_t* mutex, int type, int robust, int protocol,
                            int shared) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutexattr_setrobust(&attributes, robust);
  pthread_mutexattr_setprotocol(&attributes, protocol);
  pthread_mutexattr_setpshared(&attributes, shared);
  MUST(pthread_mutex_init(mutex, &attributes) == 0);
}

static void init_object(union Object* object, enum Type type) {
  static const pthread_mutex_t kStatics[] = {PTHREAD_MUTEX_INITIALIZER,
                                             PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                             PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
  static const int kPosixTypes[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
  const int stalled = PTHREAD_MUTEX_STALLED;
  const int none = PTHREAD_PRIO_NONE;
  const int mine = PTHREAD_PROCESS_PRIVATE;
  const int normal = PTHREAD_MUTEX_NORMAL;
  pthread_mutex_t* mutex = &object->mutex;
  switch (type) {
    case kStatic:
    case kStaticRecursive:
    case kStaticChecking:
      *mutex = kStatics[type];
      break;
    case kRobust:
      init_attributes(mutex, normal, PTHREAD_MUTEX_ROBUST, none, mine);
      break;
    case kInherit:
      init_attributes(mutex, normal, stalled, PTHREAD_PRIO_INHERIT, mine);
      break;
    case kShared:
      init_attributes(mutex, normal, stalled, none, PTHREAD_PROCESS_SHARED);
      break;
    case kSpin:
      pthread_spin_init(&object->spin, PTHREAD_PROCESS_PRIVATE);
      break;
    case kCond:
      pthread_cond_init(&object->pair.cond, NULL);
      pthread_mutex_init(&object->pair.mutex, NULL);
      break;
    default:
      init_attributes(mutex, kPosixTypes[type - kNormal], stalled, none, mine);
      break;
  }
}

static void use_object(struct Task* mine, int me) {
  union Object* object = mine->object;
  for (int i = 0; i < kTimes; ++i) {
    if (mine->type == kSpin) {
      pthread_spin_lock(&object->spin);
      ++mine->count;
      pthread_spin_unlock(&object->spin);
    } else if (mine->type == kCond) {
      pthread_mutex_lock(&object->pair.mutex);
      while (mine->turn != me) pthread_cond_wait(&object->pair.cond, &object->pair.mutex);
      mine->turn = 1 - me;
      ++mine->count;
      pthread_cond_signal(&object->pair.cond);
      pthread_mutex_unlock(&object->pair.mutex);
    } else {
      pthread_mutex_lock(&object->mutex);
      ++mine->count;
      pthread_mutex_unlock(&object->mutex);
    }
  }
}

static void* help(void* unused) {
  while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
    struct Task* mine = __atomic_load_n(&task, __ATOMIC_ACQUIRE);
    if (mine == NULL) {
      sched_yield();
      continue;
    }
    use_object(mine, 1);
    __atomic_store_n(&task, NULL, __ATOMIC_RELEASE);
  }
  return unused;
}

// Gives back how many of the three things that must be right were.
static __attribute__((noinline)) int one_object(int number) {
  union Object object;
  memset(&object, number & 0xff, sizeof object);
  struct Task mine = {&object, (enum Type)(number * 7 % kTypes), 0, 0};
  init_object(&object, mine.type);
  __atomic_store_n(&task, &mine, __ATOMIC_RELEASE);
  use_object(&mine, 0);
  while (__atomic_load_n(&task, __ATOMIC_ACQUIRE) != NULL) sched_yield();
  int right = mine.count == 2 * kTimes;
  if (mine.type == kSpin) return right + 2 * (pthread_spin_trylock(&object.spin) == 0);
  pthread_mutex_t* mutex = mine.type == kCond ? &object.pair.mutex : &object.mutex;
  right += pthread_mutex_trylock(mutex) == 0;
  // A few leave locked memory behind, a few are destroyed.
  if (number % 5 == 0 && mine.type != kRobust) return right + 1;
  right += pthread_mutex_unlock(mutex) == 0;
  if (number % 5 == 1) pthread_mutex_destroy(mutex);
  return right;
}

int main(void) {
  pthread_t helper;
  pthread_create(&helper, NULL, help, NULL);
  int right = 0;
  for (int i = 0; i < kObjects; ++i) right += one_object(i);
  __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
  pthread_join(helper, NULL);
  CHECK_EQ("what was right", right, 3 * kObjects);
  return done();
}
