// A program in a sandbox: after a filter is in place, any system call beyond the few that glibc's
// own locks and threads need ends the process. gettid and getpid are among the forbidden ones.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"
#include "hammer.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

enum { kThreads = 6, kTimes = 2000, kTurns = 1500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t fresh[32];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long count;  // under the mutex, or under the spinlock in its phase
static int turn;    // under the mutex
static int errors;  // atomic

static const int kAllowed[] = {
    SYS_futex,        SYS_read,      SYS_write,           SYS_exit,        SYS_exit_group,
    SYS_mmap,         SYS_munmap,    SYS_mprotect,        SYS_brk,         SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_clone,     SYS_clone3,          SYS_rseq,        SYS_set_robust_list,
    SYS_madvise,      SYS_nanosleep, SYS_clock_nanosleep, SYS_sched_yield,
#ifdef SYS_futex_time64
    SYS_futex_time64,
#endif
};

static void enter_sandbox(void) {
  enum { kCalls = sizeof kAllowed / sizeof kAllowed[0] };
  struct sock_filter filter[kCalls + 3];
  const struct sock_filter load =
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[0] = load;
  for (int i = 0; i < kCalls; ++i) {
    const struct sock_filter jump =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kAllowed[i], (unsigned char)(kCalls - i), 0);
    filter[i + 1] = jump;
  }
  filter[kCalls + 1] = kill;
  filter[kCalls + 2] = allow;
  const struct sock_fprog program = {kCalls + 3, filter};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void expect(int result, int expected) {
  if (result != expected) __atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED);  // a mere count
}

static void* use_everything(void* unused) {
  (void)unused;
  for (int i = 0; i < kTimes; ++i) {
    struct timespec past = {1, 0};
    expect(pthread_mutex_lock(&mutex), 0);
    expect(pthread_mutex_lock(&recursive), 0);
    expect(pthread_mutex_lock(&recursive), 0);
    expect(pthread_mutex_timedlock(&mutex, &past), ETIMEDOUT);
    expect(pthread_mutex_trylock(&mutex), EBUSY);
    ++count;
    expect(pthread_mutex_unlock(&recursive), 0);
    expect(pthread_mutex_unlock(&recursive), 0);
    expect(pthread_mutex_unlock(&mutex), 0);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_lock(&fresh[i % 32]);
    pthread_mutex_unlock(&fresh[i % 32]);
  }
  return NULL;
}

static void* spin_and_count(void* unused) {
  (void)unused;
  for (int i = 0; i < kTimes; ++i) {
    expect(pthread_spin_lock(&spin), 0);
    ++count;
    expect(pthread_spin_unlock(&spin), 0);
  }
  return NULL;
}

static void* play(void* argument) {
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < kTurns; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn % 2 != me) {
      struct timespec far = deadline_ms(CLOCK_MONOTONIC, 600000);
      expect(i % 2 ? pthread_cond_wait(&cond, &mutex)
                   : pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &far),
             0);
    }
    ++turn;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void on_threads(int threads, void* (*work)(void*)) {
  pthread_t thread[kThreads];
  for (intptr_t i = 0; i < threads; ++i) {
    if (pthread_create(&thread[i], NULL, work, (void*)i) != 0) _exit(98);
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
}

static void* wait_once(void* tid) {
  __atomic_store_n((int*)tid, thread_id(), __ATOMIC_RELEASE);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

// A wait that surely takes place: whoever has things to prepare at the first one has done so then.
static void wait_before(void) {
  pthread_t thread;
  int tid = 0;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, wait_once, &tid);
  await_flag(&tid);
  await_sleep(tid);
  sleep_ms(5);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

int main(void) {
  for (int i = 0; i < 32; ++i) pthread_mutex_init(&fresh[i], NULL);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  // What a program does at its start, before it locks itself in.
  wait_before();
  CHECK_TRUE("contended before", tally(&mutex, 4, 3000));
  enter_sandbox();
  on_threads(kThreads, use_everything);
  CHECK_EQ("mutexes in the sandbox", count, kThreads * kTimes);
  count = 0;
  on_threads(4, spin_and_count);
  CHECK_EQ("spinlocks in the sandbox", count, 4 * kTimes);
  on_threads(2, play);
  CHECK_EQ("turns in the sandbox", turn, 2 * kTurns);
  struct timespec soon = deadline_ms(CLOCK_REALTIME, 5);
  pthread_mutex_lock(&mutex);
  CHECK_CALL("timedwait in the sandbox", pthread_cond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  CHECK_EQ("unexpected results", errors, 0);
  _exit(done());
}
