// The border between the interposer (librelock.so, libc only) and the recorder
// (librelock-profile.so, C++ with libunwind and spdlog). Plain C types; both sides check `version`.
//
// How one contended wait is recorded:
//   1. A thread that must wait calls wait_begin() when its wait has become long enough to sample
//      (before it first sleeps). The recorder may take the waiter's stack; it returns a ticket
//      (never 0) or 0 for "not sampled".
//   2. The interposer writes the ticket into the object's mark. The thread that releases the lock
//      sees the mark before its release, clears it, and calls released(ticket) AFTER the release:
//      the recorder takes the blocker's stack. No stack is ever taken inside a critical section.
//   3. When the waiter owns the lock it calls wait_end() with the time it waited. Steps 2 and 3 may
//      come in either order; the recorder joins them by ticket. A ticket whose release was never
//      seen (timed out, lost mark) is recorded without a blocker.
// wait_end() is called for EVERY contended wait, sampled (ticket != 0) or not, so counts and total
// times are exact.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RELOCK_PROFILER_VERSION = 1 };

enum RelockObjectKind {
  RELOCK_KIND_MUTEX = 0,
  RELOCK_KIND_SPIN = 1,
  RELOCK_KIND_RWLOCK_READ = 2,
  RELOCK_KIND_RWLOCK_WRITE = 3,
  RELOCK_KIND_COND = 4, /* the wait for a signal, kept apart from lock waits */
  RELOCK_KIND_COUNT = 5
};

enum RelockWaitOutcome {
  RELOCK_WAIT_ACQUIRED = 0,
  RELOCK_WAIT_TIMED_OUT = 1,
  RELOCK_WAIT_CANCELLED = 2
};

/* What the interposer tells the recorder when it opens it. Strings live as long as the process. */
struct RelockHost {
  uint32_t version;
  uint32_t flags;              /* reserved, 0 */
  const char* profile_dir;     /* RELOCK_PROFILE_DIR or "" for the current directory */
  const char* log_file;        /* RELOCK_LOG_FILE or "" for standard error */
  uint32_t log_interval_s;     /* 0: at exit only */
  uint32_t samples_per_s;      /* upper bound on stacks taken per second and process */
  uint32_t stacks;             /* 0: no stacks at all */
  const char* mutex_lock_name; /* lock serving mutexes, as in lock_list.def */
  const char* spin_lock_name;
  const char* rwlock_name;
  const char* wait_name; /* spin, park or adaptive */
  /* The counter of a live object in a loaded library's data, asked for at the end; null: unknown.
   */
  uint64_t (*acquisitions)(const void* object, int kind);
  /* Whether descriptor 2 is still what it was at start; else nothing may be written there. */
  bool (*standard_error_is_the_same)(void);
  /* The kernel's clock in nanoseconds, even where the program defines clock_gettime itself. */
  uint64_t (*clock_ns)(int clock);
};

/* Functions of the recorder. All are safe from any thread, also nested in a signal handler (a
   nested call may be dropped and counted); none allocates from the program's heap, takes a lock
   that the program can see, or changes errno. */
struct RelockProfiler {
  uint32_t version;
  /* A waiter, not inside the critical section. now_ns: CLOCK_MONOTONIC. */
  uint32_t (*wait_begin)(const void* object, int kind, uint64_t now_ns);
  /* The waiter after its wait. acquisitions: the object's counter, 0 when unknown. */
  void (*wait_end)(const void* object, int kind, uint32_t ticket, uint64_t wait_ns, int outcome,
                   uint64_t acquisitions);
  /* The thread that released a marked object, after the release; object may be gone. */
  void (*released)(uint32_t ticket);
  /* A trylock that failed. */
  void (*try_failed)(const void* object, int kind);
  /* init/destroy of an object: names it by `site` (return address of the init call), and separates
     objects that come and go at one address. acquisitions as counted until now. */
  void (*object_init)(const void* object, int kind, const void* site);
  void (*object_destroy)(const void* object, int kind, uint64_t acquisitions);
  /* Called by a waiter before it sleeps, at most about once per interval: writes the interval log
     if it is due. */
  void (*tick)(uint64_t now_ns);
  /* In the child after fork, before any other call there: drop state, new file at first need. */
  void (*fork_child)(void);
  /* At normal exit: final counts and the log. Recording may go on in other threads meanwhile. */
  void (*finish)(void);
};

/* The plugin's only export. Fills *profiler and returns 0, or returns an errno value after having
   said in one line on standard error what is wrong (the program then runs on without a profile). */
int relock_profiler_entry(const struct RelockHost* host, struct RelockProfiler* profiler);

#ifdef __cplusplus
}
#endif
