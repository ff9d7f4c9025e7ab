// The fast paths are one compare-exchange each way; everything else leaves them by a tail call.
#include "interpose/rwsem.h"

#include <cerrno>

#include "interpose/runtime.h"
#include "locks/rwsem.h"

namespace relock {
namespace {

using Sem = RwSem<LinuxPlatform, RwlockView>;

inline std::uint64_t state_of(RwlockView rwlock) {
  return rwlock.state().load(MemoryOrder::kRelaxed);
}

// Compared with the caller's own tid only, so nobody needs to see it in order.
inline bool written_by_me(RwlockView rwlock) {
  return rwlock.writer().load(MemoryOrder::kRelaxed) == thread_id();
}
inline void set_writer(RwlockView rwlock, std::uint32_t tid) {
  rwlock.writer().store(tid, MemoryOrder::kRelaxed);
}

// R1 of locks/rwsem.h, on a word without waiters.
inline bool read_free(RwlockView rwlock) {
  std::uint64_t w = state_of(rwlock);
  if ((w & (Sem::kWriter | Sem::kWaiters)) != 0 || Sem::full(w)) return false;
  return rwlock.state().compare_exchange(w, w + Sem::kReader, MemoryOrder::kAcquire);
}
inline bool write_free(RwlockView rwlock) {
  std::uint64_t free = 0;
  return rwlock.state().compare_exchange(free, Sem::kWriter, MemoryOrder::kAcquire);
}

bool valid(const Timeout& timeout) {
  return supported_clock(timeout.clock) && valid_nanoseconds(*timeout.when);
}

using Slow = Acquire (*)(RwlockView, WaitContext<LinuxPlatform>&);

Acquire write_slow(RwlockView rwlock, WaitContext<LinuxPlatform>& context) {
  return Sem::write_slow(rwlock, context, thread_id());
}

bool wait_for(RwlockView rwlock, const Timeout* timeout, WaitObserver* observer, Slow slow) {
  Deadline deadline;
  WaitContext<LinuxPlatform> context{&g_runtime.budget};
  context.observer = observer;
  if (timeout != nullptr) {
    deadline = deadline_of(*timeout);
    context.deadline = &deadline;
  }
  return slow(rwlock, context) == Acquire::kAcquired;
}

__attribute__((noinline)) int read_contended(RwlockView rwlock, const Timeout* timeout,
                                             WaitObserver* observer) {
  if (written_by_me(rwlock)) return EDEADLK;
  if (Sem::try_read(rwlock)) return 0;
  if (Sem::full(state_of(rwlock))) return EAGAIN;
  if (wait_for(rwlock, timeout, observer, &Sem::read_slow)) return 0;
  return Sem::full(state_of(rwlock)) ? EAGAIN : ETIMEDOUT;
}

__attribute__((noinline)) int write_contended(RwlockView rwlock, const Timeout* timeout,
                                              WaitObserver* observer) {
  if (written_by_me(rwlock)) return EDEADLK;
  if (!wait_for(rwlock, timeout, observer, &write_slow)) return ETIMEDOUT;
  set_writer(rwlock, thread_id());
  return 0;
}

}  // namespace

int rwsem_read(RwlockView rwlock, const Timeout* timeout, WaitObserver* observer) {
  if (timeout != nullptr && unlikely(!valid(*timeout))) return EINVAL;
  if (likely(read_free(rwlock))) return 0;
  return read_contended(rwlock, timeout, observer);
}

int rwsem_write(RwlockView rwlock, const Timeout* timeout, WaitObserver* observer) {
  if (timeout != nullptr && unlikely(!valid(*timeout))) return EINVAL;
  if (unlikely(!write_free(rwlock))) return write_contended(rwlock, timeout, observer);
  set_writer(rwlock, thread_id());
  return 0;
}

int rwsem_try_read(RwlockView rwlock) {
  if (read_free(rwlock) || Sem::try_read(rwlock)) return 0;
  return Sem::full(state_of(rwlock)) ? EAGAIN : EBUSY;
}

int rwsem_try_write(RwlockView rwlock) {
  if (!write_free(rwlock) && !Sem::try_write(rwlock)) return EBUSY;
  set_writer(rwlock, thread_id());
  return 0;
}

// Whoever unlocks, the word tells what is unlocked; the compare-exchange is the last access.
int rwsem_unlock(RwlockView rwlock) {
  std::uint64_t w = state_of(rwlock);
  if ((w & Sem::kWriter) != 0) {
    set_writer(rwlock, 0);
    if (w == Sem::kWriter && rwlock.state().compare_exchange(w, 0, MemoryOrder::kRelease)) return 0;
    Sem::release_write(rwlock);
    return 0;
  }
  if ((w & Sem::kWaiters) == 0 && w >= Sem::kReader &&
      rwlock.state().compare_exchange(w, w - Sem::kReader, MemoryOrder::kRelease)) {
    return 0;
  }
  Sem::release_read(rwlock);
  return 0;
}

}  // namespace relock
