// RELOCK_RULES: which lock serves a single object.
//
// All locks share the words "free" and "locked, nobody waits" and one fast path, so the choice of a
// mutex can wait until somebody has to. It is then written into the object, in bits of __kind that
// the C library does not look at, before the first waiter touches the word:
//
//   bits 10-16  what is known: 0 nothing; 1 no rule applies; n + 2 rule n applies
//   bit 17      that is so far: rules by call site are still to be asked, at the first wait
//   bit 18      the C library serves it
//
// Whoever finds a word with waiters in it therefore finds the choice too. A spinlock has no such
// bits: its rules look at the address alone, as known at start, so that the answer never changes.
#pragma once

#include <cstdint>

#include "interpose/backend.h"
#include "interpose/object.h"
#include "locks/budget.h"

namespace relock {

// Who serves a mutex or spinlock, and within which limits.
struct MutexService {
  const MutexBackend* backend;
  const Budget* budget;
};
struct SpinService {
  const SpinBackend* backend;
  const Budget* budget;
};

// Reads the file that RELOCK_RULES names. Runs in the constructor, after the locks are chosen.
void load_rules_at_start();

// The service of a mutex whose caller will wait if it must: decided now unless it has been.
// `site` is the address that the program's call returns to, null when unknown.
MutexService decide_mutex(MutexView mutex, const void* site);

// The same for a caller that never waits. An undecided mutex has no waiters: free it or find it
// locked.
MutexService known_mutex(MutexView mutex);

// A mutex has been initialised by the code at `site`.
void rule_initialised_mutex(MutexView mutex, const void* site);

SpinService ruled_spin(const void* spinlock);
bool rule_makes_spin_glibcs(const void* spinlock);
bool rule_makes_rwlock_glibcs(const void* rwlock);

// A call of dlopen has returned.
void rule_opened_modules();

// In the child of fork, with one thread.
void rules_after_fork();

}  // namespace relock
