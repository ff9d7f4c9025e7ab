// The same demand as in mutex_last_touch, without luck: unlock runs one instruction at a time, and
// after each of them another thread tries the lock. As soon as it gets it, it unlocks it and unmaps
// the memory; whatever unlock still does to the lock after its release ends in SIGSEGV.
//
// Stepping is the processor's trap flag and exists on x86 only; elsewhere nothing is stepped, and
// the lines stay the same.
#include "mutex_kinds.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef struct {
  pthread_mutex_t mutex;
  pthread_spinlock_t spin;
} Object;

static Object* object;
static int use_spin;
static sem_t look;
static sem_t looked;
static int gone;
static int failed;
static int finished;

static int try_object(void) {
  return use_spin ? pthread_spin_trylock(&object->spin) : pthread_mutex_trylock(&object->mutex);
}

static int unlock_object(void) {
  return use_spin ? pthread_spin_unlock(&object->spin) : pthread_mutex_unlock(&object->mutex);
}

static void wait_for(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

// Semaphores order all that the two threads share.
static void* try_when_asked(void* unused) {
  (void)unused;
  for (;;) {
    wait_for(&look);
    if (finished) return NULL;
    if (!gone && try_object() == 0) {
      failed |= unlock_object() != 0;
      failed |= munmap(object, sizeof *object) != 0;
      gone = 1;
    }
    sem_post(&looked);
  }
}

static void ask(void) {
  sem_post(&look);
  wait_for(&looked);
}

#if defined(__x86_64__)
enum { kTrapFlag = 0x100 };

static void after_each_instruction(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  int before = errno;
  ask();
  errno = before;
  // From here on any touch is fatal at full speed as well.
  if (gone) ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)kTrapFlag;
}

// The red zone below the stack pointer may hold something; the pushes go beyond it.
static void start_stepping(void) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
          : "cc", "memory");
}

static void stop_stepping(void) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), "
      "%%rsp" ::
          : "cc", "memory");
}

static void install_handler(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = after_each_instruction;
  action.sa_flags = SA_SIGINFO;
  MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}
#else
static void start_stepping(void) {}
static void stop_stepping(void) {}
static void install_handler(void) {}
#endif

static void* give_up(void* unused) {
  (void)unused;
  struct timespec soon = deadline_ms(CLOCK_MONOTONIC, 2);
  return (void*)(long)pthread_mutex_clocklock(&object->mutex, CLOCK_MONOTONIC, &soon);
}

// A waiter that gave up may have left a mark by which unlock looks for somebody to wake.
static void step_through(const char* name, int kind, int waiter_before) {
  pthread_t thread;
  object = mmap(NULL, sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(object != MAP_FAILED);
  make_static_mutex(&object->mutex, kind < 0 ? 0 : kind);
  MUST(pthread_spin_init(&object->spin, PTHREAD_PROCESS_PRIVATE) == 0);
  use_spin = kind < 0;
  gone = failed = finished = 0;
  MUST(pthread_create(&thread, NULL, try_when_asked, NULL) == 0);
  // The first calls go through the dynamic linker, which is not to be stepped through.
  MUST(try_object() == 0 && unlock_object() == 0 && try_object() == 0);
  if (waiter_before) MUST((long)on_other_thread(give_up, NULL) == ETIMEDOUT);
  start_stepping();
  int result = unlock_object();
  stop_stepping();
  ask();
  finished = 1;
  sem_post(&look);
  MUST(pthread_join(thread, NULL) == 0);
  CHECK_EQ(label(name, "unlock"), result, 0);
  CHECK_EQ(label(name, "the other unmapped it"), gone, 1);
  CHECK_EQ(label(name, "failed calls"), failed, 0);
}

int main(void) {
  MUST(sem_init(&look, 0, 0) == 0 && sem_init(&looked, 0, 0) == 0);
  install_handler();
  for (int waiter_before = 0; waiter_before < 2; waiter_before++) {
    const char* state = waiter_before ? "waited for:" : "alone:";
    step_through(label("normal", state), PTHREAD_MUTEX_TIMED_NP, waiter_before);
    step_through(label("recursive", state), PTHREAD_MUTEX_RECURSIVE_NP, waiter_before);
    step_through(label("errorcheck", state), PTHREAD_MUTEX_ERRORCHECK_NP, waiter_before);
    step_through(label("adaptive", state), PTHREAD_MUTEX_ADAPTIVE_NP, waiter_before);
  }
  step_through("spinlock:", -1, 0);
  return done();
}
