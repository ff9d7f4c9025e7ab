// Every ordinary kind of mutex a program can make, as a table that the mutex programs walk.
#ifndef RELOCK_TESTS_CONFORMANCE_MUTEX_KINDS_H
#define RELOCK_TESTS_CONFORMANCE_MUTEX_KINDS_H

#include "check.h"

#include <sys/syscall.h>

enum { kNoAttr = -1, kDefaultAttr = -2, kStatic = -3 };

// What the type does when its owner locks it again or a stranger unlocks it.
typedef enum { kPlain, kRecursive, kErrorcheck } Behaviour;

typedef struct {
  const char* name;
  int type;  // for pthread_mutexattr_settype, or one of the k...Attr / kStatic above
  int kind;  // what __kind holds afterwards
  Behaviour behaviour;
} MutexKind;

static const MutexKind kMutexKinds[] CHECK_UNUSED = {
    {"static normal", kStatic, PTHREAD_MUTEX_NORMAL, kPlain},
    {"static recursive", kStatic, PTHREAD_MUTEX_RECURSIVE, kRecursive},
    {"static errorcheck", kStatic, PTHREAD_MUTEX_ERRORCHECK, kErrorcheck},
    {"static adaptive", kStatic, PTHREAD_MUTEX_ADAPTIVE_NP, kPlain},
    {"init NULL", kNoAttr, PTHREAD_MUTEX_DEFAULT, kPlain},
    {"init default attr", kDefaultAttr, PTHREAD_MUTEX_DEFAULT, kPlain},
    {"init normal", PTHREAD_MUTEX_NORMAL, 0x200, kPlain},
    {"init recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_RECURSIVE, kRecursive},
    {"init errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ERRORCHECK, kErrorcheck},
    {"init adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ADAPTIVE_NP, kPlain},
};

enum { kMutexKindCount = sizeof kMutexKinds / sizeof kMutexKinds[0] };

static CHECK_UNUSED void make_static_mutex(pthread_mutex_t* mutex, int kind) {
  static const pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
  static const pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  static const pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  static const pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
  switch (kind) {
    case PTHREAD_MUTEX_RECURSIVE:
      *mutex = recursive;
      break;
    case PTHREAD_MUTEX_ERRORCHECK:
      *mutex = errorcheck;
      break;
    case PTHREAD_MUTEX_ADAPTIVE_NP:
      *mutex = adaptive;
      break;
    default:
      *mutex = normal;
      break;
  }
}

static CHECK_UNUSED void make_mutex(pthread_mutex_t* mutex, const MutexKind* kind) {
  if (kind->type == kStatic) {
    make_static_mutex(mutex, kind->kind);
    return;
  }
  // Init must not depend on what the memory held before.
  memset(mutex, 0x5a, sizeof *mutex);
  if (kind->type == kNoAttr) {
    MUST(pthread_mutex_init(mutex, NULL) == 0);
    return;
  }
  pthread_mutexattr_t attr;
  MUST(pthread_mutexattr_init(&attr) == 0);
  if (kind->type != kDefaultAttr) MUST(pthread_mutexattr_settype(&attr, kind->type) == 0);
  MUST(pthread_mutex_init(mutex, &attr) == 0);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
}

static CHECK_UNUSED int own_tid(void) { return (int)syscall(SYS_gettid); }

// One line with the four fields that debuggers and condition variables read. The owner's number
// differs from run to run, so it is printed as a word.
static CHECK_UNUSED void check_fields(const char* name, const pthread_mutex_t* mutex, int owned,
                                      unsigned count, unsigned users, int kind) {
  int owner = mutex->__data.__owner;
  const char* word = owner == 0 ? "nobody" : owner == own_tid() ? "self" : "another";
  printf("%s: owner %s, count %u, nusers %u, kind 0x%x\n", name, word, mutex->__data.__count,
         mutex->__data.__nusers, (unsigned)DOCUMENTED_KIND(mutex->__data.__kind));
  fflush(stdout);
  if (owner == (owned ? own_tid() : 0) && mutex->__data.__count == count &&
      mutex->__data.__nusers == users && DOCUMENTED_KIND(mutex->__data.__kind) == kind) {
    return;
  }
  check_fail();
  fprintf(stderr, "%s: expected owner %s, count %u, nusers %u, kind 0x%x\n", name,
          owned ? "self" : "nobody", count, users, (unsigned)kind);
}

#endif
