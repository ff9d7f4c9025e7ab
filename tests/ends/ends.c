// A program that waits for a lock a known number of times and then ends, or leaves its surroundings
// first:  ends MODE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t books_lock = PTHREAD_MUTEX_INITIALIZER;

static void sleep_us(long us) {
  struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

// ---- waits that surely take place --------------------------------------------------------------

static int wanted, held, taken;  // the last two atomic

// A waiter leaves its trace in the word before it sleeps, whichever lock serves.
static void await_waiter(int alone) {
  while (__atomic_load_n(&books_lock.__data.__lock, __ATOMIC_RELAXED) == alone) sleep_us(50);
  sleep_us(300);
}
__attribute__((noinline)) void write_books(void) {
  for (int i = 0; i < wanted; ++i) {
    pthread_mutex_lock(&books_lock);
    const int alone = __atomic_load_n(&books_lock.__data.__lock, __ATOMIC_RELAXED);
    __atomic_store_n(&held, i + 1, __ATOMIC_RELEASE);
    await_waiter(alone);
    pthread_mutex_unlock(&books_lock);
    while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) <= i) sleep_us(20);
  }
}
__attribute__((noinline)) void read_books(void) {
  for (int i = 0; i < wanted; ++i) {
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) <= i) sleep_us(20);
    pthread_mutex_lock(&books_lock);
    pthread_mutex_unlock(&books_lock);
    __atomic_store_n(&taken, i + 1, __ATOMIC_RELEASE);
  }
}
static void* writer(void* unused) {
  write_books();
  return unused;
}
static pthread_t start_writer(int times) {
  wanted = times;
  held = taken = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, writer, NULL) != 0) _exit(98);
  return thread;
}
static void contend(int times) {
  const pthread_t thread = start_writer(times);
  read_books();
  pthread_join(thread, NULL);
}

// ---- ends --------------------------------------------------------------------------------------

static void end_by_return(void) {}
static void end_by_exit(void) { exit(0); }
static void end_by_exit_now(void) { _exit(0); }
static void end_by_quick_exit(void) { quick_exit(0); }
static void end_by_abort(void) { abort(); }
static int* volatile nowhere;
static void end_by_crash(void) { *nowhere = 1; }
static void end_by_kill(void) { raise(SIGKILL); }
static void* exits(void* unused) {
  exit(0);
  return unused;
}
static void end_by_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, exits, NULL);
  pause();
}
// Killed while one thread holds the lock and another waits.
static void* waits_for_ever(void* unused) {
  pthread_mutex_lock(&books_lock);
  return unused;
}
static void end_in_a_wait(void) {
  pthread_mutex_lock(&books_lock);
  pthread_t thread;
  pthread_create(&thread, NULL, waits_for_ever, NULL);
  sleep_us(30000);
  raise(SIGKILL);
}

// ---- what comes before -------------------------------------------------------------------------

static void close_everything(void) {
  for (int i = 3; i < 1024; ++i) close(i);
}
static void await_child(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) _exit(97);
}
static void fork_a_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    contend(4);
    _exit(0);
  }
  await_child(child);
}
// As daemons do: a child that shuts itself in and then waits for the first time.
static void shut_in(const char* folder) {
  if (chroot(folder) != 0 || chdir("/") != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(96);
}
static void run_library(void) {
  void* library = dlopen(getenv("ENDS_LIBRARY"), RTLD_NOW);
  if (library == NULL) _exit(95);
  void (*meet)(void (*)(int), int) =
      (void (*)(void (*)(int), int))dlsym(library, "meet_in_library");
  meet(contend, 10);
  dlclose(library);
}

enum { kMostCalls = 32 };
static void enter_filter(const int* allowed, size_t count, int by_syscall) {
  struct sock_filter filter[kMostCalls + 4] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  for (size_t i = 0; i < count; ++i) {
    const struct sock_filter jump =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(count - i), 0);
    filter[i + 1] = jump;
  }
  const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[count + 1] = kill;
  filter[count + 2] = allow;
  struct sock_fprog program = {(unsigned short)(count + 3), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(94);
  const long failed = by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                                 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  if (failed != 0) _exit(93);
}
// What glibc's locks, threads and processes need, rt_sigprocmask and mmap among it.
static const int kUsual[] = {SYS_futex,
                             SYS_exit,
                             SYS_exit_group,
                             SYS_mmap,
                             SYS_munmap,
                             SYS_mprotect,
                             SYS_rt_sigprocmask,
                             SYS_clone,
                             SYS_clone3,
                             SYS_rt_sigaction,
                             SYS_getrandom,
                             SYS_rseq,
                             SYS_set_robust_list,
                             SYS_madvise,
                             SYS_brk,
                             SYS_tgkill,
                             SYS_clock_nanosleep,
                             SYS_wait4};
#define COUNT(array) (sizeof array / sizeof *array)
static void filtered(int by_syscall) {
  enter_filter(kUsual, COUNT(kUsual), by_syscall);
  contend(10);
  _exit(0);
}
static void filtered_by_prctl(void) { filtered(0); }
static void filtered_by_syscall(void) { filtered(1); }
static void filtered_to_the_end(void) {
  enter_filter(kUsual, COUNT(kUsual), 0);
  contend(10);
}
// The child can have no file, and must not try.
static void filtered_parent(void) {
  enter_filter(kUsual, COUNT(kUsual), 0);
  fork_a_child();
  contend(10);
}
// Not even the signal mask may be touched.
static const int kLeast[] = {SYS_futex, SYS_exit_group, SYS_clock_nanosleep};
static void filtered_tightly(void) {
  start_writer(10);
  enter_filter(kLeast, COUNT(kLeast), 0);
  read_books();
  _exit(0);
}
static void shut_in_child(void) {
  const char* folder = getenv("ENDS_EMPTY");
  const pid_t child = fork();
  if (child == 0) {
    shut_in(folder);
    contend(10);
    _exit(0);
  }
  await_child(child);
  _exit(0);
}
static void contend_ten(void) { contend(10); }
static void small_files(void) {
  const struct rlimit limit = {4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  contend(10);
}
// Children that end as servers end theirs, after the least that is recorded: a failed trylock.
static void many_children(void) {
  pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&taken);
  for (int left = 20; left > 0; --left) {
    const pid_t child = fork();
    if (child == 0) {
      if (pthread_mutex_trylock(&taken) != EBUSY) _exit(92);
      if (left % 4 == 0) syscall(SYS_exit_group, 0);
      if (left % 4 == 1) _Exit(0);
      _exit(0);
    }
    await_child(child);
  }
  pthread_mutex_unlock(&taken);
}
// A child of vfork lives in its parent's memory, and must not close its parent's profile.
static void vforking(void) {
  contend(5);
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  await_child(child);
  contend(5);
}
static void idle_threads(void) {
  pthread_t thread = start_writer(0);
  pthread_join(thread, NULL);
}

static const struct Mode {
  const char* name;
  void (*before)(void);
  void (*end)(void);
} kModes[] = {{"return", contend_ten, end_by_return},
              {"exit", contend_ten, end_by_exit},
              {"_exit", contend_ten, end_by_exit_now},
              {"quick_exit", contend_ten, end_by_quick_exit},
              {"abort", contend_ten, end_by_abort},
              {"crash", contend_ten, end_by_crash},
              {"kill", contend_ten, end_by_kill},
              {"thread", contend_ten, end_by_thread},
              {"waiting", contend_ten, end_in_a_wait},
              {"dlclose", run_library, end_by_return},
              {"chroot", shut_in_child, end_by_return},
              {"prctl", filtered_by_prctl, end_by_return},
              {"seccomp", filtered_by_syscall, end_by_return},
              {"filter-exit", filtered_to_the_end, end_by_return},
              {"filter-fork", filtered_parent, end_by_return},
              {"tight", filtered_tightly, end_by_return},
              {"small", small_files, end_by_return},
              {"children", many_children, end_by_return},
              {"vfork", vforking, end_by_return},
              {"idle", idle_threads, end_by_return},
              {"idle-_exit", idle_threads, end_by_exit_now}};

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "close") == 0) {
    for (int left = argc; left > 0; --left) {  // twice, from one place: one pair of stacks
      close_everything();
      contend(5);
    }
    return 0;
  }
  if (strcmp(argv[1], "fork") == 0) {
    contend(10);
    fork_a_child();
    return 0;
  }
  if (strcmp(argv[1], "exec") == 0) {
    contend(10);
    execl("/proc/self/exe", "again", "return", NULL);
    return 92;
  }
  for (unsigned i = 0; i < COUNT(kModes); ++i) {
    if (strcmp(argv[1], kModes[i].name) != 0) continue;
    kModes[i].before();
    kModes[i].end();
    return 0;
  }
  return 2;
}
