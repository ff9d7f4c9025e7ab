// The border between the interposer (librelock.so, libc only) and the recorder
// (librelock-profile.so, C++ with libunwind and spdlog). Plain C types; both sides check `version`.
//
// How one contended wait is recorded:
//   1. A thread that must wait calls wait_begin(). It learns the lock's row and, if the wait is
//      drawn as a sample, a ticket. The ticket has then been written into the object's mark and,
//      after that, the waiter's stack been taken: many waits end sooner than a stack is taken.
//   2. The thread that releases the lock sees the mark before its release, takes the ticket out of
//      it, and calls released(ticket) AFTER the release: the recorder takes the blocker's stack. No
//      stack is ever taken inside a critical section of a lock. (Whoever wakes the waiters of a
//      condition variable calls woken() after it, and may hold their mutex.)
//   3. After its wait the waiter calls wait_end() with what it measured; short waits are told of
//      after the waiter has let go of the lock again, so that they cost the critical section
//      nothing. A long one may still be drawn then, and its stack taken. Steps 2 and 3 may come in
//      either order; the recorder joins them by ticket.
// wait_end() is called for EVERY contended wait, sampled (ticket != 0) or not, so counts and total
// times are exact.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RELOCK_PROFILER_VERSION = 6 };

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

/* Where the owner before ran, as seen from the waiter that got the lock after it. */
enum RelockHandOff {
  RELOCK_HANDOFF_UNKNOWN = 0,
  RELOCK_HANDOFF_WITHIN = 1,
  RELOCK_HANDOFF_ACROSS = 2
};

/* A wait that has begun. lock: the recorder's row + 1, 0 none. ticket: below 2^31, 0 not drawn.
   marked: 1 the ticket was written into the object's mark, 0 there is none or another's was. */
struct RelockWait {
  uint32_t lock;
  uint32_t ticket;
  uint32_t marked;
};

#define RELOCK_MARK_KNOWN 0x80000000u

/* What a waiter asks. */
struct RelockWaitBegin {
  const void* object;
  /* The object's word with RELOCK_MARK_KNOWN and, in its other bits, a sampled waiter's ticket or
     0; or null. Whoever sets the bit is the first to wait for the object since it was made: what
     was known of its address before is of another one. */
  uint32_t* mark;
  uint8_t kind; /* RelockObjectKind */
  bool again;   /* no wait for another object came since this thread asked last */
  /* Given: waits since then that were known not to be drawn. Answered: so many further waits of
     this thread for the object may begin without asking, unless another object comes between. */
  uint32_t undrawn;
  uint32_t chance; /* answered: with which this wait and those were drawn, of 2^32 - 1 */
};

/* A wait that has ended. acquisitions: the object's counter with this one counted, 0 unknown. */
struct RelockWaitEnd {
  const void* object;
  struct RelockWait wait;
  uint64_t wait_ns;
  uint64_t acquisitions;
  uint8_t kind;     /* RelockObjectKind */
  uint8_t outcome;  /* RelockWaitOutcome */
  uint8_t hand_off; /* RelockHandOff */
  uint8_t slept;
  uint8_t unreleased; /* no release will be reported for the ticket */
  uint32_t chance;    /* with which it was drawn until now, as answered */
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
  uint32_t nodes;        /* NUMA nodes that hand-offs are told apart by, at least 1 */
  /* The counters of objects have this many bits and wrap around; 0: 64. By RelockObjectKind. */
  uint8_t counter_bits[8];
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
  /* A waiter, not inside the critical section. */
  struct RelockWait (*wait_begin)(struct RelockWaitBegin* begin);
  /* The waiter after its wait; the object may be gone. */
  void (*wait_end)(const struct RelockWaitEnd* end);
  /* The thread that released a marked object, after the release; object may be gone. */
  void (*released)(uint32_t ticket);
  /* The same of a thread that woke waiters of a condition variable. */
  void (*woken)(const uint32_t* tickets, uint32_t count);
  /* A hold that was drawn, after the release. It stands for `weight` acquisitions. */
  void (*held)(const void* object, int kind, uint64_t hold_ns, uint32_t weight);
  /* Now and then: what the object's counter says, before it wraps around. */
  void (*counted)(const void* object, int kind, uint64_t acquisitions);
  /* A trylock that failed. */
  void (*try_failed)(const void* object, int kind);
  /* init/destroy of an object: names it by `site` (return address of the init call), and separates
     objects that come and go at one address. acquisitions as counted until now. */
  void (*object_init)(const void* object, int kind, const void* site);
  void (*object_destroy)(const void* object, int kind, uint64_t acquisitions);
  /* Called by a waiter before it sleeps, at most about once per interval: writes the interval log
     if it is due. */
  void (*tick)(uint64_t now_ns);
  /* Makes the file now. leaving: the process is about to change its root or user, or to lock itself
     in, and what can be found out about it is found out. */
  void (*prepare)(bool leaving);
  /* A waiter that has begun to wait is about to sleep: its wait will be a long one, and may be
     drawn now, and marked. *chance: with which it was drawn, as answered by wait_begin, and with
     this draw. */
  void (*wait_sleeps)(struct RelockWait* wait, uint32_t* mark, uint32_t* chance);
  /* A seccomp filter comes into force: from here on nothing but futex may be called, with
     stacks_work also rt_sigprocmask and mmap. Holds for children as well. */
  void (*sandboxed)(bool stacks_work);
  /* In the child after fork, before any other call there: drop state, new file at first need. */
  void (*fork_child)(void);
  /* At normal exit: final counts and the log. Recording may go on in other threads meanwhile.
     abrupt: by _exit, perhaps in a signal handler: no log, and nothing that is not safe there. */
  void (*finish)(bool abrupt);
};

/* The plugin's only export. Fills *profiler and returns 0, or returns an errno value after having
   said in one line on standard error what is wrong (the program then runs on without a profile). */
int relock_profiler_entry(const struct RelockHost* host, struct RelockProfiler* profiler);

#ifdef __cplusplus
}
#endif
