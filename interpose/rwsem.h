// Readers-writer locks served by this library. Each function returns what the POSIX call of its
// name returns. None of them is for a process-shared lock.
#pragma once

#include "interpose/mutex.h"
#include "interpose/object.h"
#include "locks/wait.h"

namespace relock {

// `timeout` may be null. Its clock and nanoseconds are checked first of all, as glibc does.
// `observer` may be null; it is told before the thread first sleeps.
int rwsem_read(RwlockView rwlock, const Timeout* timeout, WaitObserver* observer);
int rwsem_write(RwlockView rwlock, const Timeout* timeout, WaitObserver* observer);
int rwsem_try_read(RwlockView rwlock);
int rwsem_try_write(RwlockView rwlock);
int rwsem_unlock(RwlockView rwlock);

}  // namespace relock
