// The wrappers' side of the recorder: nothing here runs unless profiling is on.
#pragma once

#include <cstdint>

#include <pthread.h>

#include "interpose/profiler_api.h"
#include "interpose/runtime.h"
#include "locks/wait.h"

namespace relock {

// Calls the recorder, call(profiler), with cancellation put off. Its functions have destructors, so
// a thread that is cancelled asynchronously inside them would end in std::terminate. The guard lies
// on this side of the border: letting cancellation in again may act at once, and only code without
// exception tables survives that.
template <class Call>
inline void tell_recorder(Call call) {
  int state;
  int type;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  call(g_runtime.profiler);
  // The type last: glibc 2.36 forgets the thread's result when the state lets a request in.
  pthread_setcancelstate(state, nullptr);
  pthread_setcanceltype(type, nullptr);
}

// One contended wait from its start to its end. As an observer it is told when the waiter is about
// to sleep; only then a stack is worth its cost.
class RecordedWait : public WaitObserver {
 public:
  // `mark`: where the releasing thread will look for the ticket; null when there is no such place.
  RecordedWait(const void* object, RelockObjectKind kind, LinuxAtomic32* mark);

  void begin();  // the stack is taken here, once
  // `acquisitions`: of the object, this one included; 0 when unknown.
  void end(RelockWaitOutcome outcome, std::uint64_t acquisitions);

 private:
  const void* object_;
  RelockObjectKind kind_;
  LinuxAtomic32* mark_;
  std::int64_t since_ns_;
  std::uint32_t ticket_ = 0;
  bool begun_ = false;
};

// Before a release: takes the mark of the waiter that will be told, 0 for none.
inline std::uint32_t take_mark(LinuxAtomic32& mark) {
  if (mark.load(MemoryOrder::kRelaxed) == 0) return 0;  // a hint: a lost mark costs one sample
  return mark.exchange(0, MemoryOrder::kRelaxed);
}

// After the release, when the object may be gone.
inline void report_release(std::uint32_t ticket) {
  if (ticket == 0) return;
  tell_recorder([=](const RelockProfiler& recorder) { recorder.released(ticket); });
}

inline void report_try_failed(const void* object, RelockObjectKind kind) {
  tell_recorder([=](const RelockProfiler& recorder) { recorder.try_failed(object, kind); });
}
inline void report_init(const void* object, RelockObjectKind kind, const void* site) {
  tell_recorder([=](const RelockProfiler& recorder) { recorder.object_init(object, kind, site); });
}
inline void report_destroy(const void* object, RelockObjectKind kind, std::uint64_t acquisitions) {
  tell_recorder(
      [=](const RelockProfiler& recorder) { recorder.object_destroy(object, kind, acquisitions); });
}

// A 4-byte spinlock has no room for a mark and a counter: they live in a table hashed by address,
// where the first lock to claim an entry keeps it. Null when the table is full.
struct SpinRecord {
  std::uintptr_t address;
  LinuxAtomic32 mark;
  LinuxAtomic32 acquisitions;
};
SpinRecord* spin_record(const void* spinlock);

}  // namespace relock
