// Attribute objects: what each setting makes of a mutex, one attribute used for many mutexes, and
// combinations that glibc refuses.
// conformance: any-lock
#include "mutex_kinds.h"

static const struct {
  const char* name;
  int value;
} kTypes[] = {{"normal", PTHREAD_MUTEX_NORMAL},
              {"recursive", PTHREAD_MUTEX_RECURSIVE},
              {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
              {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP}},
  kProtocols[] = {{"none", PTHREAD_PRIO_NONE},
                  {"inherit", PTHREAD_PRIO_INHERIT},
                  {"protect", PTHREAD_PRIO_PROTECT}};

// Every combination: the result of init, the kind, and that it locks and unlocks as it should.
static void combination(int type, int protocol, int pshared, int robust) {
  pthread_mutexattr_t attr;
  pthread_mutex_t mutex;
  char name[96];
  snprintf(name, sizeof name, "%s, %s%s%s:", kTypes[type].name, kProtocols[protocol].name,
           pshared ? ", shared" : "", robust ? ", robust" : "");
  MUST(pthread_mutexattr_init(&attr) == 0);
  MUST(pthread_mutexattr_settype(&attr, kTypes[type].value) == 0);
  MUST(pthread_mutexattr_setprotocol(&attr, kProtocols[protocol].value) == 0);
  MUST(pthread_mutexattr_setpshared(&attr, pshared) == 0);
  MUST(pthread_mutexattr_setrobust(&attr, robust) == 0);
  memset(&mutex, 0x5a, sizeof mutex);
  int result = pthread_mutex_init(&mutex, &attr);
  REPORT(label(name, "init"), result);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
  if (result != 0) return;
  REPORT(label(name, "kind"), DOCUMENTED_KIND(mutex.__data.__kind));
  // Locking a protected one needs a privilege that the run may lack.
  result = pthread_mutex_trylock(&mutex);
  REPORT(label(name, "trylock"), result);
  if (result == 0) {
    REPORT(label(name, "nusers"), mutex.__data.__nusers);
    REPORT(label(name, "trylock again"), pthread_mutex_trylock(&mutex));
    if (mutex.__data.__count == 2)
      CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&mutex), 0);
    CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&mutex), 0);
    REPORT(label(name, "nusers"), mutex.__data.__nusers);
  }
  CHECK_CALL(label(name, "destroy"), pthread_mutex_destroy(&mutex), 0);
}

// One attribute object, changed between inits: a mutex keeps what it was made with.
static void attribute_reuse(void) {
  enum { kCount = 5 };
  pthread_mutexattr_t attr;
  pthread_mutex_t mutexes[kCount];
  MUST(pthread_mutexattr_init(&attr) == 0);
  CHECK_CALL("reuse: init 0", pthread_mutex_init(&mutexes[0], &attr), 0);
  MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
  CHECK_CALL("reuse: init 1", pthread_mutex_init(&mutexes[1], &attr), 0);
  MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK) == 0);
  CHECK_CALL("reuse: init 2", pthread_mutex_init(&mutexes[2], &attr), 0);
  MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
  CHECK_CALL("reuse: init 3", pthread_mutex_init(&mutexes[3], &attr), 0);
  MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE) == 0);
  MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_DEFAULT) == 0);
  CHECK_CALL("reuse: init 4", pthread_mutex_init(&mutexes[4], &attr), 0);
  MUST(pthread_mutexattr_destroy(&attr) == 0);
  memset(&attr, 0xff, sizeof attr);
  static const int second[kCount] = {EBUSY, 0, EBUSY, EBUSY, EBUSY};
  for (int i = 0; i < kCount; i++) {
    char name[32];
    snprintf(name, sizeof name, "reuse %d:", i);
    REPORT(label(name, "kind"), DOCUMENTED_KIND(mutexes[i].__data.__kind));
    CHECK_CALL(label(name, "lock"), pthread_mutex_lock(&mutexes[i]), 0);
    CHECK_CALL(label(name, "trylock"), pthread_mutex_trylock(&mutexes[i]), second[i]);
    if (second[i] == 0) CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&mutexes[i]), 0);
    CHECK_CALL(label(name, "unlock"), pthread_mutex_unlock(&mutexes[i]), 0);
    REPORT(label(name, "unlock unlocked"), pthread_mutex_unlock(&mutexes[i]));
  }
}

// Shared and private mutexes side by side, held at the same time and let go in another order.
static void mixed(void) {
  pthread_mutexattr_t attr;
  pthread_mutex_t mutexes[6];
  for (int i = 0; i < 6; i++) {
    MUST(pthread_mutexattr_init(&attr) == 0);
    MUST(pthread_mutexattr_setpshared(&attr, i % 2) == 0);
    MUST(pthread_mutexattr_setrobust(&attr, i % 3 == 2) == 0);
    if (i >= 4) MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
    MUST(pthread_mutex_init(&mutexes[i], &attr) == 0);
    MUST(pthread_mutexattr_destroy(&attr) == 0);
  }
  static const int order[] = {3, 0, 5, 1, 4, 2};
  for (int i = 0; i < 6; i++) CHECK_CALL("mixed: lock", pthread_mutex_lock(&mutexes[i]), 0);
  for (int i = 0; i < 6; i++) {
    CHECK_CALL("mixed: trylock", pthread_mutex_trylock(&mutexes[i]), i >= 4 ? 0 : EBUSY);
    if (i >= 4) CHECK_CALL("mixed: unlock", pthread_mutex_unlock(&mutexes[i]), 0);
  }
  for (int i = 0; i < 6; i++) {
    CHECK_CALL("mixed: unlock", pthread_mutex_unlock(&mutexes[order[i]]), 0);
  }
  for (int i = 0; i < 6; i++) {
    REPORT("mixed: kind", DOCUMENTED_KIND(mutexes[i].__data.__kind));
    CHECK_CALL("mixed: destroy", pthread_mutex_destroy(&mutexes[i]), 0);
  }
}

static void getters(void) {
  pthread_mutexattr_t attr;
  int value = -1;
  MUST(pthread_mutexattr_init(&attr) == 0);
  CHECK_CALL("settype, unknown", pthread_mutexattr_settype(&attr, 9), EINVAL);
  CHECK_CALL("settype, negative", pthread_mutexattr_settype(&attr, -1), EINVAL);
  CHECK_CALL("setpshared, unknown", pthread_mutexattr_setpshared(&attr, 2), EINVAL);
  CHECK_CALL("setprotocol, unknown", pthread_mutexattr_setprotocol(&attr, 9), EINVAL);
  CHECK_CALL("setrobust, unknown", pthread_mutexattr_setrobust(&attr, 9), EINVAL);
  CHECK_CALL("gettype", pthread_mutexattr_gettype(&attr, &value), 0);
  CHECK_EQ("type", value, PTHREAD_MUTEX_DEFAULT);
  MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL) == 0);
  CHECK_CALL("gettype", pthread_mutexattr_gettype(&attr, &value), 0);
  CHECK_EQ("type", value, PTHREAD_MUTEX_NORMAL);
}

int main(void) {
  for (int type = 0; type < 4; type++) {
    for (int protocol = 0; protocol < 3; protocol++) {
      for (int flags = 0; flags < 4; flags++) {
        combination(type, protocol, flags & 1, flags >> 1);
      }
    }
  }
  attribute_reuse();
  mixed();
  getters();
  return done();
}
