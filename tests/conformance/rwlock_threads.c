// Readers-writer locks under threads: who excludes whom, the read lock taken again while a writer
// waits, writers that are not starved when they are preferred, giving up, and other processes.
// conformance: any-lock
#include "check.h"

#include <sched.h>
#include <sys/mman.h>

typedef struct {
  pthread_rwlock_t lock;
  long value;
  long copy;
  int flag;
  int release;
} Guarded;

static Guarded guarded;

static void make(pthread_rwlock_t* lock, int kind, int pshared) {
  pthread_rwlockattr_t attr;
  MUST(pthread_rwlockattr_init(&attr) == 0);
  MUST(pthread_rwlockattr_setkind_np(&attr, kind) == 0);
  MUST(pthread_rwlockattr_setpshared(&attr, pshared) == 0);
  MUST(pthread_rwlock_init(lock, &attr) == 0);
  MUST(pthread_rwlockattr_destroy(&attr) == 0);
}

static int take_to_write(pthread_rwlock_t* lock, int turn) {
  int result;
  struct timespec at;
  switch (turn % 3) {
    case 0:
      return pthread_rwlock_wrlock(lock);
    case 1:
      while ((result = pthread_rwlock_trywrlock(lock)) == EBUSY) sched_yield();
      return result;
    default:
      do {
        at = deadline_ms(CLOCK_MONOTONIC, turn % 5);
        result = pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &at);
      } while (result == ETIMEDOUT);
      return result;
  }
}

static int take_to_read(pthread_rwlock_t* lock, int turn) {
  int result;
  struct timespec at;
  switch (turn % 3) {
    case 0:
      return pthread_rwlock_rdlock(lock);
    case 1:
      while ((result = pthread_rwlock_tryrdlock(lock)) == EBUSY) sched_yield();
      return result;
    default:
      do {
        at = deadline_ms(CLOCK_REALTIME, turn % 5);
        result = pthread_rwlock_timedrdlock(lock, &at);
      } while (result == ETIMEDOUT);
      return result;
  }
}

static int write_and_read(Guarded* object, int rounds) {
  int bad = 0;
  for (int i = 0; i < rounds; i++) {
    bad |= take_to_write(&object->lock, i) != 0;
    object->value++;
    if (i % 32 == 0) sched_yield();
    bad |= object->copy != object->value - 1;
    object->copy++;
    bad |= pthread_rwlock_unlock(&object->lock) != 0;
    bad |= take_to_read(&object->lock, i) != 0;
    long seen = object->value;
    bad |= seen != object->copy;
    bad |= pthread_rwlock_unlock(&object->lock) != 0;
  }
  return bad;
}

enum { kRounds = 30, kMaxThreads = 16, kProcesses = 3 };

static void* thread_writes_and_reads(void* unused) {
  (void)unused;
  errno = kErrnoSentinel;
  int bad = write_and_read(&guarded, kRounds);
  return (void*)(long)(bad | (errno != kErrnoSentinel));
}

static void exclude(const char* name, int kind, int pshared, int threads) {
  pthread_t ids[kMaxThreads];
  memset(&guarded, 0, sizeof guarded);
  make(&guarded.lock, kind, pshared);
  long bad = 0;
  for (int i = 0; i < threads; i++) {
    MUST(pthread_create(&ids[i], NULL, thread_writes_and_reads, NULL) == 0);
  }
  for (int i = 0; i < threads; i++) {
    void* result = NULL;
    MUST(pthread_join(ids[i], &result) == 0);
    bad |= (long)result;
  }
  CHECK_EQ(label(name, "counted"), guarded.value, threads * kRounds);
  CHECK_EQ(label(name, "failed"), bad, 0);
  CHECK_CALL(label(name, "destroy"), pthread_rwlock_destroy(&guarded.lock), 0);
}

static void* wait_to_write(void* unused) {
  (void)unused;
  set_flag(&guarded.flag);
  int result = pthread_rwlock_wrlock(&guarded.lock);
  if (result == 0) result = pthread_rwlock_unlock(&guarded.lock);
  return (void*)(long)result;
}

static void* try_to_read(void* unused) {
  (void)unused;
  int result = pthread_rwlock_tryrdlock(&guarded.lock);
  if (result == 0) pthread_rwlock_unlock(&guarded.lock);
  return (void*)(long)result;
}

// Readers are preferred by default: a reader that reads again while a writer waits does not hang.
static void read_again(const char* name, int kind, int new_reader_enters) {
  pthread_t writer;
  void* result = NULL;
  memset(&guarded, 0, sizeof guarded);
  make(&guarded.lock, kind, PTHREAD_PROCESS_PRIVATE);
  CHECK_CALL(label(name, "rdlock"), pthread_rwlock_rdlock(&guarded.lock), 0);
  MUST(pthread_create(&writer, NULL, wait_to_write, NULL) == 0);
  await_flag(&guarded.flag);
  sleep_ms(20);
  if (new_reader_enters) {
    CHECK_CALL(label(name, "rdlock again"), pthread_rwlock_rdlock(&guarded.lock), 0);
    CHECK_CALL(label(name, "tryrdlock again"), pthread_rwlock_tryrdlock(&guarded.lock), 0);
    CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&guarded.lock), 0);
    CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&guarded.lock), 0);
  } else {
    struct timespec soon = deadline_ms(CLOCK_REALTIME, 3);
    CHECK_CALL(label(name, "timedrdlock again"), pthread_rwlock_timedrdlock(&guarded.lock, &soon),
               ETIMEDOUT);
  }
  CHECK_EQ(label(name, "tryrdlock by another"), (long)on_other_thread(try_to_read, NULL),
           new_reader_enters ? 0 : EBUSY);
  CHECK_CALL(label(name, "unlock"), pthread_rwlock_unlock(&guarded.lock), 0);
  MUST(pthread_join(writer, &result) == 0);
  CHECK_EQ(label(name, "writer"), (long)result, 0);
}

static void* read_together(void* unused) {
  (void)unused;
  int result = pthread_rwlock_rdlock(&guarded.lock);
  if (__atomic_add_fetch(&guarded.value, 1, __ATOMIC_RELAXED) == 4) set_flag(&guarded.flag);
  await_flag(&guarded.flag);  // all four are inside
  result |= pthread_rwlock_unlock(&guarded.lock);
  return (void*)(long)result;
}

static void readers_share(int kind) {
  pthread_t ids[4];
  long bad = 0;
  memset(&guarded, 0, sizeof guarded);
  make(&guarded.lock, kind, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < 4; i++) MUST(pthread_create(&ids[i], NULL, read_together, NULL) == 0);
  for (int i = 0; i < 4; i++) {
    void* result = NULL;
    MUST(pthread_join(ids[i], &result) == 0);
    bad |= (long)result;
  }
  CHECK_EQ("four readers inside at once", bad, 0);
}

// A writer that gives up must let the readers that queued behind it go on.
static void* read_behind(void* unused) {
  (void)unused;
  set_flag(&guarded.release);
  int result = pthread_rwlock_rdlock(&guarded.lock);
  if (result == 0) result = pthread_rwlock_unlock(&guarded.lock);
  return (void*)(long)result;
}

static void* give_up_writing(void* unused) {
  (void)unused;
  struct timespec soon = deadline_ms(CLOCK_MONOTONIC, 30);
  set_flag(&guarded.flag);
  return (void*)(long)pthread_rwlock_clockwrlock(&guarded.lock, CLOCK_MONOTONIC, &soon);
}

static void writer_gives_up(void) {
  pthread_t writer;
  pthread_t reader;
  void* wrote = NULL;
  void* read = NULL;
  memset(&guarded, 0, sizeof guarded);
  make(&guarded.lock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_PRIVATE);
  CHECK_CALL("gives up: rdlock", pthread_rwlock_rdlock(&guarded.lock), 0);
  MUST(pthread_create(&writer, NULL, give_up_writing, NULL) == 0);
  await_flag(&guarded.flag);
  sleep_ms(5);
  MUST(pthread_create(&reader, NULL, read_behind, NULL) == 0);
  MUST(pthread_join(writer, &wrote) == 0);
  MUST(pthread_join(reader, &read) == 0);  // while we still read
  CHECK_EQ("gives up: writer", (long)wrote, ETIMEDOUT);
  CHECK_EQ("gives up: reader behind it", (long)read, 0);
  CHECK_CALL("gives up: unlock", pthread_rwlock_unlock(&guarded.lock), 0);
  CHECK_CALL("gives up: trywrlock", pthread_rwlock_trywrlock(&guarded.lock), 0);
  CHECK_CALL("gives up: unlock", pthread_rwlock_unlock(&guarded.lock), 0);
}

static void across_processes(const char* name, int kind) {
  Guarded* shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared != MAP_FAILED);
  make(&shared->lock, kind, PTHREAD_PROCESS_SHARED);
  pid_t children[kProcesses];
  for (int i = 0; i < kProcesses; i++) {
    children[i] = fork();
    MUST(children[i] >= 0);
    if (children[i] == 0) _exit(write_and_read(shared, kRounds));
  }
  int bad = write_and_read(shared, kRounds);
  for (int i = 0; i < kProcesses; i++) bad |= child_status(children[i]);
  CHECK_EQ(label(name, "counted"), shared->value, (kProcesses + 1) * kRounds);
  CHECK_EQ(label(name, "failed"), bad, 0);
  CHECK_CALL(label(name, "destroy"), pthread_rwlock_destroy(&shared->lock), 0);
  MUST(munmap(shared, sizeof *shared) == 0);
}

int main(void) {
  static const struct {
    const char* name;
    int kind;
  } kinds[] = {{"readers first,", PTHREAD_RWLOCK_PREFER_READER_NP},
               {"writers first,", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP}};
  for (int i = 0; i < 2; i++) {
    exclude(label(kinds[i].name, "2 threads:"), kinds[i].kind, PTHREAD_PROCESS_PRIVATE, 2);
    exclude(label(kinds[i].name, "8 threads:"), kinds[i].kind, PTHREAD_PROCESS_PRIVATE, 8);
    exclude(label(kinds[i].name, "shared, 4 threads:"), kinds[i].kind, PTHREAD_PROCESS_SHARED, 4);
    readers_share(kinds[i].kind);
    across_processes(label(kinds[i].name, "processes:"), kinds[i].kind);
  }
  read_again("default:", PTHREAD_RWLOCK_DEFAULT_NP, 1);
  read_again("prefer writer:", PTHREAD_RWLOCK_PREFER_WRITER_NP, 1);
  read_again("nonrecursive:", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, 0);
  writer_gives_up();
  return done();
}
