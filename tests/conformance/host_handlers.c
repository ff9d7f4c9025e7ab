// Signal dispositions, masks and the alternate stack are the program's: nobody sets them before
// main, nobody changes them later, and a handler for a fault may jump out of it.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"
#include "hammer.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf recovery;
static volatile sig_atomic_t user_signals;
static volatile sig_atomic_t faults;
static void* forbidden_page;

static void on_user_signal(int signal) {
  (void)signal;
  user_signals = user_signals + 1;
}

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  faults = faults + (info->si_addr == forbidden_page);
  siglongjmp(recovery, 1);
}

static int count_not_default(void) {
  int count = 0;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) continue;
    count += action.sa_handler != SIG_DFL;
  }
  return count;
}

static int count_blocked(void) {
  sigset_t mask;
  int count = 0;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  for (int number = 1; number <= SIGRTMAX; ++number) count += sigismember(&mask, number) == 1;
  return count;
}

static void set_handlers(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  memset(&action, 0, sizeof action);
  action.sa_handler = on_user_signal;
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGRTMIN, &action, NULL);
  sigaction(SIGRTMAX, &action, NULL);
}

static int handlers_are_mine(void) {
  static const int kUser[] = {SIGUSR1, SIGUSR2, SIGPROF};
  struct sigaction action;
  int mine = 0;
  for (int i = 0; i < 3; ++i) {
    sigaction(kUser[i], NULL, &action);
    mine += action.sa_handler == on_user_signal;
  }
  sigaction(SIGRTMIN, NULL, &action);
  mine += action.sa_handler == on_user_signal;
  sigaction(SIGSEGV, NULL, &action);
  mine += action.sa_sigaction == on_fault && (action.sa_flags & SA_SIGINFO) != 0;
  return mine;
}

// The fault happens in a critical section; the program recovers and unlocks.
static int recover_from_faults(int times) {
  volatile int recovered = 0;
  for (volatile int i = 0; i < times; ++i) {
    pthread_mutex_lock(&mutex);
    if (sigsetjmp(recovery, 1) == 0) {
      *(volatile int*)forbidden_page = 1;
    } else {
      recovered = recovered + 1;
    }
    pthread_mutex_unlock(&mutex);
  }
  return recovered;
}

int main(void) {
  REPORT("dispositions that are not the default", count_not_default());
  REPORT("signals that are blocked", count_blocked());
  stack_t stack;
  CHECK_TRUE("no alternate stack", sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_DISABLE);
  CHECK_TRUE("contended without handlers", tally(&mutex, 4, 2000));
  REPORT("dispositions that are not the default", count_not_default());
  forbidden_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  set_handlers();
  struct Hammer hammer;
  hammer_start(&hammer, &mutex, 4);
  CHECK_EQ("recovered from faults", recover_from_faults(100), 100);
  CHECK_EQ("faults seen", faults, 100);
  for (int i = 0; i < 50; ++i) raise(i % 2 ? SIGUSR1 : SIGUSR2);
  CHECK_EQ("user signals seen", user_signals, 50);
  CHECK_TRUE("hammering threads lost nothing", hammer_stop(&hammer));
  CHECK_EQ("handlers are still the program's", handlers_are_mine(), 5);
  CHECK_TRUE("still no alternate stack",
             sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_DISABLE);
  REPORT("signals that are blocked", count_blocked());
  return done();
}
