// The few macros that every conformance program shares, for C and for C++.
//
// A program prints one line `name: value` per check, in an order that does not depend on how its
// threads happen to run: the harness compares these lines between the bare run and the preloaded
// ones. Where the value is documented, the program also states it, and a different value makes
// the exit status non-zero and explains itself on stderr.
//
//   CHECK_EQ(name, expr, expected)    an integer
//   CHECK_TRUE(name, expr)            a condition
//   CHECK_PROMISE(name, expr)         a condition that relock promises and the C library does not:
//                                     holds by definition where nothing is preloaded
//   CHECK_CALL(name, call, expected)  a pthread call: 0 or an error code; errno must stay untouched
//   REPORT(name, value)               an integer that is compared with the bare run only
//   return done();                    from main; `_exit(done())` in a forked child
#ifndef RELOCK_TESTS_CONFORMANCE_CHECK_H
#define RELOCK_TESTS_CONFORMANCE_CHECK_H

// Everything glibc has; this header comes before the system's.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK_UNUSED __attribute__((unused))

// No call returns this; a call that leaves it in errno has not written errno.
enum { kErrnoSentinel = 4242 };

#define CHECK_EQ(name, expr, expected) \
  check_equal((name), (long long)(expr), (long long)(expected), #expr, __FILE__, __LINE__)
#define CHECK_TRUE(name, expr) check_true((name), (expr) ? 1 : 0, #expr, __FILE__, __LINE__)
#define CHECK_PROMISE(name, expr) CHECK_TRUE(name, getenv("LD_PRELOAD") == NULL || (expr))
#define CHECK_CALL(name, call, expected)                                                 \
  do {                                                                                   \
    errno = kErrnoSentinel;                                                              \
    int check_got_ = (call);                                                             \
    int check_errno_ = errno;                                                            \
    check_call((name), check_got_, (expected), check_errno_, #call, __FILE__, __LINE__); \
  } while (0)
#define REPORT(name, value) check_line((name), (long long)(value))

// Set-up whose failure makes the rest of the program meaningless.
#define MUST(expr)                                                             \
  do {                                                                         \
    if (!(expr)) {                                                             \
      fprintf(stderr, "%s:%d: cannot go on: %s\n", __FILE__, __LINE__, #expr); \
      exit(99);                                                                \
    }                                                                          \
  } while (0)

// __kind as the C library and debuggers read it. Bits 10 to 18 mean nothing to them: RELOCK_RULES
// remembers its choice there.
#define DOCUMENTED_KIND(kind) ((kind) == -1 ? -1 : (kind) & ~0x7fc00)

static int check_failures_ CHECK_UNUSED = 0;

static CHECK_UNUSED void check_fail(void) {
  __atomic_fetch_add(&check_failures_, 1, __ATOMIC_RELAXED);  // a mere count
}

static CHECK_UNUSED int done(void) {
  fflush(stdout);
  return __atomic_load_n(&check_failures_, __ATOMIC_RELAXED) == 0 ? 0 : 1;
}

// Flushed at once: a forked child must not print its parent's lines a second time, and a program
// that hangs or dies still shows how far it came.
static CHECK_UNUSED void check_line(const char* name, long long value) {
  printf("%s: %lld\n", name, value);
  fflush(stdout);
}

static CHECK_UNUSED const char* check_error_name(int error) {
  switch (error) {
    case 0:
      return "ok";
    case EPERM:
      return "EPERM";
    case EAGAIN:
      return "EAGAIN";
    case EBUSY:
      return "EBUSY";
    case EINVAL:
      return "EINVAL";
    case EDEADLK:
      return "EDEADLK";
    case ETIMEDOUT:
      return "ETIMEDOUT";
    case EOWNERDEAD:
      return "EOWNERDEAD";
    case ENOTRECOVERABLE:
      return "ENOTRECOVERABLE";
    case ENOTSUP:
      return "ENOTSUP";
    case ENOSYS:
      return "ENOSYS";
    case EOVERFLOW:
      return "EOVERFLOW";
    default:
      return NULL;
  }
}

static CHECK_UNUSED void check_equal(const char* name, long long got, long long expected,
                                     const char* text, const char* file, int line) {
  check_line(name, got);
  if (got == expected) return;
  check_fail();
  fprintf(stderr, "%s:%d: %s: %s is %lld, expected %lld\n", file, line, name, text, got, expected);
}

static CHECK_UNUSED void check_true(const char* name, int holds, const char* text, const char* file,
                                    int line) {
  printf("%s: %s\n", name, holds ? "yes" : "no");
  fflush(stdout);
  if (holds) return;
  check_fail();
  fprintf(stderr, "%s:%d: %s: does not hold: %s\n", file, line, name, text);
}

static CHECK_UNUSED void check_call(const char* name, int got, int expected, int errno_after,
                                    const char* text, const char* file, int line) {
  const char* word = check_error_name(got);
  const char* note = errno_after == kErrnoSentinel ? "" : " (errno changed)";
  if (word != NULL) {
    printf("%s: %s%s\n", name, word, note);
  } else {
    printf("%s: error %d%s\n", name, got, note);
  }
  fflush(stdout);
  if (got == expected && errno_after == kErrnoSentinel) return;
  check_fail();
  fprintf(stderr, "%s:%d: %s: %s is %d, expected %d%s\n", file, line, name, text, got, expected,
          note);
}

static CHECK_UNUSED struct timespec deadline_ms(clockid_t clock, long long ms) {
  struct timespec at;
  clock_gettime(clock, &at);
  long long ns = at.tv_nsec + ms * 1000000LL;
  long long sec = ns / 1000000000LL;
  ns -= sec * 1000000000LL;
  if (ns < 0) {
    ns += 1000000000LL;
    sec -= 1;
  }
  at.tv_sec += (time_t)sec;
  at.tv_nsec = (long)ns;
  return at;
}

static CHECK_UNUSED long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static CHECK_UNUSED void sleep_ms(long ms) {
  struct timespec span;
  span.tv_sec = ms / 1000;
  span.tv_nsec = (ms % 1000) * 1000000L;
  while (nanosleep(&span, &span) != 0 && errno == EINTR) {
  }
}

// Waits for a flag that another thread (or a process that shares the memory) sets with set_flag;
// the pair publishes what was written before it.
static CHECK_UNUSED void await_flag(int* flag) {
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) sleep_ms(1);
}

static CHECK_UNUSED void set_flag(int* flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }

// Runs work(argument) on a thread of its own and gives back what it returned.
static CHECK_UNUSED void* on_other_thread(void* (*work)(void*), void* argument) {
  pthread_t thread;
  void* result = NULL;
  MUST(pthread_create(&thread, NULL, work, argument) == 0);
  MUST(pthread_join(thread, &result) == 0);
  return result;
}

// "first second", for the names of checks that run once for each entry of a table. The text stays
// until the program ends, so that a label can be a part of the next one.
static CHECK_UNUSED const char* label(const char* first, const char* second) {
  size_t size = strlen(first) + strlen(second) + 2;
  char* text = (char*)malloc(size);
  MUST(text != NULL);
  snprintf(text, size, "%s %s", first, second);
  return text;
}

// The exit status of a forked child, or 1000 + the signal that ended it.
static CHECK_UNUSED int child_status(pid_t child) {
  int status = 0;
  MUST(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#endif
