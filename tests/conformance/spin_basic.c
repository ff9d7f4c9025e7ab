// Spinlocks: results of every call, values that were never initialised by a call, and objects that
// several threads or processes share.
#include "check.h"

#include <sys/mman.h>

// glibc's own unlocked value: 1 on x86, whose unlock stores it; 0 elsewhere.
#if defined(__x86_64__) || defined(__i386__)
enum { kFree = 1, kTaken = 0 };
#else
enum { kFree = 0, kTaken = 1 };
#endif

typedef union {
  pthread_spinlock_t lock;
  int value;
} Spin;

static Spin spin;

static void* trylock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_spin_trylock(&spin.lock);
}

static void* unlock_here(void* unused) {
  (void)unused;
  return (void*)(long)pthread_spin_unlock(&spin.lock);
}

static void use(const char* name) {
  CHECK_CALL(label(name, "lock"), pthread_spin_lock(&spin.lock), 0);
  CHECK_CALL(label(name, "owner trylock"), pthread_spin_trylock(&spin.lock), EBUSY);
  CHECK_EQ(label(name, "trylock by another"), (long)on_other_thread(trylock_here, NULL), EBUSY);
  CHECK_CALL(label(name, "unlock"), pthread_spin_unlock(&spin.lock), 0);
  CHECK_CALL(label(name, "trylock"), pthread_spin_trylock(&spin.lock), 0);
  CHECK_EQ(label(name, "unlock by another"), (long)on_other_thread(unlock_here, NULL), 0);
  CHECK_EQ(label(name, "trylock by another"), (long)on_other_thread(trylock_here, NULL), 0);
  CHECK_CALL(label(name, "trylock"), pthread_spin_trylock(&spin.lock), EBUSY);
  CHECK_CALL(label(name, "unlock for it"), pthread_spin_unlock(&spin.lock), 0);
  // Unlocking an unlocked one changes nothing.
  CHECK_CALL(label(name, "unlock unlocked"), pthread_spin_unlock(&spin.lock), 0);
  CHECK_CALL(label(name, "unlock unlocked"), pthread_spin_unlock(&spin.lock), 0);
  CHECK_CALL(label(name, "lock"), pthread_spin_lock(&spin.lock), 0);
  CHECK_CALL(label(name, "trylock"), pthread_spin_trylock(&spin.lock), EBUSY);
  CHECK_CALL(label(name, "unlock"), pthread_spin_unlock(&spin.lock), 0);
}

static void initialised(const char* name, int pshared) {
  spin.value = 0x5a5a5a5a;
  CHECK_CALL(label(name, "init"), pthread_spin_init(&spin.lock, pshared), 0);
  use(name);
  CHECK_CALL(label(name, "lock"), pthread_spin_lock(&spin.lock), 0);
  CHECK_CALL(label(name, "destroy locked"), pthread_spin_destroy(&spin.lock), 0);
  CHECK_CALL(label(name, "init again"), pthread_spin_init(&spin.lock, pshared), 0);
  CHECK_CALL(label(name, "lock"), pthread_spin_lock(&spin.lock), 0);
  CHECK_CALL(label(name, "init over it"), pthread_spin_init(&spin.lock, pshared), 0);
  CHECK_CALL(label(name, "trylock"), pthread_spin_trylock(&spin.lock), 0);
  CHECK_CALL(label(name, "unlock"), pthread_spin_unlock(&spin.lock), 0);
  CHECK_CALL(label(name, "destroy"), pthread_spin_destroy(&spin.lock), 0);
  CHECK_CALL(label(name, "init anew"), pthread_spin_init(&spin.lock, pshared), 0);
  use(name);
  CHECK_CALL(label(name, "destroy"), pthread_spin_destroy(&spin.lock), 0);
}

// Programs that know glibc write its values themselves; then they must find them as well.
static void by_hand(void) {
  spin.value = kFree;
  use("free by hand");
  CHECK_EQ("free by hand: value", spin.value, kFree);
  CHECK_CALL("free by hand: lock", pthread_spin_lock(&spin.lock), 0);
  CHECK_EQ("free by hand: value", spin.value, kTaken);
  CHECK_CALL("free by hand: unlock", pthread_spin_unlock(&spin.lock), 0);
  CHECK_EQ("free by hand: value", spin.value, kFree);
  spin.value = kTaken;
  CHECK_CALL("taken by hand: trylock", pthread_spin_trylock(&spin.lock), EBUSY);
  CHECK_CALL("taken by hand: unlock", pthread_spin_unlock(&spin.lock), 0);
  use("taken by hand");
  CHECK_CALL("taken by hand: destroy", pthread_spin_destroy(&spin.lock), 0);
#if defined(__x86_64__)
  spin.value = -1;  // what two waiters of glibc's leave in the word
  CHECK_CALL("taken with waiters: trylock", pthread_spin_trylock(&spin.lock), EBUSY);
  CHECK_CALL("taken with waiters: unlock", pthread_spin_unlock(&spin.lock), 0);
  use("taken with waiters");
#endif
}

static int stop_waiting;

static void* lock_and_tell(void* unused) {
  (void)unused;
  int result = pthread_spin_lock(&spin.lock);
  set_flag(&stop_waiting);
  result |= pthread_spin_unlock(&spin.lock);
  return (void*)(long)result;
}

// A waiter gets it when it falls free, and not before.
static void waits(const char* name) {
  pthread_t thread;
  void* result = (void*)-1L;
  stop_waiting = 0;
  CHECK_CALL(label(name, "lock"), pthread_spin_lock(&spin.lock), 0);
  MUST(pthread_create(&thread, NULL, lock_and_tell, NULL) == 0);
  sleep_ms(5);
  CHECK_EQ(label(name, "waiter inside"), __atomic_load_n(&stop_waiting, __ATOMIC_ACQUIRE), 0);
  CHECK_CALL(label(name, "unlock"), pthread_spin_unlock(&spin.lock), 0);
  MUST(pthread_join(thread, &result) == 0);
  CHECK_EQ(label(name, "waiter"), (long)result, 0);
  CHECK_EQ(label(name, "waiter was inside"), stop_waiting, 1);
}

int main(void) {
  initialised("private", PTHREAD_PROCESS_PRIVATE);
  initialised("shared", PTHREAD_PROCESS_SHARED);
  initialised("odd pshared value", 77);
  by_hand();
  MUST(pthread_spin_init(&spin.lock, PTHREAD_PROCESS_PRIVATE) == 0);
  waits("private");
  MUST(pthread_spin_init(&spin.lock, PTHREAD_PROCESS_SHARED) == 0);
  waits("shared");
  spin.value = kFree;
  waits("by hand");
  return done();
}
