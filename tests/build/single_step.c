// Prints the instructions that uncontended lock calls execute: single-steps through each call and
// writes "CALL MODULE OFFSET" for every instruction outside this program. Preload decides whose
// lock functions they are. A static reading of the code cannot tell which way its branches go or
// where its indirect jumps lead; this can.

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(__x86_64__)
int main(void) { return 77; }
#else

enum { kMaxSteps = 4096 };
static unsigned long steps[kMaxSteps];
static volatile int count;

// Calls function(argument) with the processor's trap flag set: a SIGTRAP after each instruction.
long step_through(void* function, void* argument);
__asm__(
    ".text\n.globl step_through\n.type step_through, @function\n"
    "step_through:\n"
    "  push %rbx\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  pushfq\n  orq $0x100, (%rsp)\n  popfq\n"
    "  call *%rax\n"
    "  pushfq\n  andq $~0x100, (%rsp)\n  popfq\n"
    "  pop %rbx\n"
    "  ret\n"
    ".size step_through, . - step_through\n");

static void note_step(int signal_number, siginfo_t* info, void* context) {
  (void)signal_number;
  (void)info;
  if (count < kMaxSteps) steps[count++] = ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
}

static void print_steps(const char* name) {
  for (int i = 0; i < count; i++) {
    Dl_info where;
    if (!dladdr((void*)steps[i], &where) || where.dli_fbase == NULL) continue;
    Dl_info here;
    if (dladdr((void*)&print_steps, &here) && here.dli_fbase == where.dli_fbase) continue;
    printf("%s %s %lx\n", name, where.dli_fname, steps[i] - (unsigned long)where.dli_fbase);
  }
}

static void trace(const char* name, void* object) {
  void* function = dlsym(RTLD_DEFAULT, name);
  count = 0;
  if (step_through(function, object) != 0) {
    fprintf(stderr, "%s failed\n", name);
    exit(1);
  }
  print_steps(name);
}

static void* stay_alive(void* unused) {
  for (;;) pause();
  return unused;
}

int main(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_spinlock_t spin;
  static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_t other;
  struct sigaction action = {.sa_sigaction = note_step, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  // With a second thread alive nothing may be skipped as needless in a single-threaded process.
  if (pthread_create(&other, NULL, stay_alive, NULL) != 0) return 1;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < 2; i++) {  // first calls may have set-up to do
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
  }
  trace("pthread_mutex_lock", &mutex);
  trace("pthread_mutex_unlock", &mutex);
  trace("pthread_spin_lock", (void*)&spin);
  trace("pthread_spin_unlock", (void*)&spin);
  trace("pthread_rwlock_rdlock", &rwlock);
  trace("pthread_rwlock_unlock", &rwlock);
  trace("pthread_rwlock_wrlock", &rwlock);
  fflush(stdout);
  _exit(0);
}
#endif
