// Shows by which kind of lock each of its objects is served: a lock that hands over to its waiter,
// or one that its last owner may take again at once.
//
// main holds the lock, a waiter sleeps for it, main unlocks and locks again. With a first-in-
// first-out lock the waiter comes first. Meant for RELOCK_WAIT=park, and a RELOCK_PROMOTE_US long
// enough that no waiter asks for the lock because it has slept too long. All run on one CPU, the
// waiters with a policy by which a woken thread does not preempt: so main goes on after its unlock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t row[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                 PTHREAD_MUTEX_INITIALIZER};
pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t for_condition = PTHREAD_MUTEX_INITIALIZER;
pthread_spinlock_t spin;
pthread_spinlock_t other_spin;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t other_rwlock = PTHREAD_RWLOCK_INITIALIZER;

void make_first(pthread_mutex_t* mutex) {
  pthread_mutex_init(mutex, NULL);
  __asm__ volatile("");  // no tail call: the call returns into this function
}
void make_second(pthread_mutex_t* mutex) {
  pthread_mutex_init(mutex, NULL);
  __asm__ volatile("");
}
void make_c11(mtx_t* mutex) {
  mtx_init(mutex, mtx_plain);
  __asm__ volatile("");
}
void lock_here(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
  __asm__ volatile("");
}
void lock_there(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
  __asm__ volatile("");
}

typedef void (*Locker)(pthread_mutex_t*);

struct Contest {
  pthread_mutex_t* mutex;
  Locker lock;
  int turn;  // under the mutex
  int waiters_turn;
  atomic_int tid;
};

static void stay_on_one_cpu(void) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void do_not_preempt(void) {
  const struct sched_param none = {0};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

static void* wait_for_it(void* argument) {
  do_not_preempt();
  struct Contest* contest = argument;
  contest->tid = (int)syscall(SYS_gettid);
  contest->lock(contest->mutex);
  contest->waiters_turn = ++contest->turn;
  pthread_mutex_unlock(contest->mutex);
  return NULL;
}

static int sleeps(pid_t tid) {
  char path[64];
  char text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
  FILE* stat = fopen(path, "r");
  if (stat == NULL) return 0;
  if (fgets(text, sizeof text, stat) == NULL) text[0] = 0;
  fclose(stat);
  const char* name_end = strrchr(text, ')');
  return name_end != NULL && name_end[2] == 'S';
}

// Until the thread has got where it sleeps for good: seen asleep a few times in a row.
static void wait_until_asleep(atomic_int* tid, int times) {
  while (*tid == 0) usleep(100);
  for (int i = 0, seen = 0; i < 1000 && seen < times; ++i) {
    seen = sleeps(*tid) ? seen + 1 : 0;
    usleep(200);
  }
}

static int hands_over(pthread_mutex_t* mutex, Locker lock) {
  struct Contest contest = {mutex, lock, 0, 0, 0};
  pthread_t waiter;
  lock(mutex);
  pthread_create(&waiter, NULL, wait_for_it, &contest);
  wait_until_asleep(&contest.tid, 4);
  pthread_mutex_unlock(mutex);
  lock(mutex);
  int mine = ++contest.turn;
  pthread_mutex_unlock(mutex);
  pthread_join(waiter, NULL);
  return contest.waiters_turn < mine;
}

// A lock that hands over always does. One that does not may be taken by the waiter now and then,
// when its last owner loses the CPU at the wrong moment.
static void show(const char* name, pthread_mutex_t* mutex, Locker lock) {
  int handed = 0;
  while (handed < 4 && hands_over(mutex, lock)) ++handed;
  printf("%s: %s\n", name, handed == 4 ? "hands over" : "barges");
}

struct SpinWaiter {
  pthread_spinlock_t* lock;
  atomic_int tid;
};

static void* wait_for_spin(void* argument) {
  do_not_preempt();
  struct SpinWaiter* waiter = argument;
  waiter->tid = (int)syscall(SYS_gettid);
  pthread_spin_lock(waiter->lock);
  pthread_spin_unlock(waiter->lock);
  return NULL;
}

static void show_spin(const char* name, pthread_spinlock_t* lock) {
  int handed = 0;
  for (int barged = 0; handed < 4 && !barged; handed += !barged) {
    struct SpinWaiter waiter = {lock, 0};
    pthread_t thread;
    pthread_spin_lock(lock);
    pthread_create(&thread, NULL, wait_for_spin, &waiter);
    usleep(2000);
    wait_until_asleep(&waiter.tid, 1);
    pthread_spin_unlock(lock);
    barged = pthread_spin_trylock(lock) == 0;
    if (barged) pthread_spin_unlock(lock);
    pthread_join(thread, NULL);
  }
  printf("%s: %s\n", name, handed == 4 ? "hands over" : "barges");
}

// The two encodings differ while a writer owns the lock.
static void show_rwlock(const char* name, pthread_rwlock_t* lock) {
  pthread_rwlock_wrlock(lock);
  unsigned words[4];
  memcpy(words, lock, sizeof words);
  pthread_rwlock_unlock(lock);
  pthread_rwlock_rdlock(lock);
  pthread_rwlock_unlock(lock);
  printf("%s: written as %x %x %x %x\n", name, words[0], words[1], words[2], words[3]);
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;

static void* wait_for_condition(void* unused) {
  (void)unused;
  pthread_mutex_lock(&for_condition);
  while (!ready) pthread_cond_wait(&condition, &for_condition);
  pthread_mutex_unlock(&for_condition);
  return NULL;
}

static void show_condition(void) {
  pthread_t waiters[4];
  for (int i = 0; i < 4; ++i) pthread_create(&waiters[i], NULL, wait_for_condition, NULL);
  usleep(5000);
  pthread_mutex_lock(&for_condition);
  ready = 1;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&for_condition);
  for (int i = 0; i < 4; ++i) pthread_join(waiters[i], NULL);
  show("condition's", &for_condition, lock_there);
}

static void show_library(const char* path) {
  if (path == NULL) return;
  void* library = dlopen(path, RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  pthread_mutex_t* (*hidden)(void) = (pthread_mutex_t * (*)(void)) dlsym(library, "hidden_lock");
  show("library's", dlsym(library, "library_lock"), lock_there);
  show("library's hidden", hidden(), lock_there);
  pthread_mutex_t* made = malloc(sizeof *made);
  ((Locker)dlsym(library, "library_make"))(made);
  show("library-made", made, lock_there);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  stay_on_one_cpu();
  show("global", &global, lock_there);
  show("local", &local, lock_there);
  show("row[1]", &row[1], lock_there);
  show("row[2]", &row[2], lock_there);
  show("recursive", &recursive, lock_there);
  show("checked", &checked, lock_there);
  pthread_mutex_t* made = malloc(3 * sizeof *made);
  make_first(&made[0]);
  make_second(&made[1]);
  show("made first", &made[0], lock_there);
  show("made second", &made[1], lock_there);
  mtx_t* c11 = malloc(sizeof *c11);
  make_c11(c11);
  show("made as C11", (pthread_mutex_t*)c11, lock_there);
  pthread_mutex_t* unmade = calloc(2, sizeof *unmade);
  show("first seen here", &unmade[0], lock_here);
  show("first seen there", &unmade[1], lock_there);
  make_second(&made[2]);
  show("made second and seen here", &made[2], lock_here);
  show_condition();
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_spin_init(&other_spin, PTHREAD_PROCESS_PRIVATE);
  show_spin("spin", &spin);
  show_spin("other spin", &other_spin);
  show_rwlock("rwlock", &rwlock);
  show_rwlock("other rwlock", &other_rwlock);
  show_library(argc > 1 ? argv[1] : NULL);
  return 0;
}
