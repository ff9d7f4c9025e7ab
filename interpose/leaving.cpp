// When a process makes its profile file, and when it closes it. It does not make it at its start,
// since most processes never wait for a lock, but when it starts its first thread, and at the
// latest before a call after which it could not: when it changes its root or its user, or locks
// itself in. Without profiling these calls are passed on, by a jump.
#include <cstdint>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "interpose/export.h"
#include "interpose/message.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/runtime.h"
#include "interpose/seccomp_filter.h"

namespace relock {
namespace {

// A filter is in force, in this process or inherited: what could be prepared has been, and no call
// may be made any more. Relaxed accesses: it carries nothing but itself.
bool g_filtered;
bool is_filtered() { return __atomic_load_n(&g_filtered, __ATOMIC_RELAXED); }

// A child of vfork runs in its parent's memory, and a file made there would be the parent's. Asks
// the kernel.
bool is_own_process() { return thread_id() == thread_id_slow(); }

__attribute__((noinline)) void prepare_to_leave() {
  if (is_filtered() || !is_own_process()) return;
  tell_recorder([](const RelockProfiler& recorder) { recorder.prepare(/*leaving=*/true); });
}

// Once in each process, so that starting a thread makes no call of ours later on.
__attribute__((noinline)) void prepare_for_threads() {
  static std::uint32_t prepared;  // the epoch plus 1; relaxed accesses, as above
  const std::uint32_t own = LinuxPlatform::epoch() + 1;
  if (is_filtered() || __atomic_load_n(&prepared, __ATOMIC_RELAXED) == own) return;
  if (!is_own_process()) return;
  tell_recorder([](const RelockProfiler& recorder) { recorder.prepare(/*leaving=*/false); });
  __atomic_store_n(&prepared, own, __ATOMIC_RELAXED);
}

// What taking a stack may need of the kernel.
bool stacks_work_under(const sock_fprog* filter) {
  if (filter == nullptr) return false;
  constexpr unsigned long kPage = 4096;
  return filter_allows(*filter, SYS_rt_sigprocmask, {0, kPage, kPage, 8, 0, 0}) &&
         filter_allows(*filter, SYS_mmap,
                       {0, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        static_cast<unsigned long>(-1), 0});
}

void say_stacks_are_off() {
  static bool said;
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  say("relock: warning: the program's seccomp filter refuses rt_sigprocmask or mmap: counts and "
      "times are recorded on, stacks are not (RELOCK_PROFILE_STACKS=0 switches them off from the "
      "start)");
}

// `filter` null: the strict mode. Before the first one is the last moment at which something can be
// said or opened; another one may still take the stacks away.
__attribute__((noinline)) void prepare_for_filter(const sock_fprog* filter) {
  const bool first = !is_filtered();
  if (first && !is_own_process()) return;
  const bool stacks = stacks_work_under(filter);
  if (first && !stacks && g_runtime.options.profile_stacks) say_stacks_are_off();
  tell_recorder([=](const RelockProfiler& recorder) {
    if (first) recorder.prepare(/*leaving=*/true);
    recorder.sandboxed(stacks);
  });
  __atomic_store_n(&g_filtered, true, __ATOMIC_RELAXED);
}

inline void look_at_prctl(long option, long mode, long argument) {
  if (likely(option != PR_SET_SECCOMP)) return;
  const bool filtered = mode == SECCOMP_MODE_FILTER;
  prepare_for_filter(filtered ? reinterpret_cast<const sock_fprog*>(argument) : nullptr);
}

// The way most forked children end. Handlers of exit do not run, and a signal handler may call it.
__attribute__((noinline)) void close_at_once() {
  if (is_filtered() || !is_own_process()) return;
  g_runtime.profiler.finish(/*abrupt=*/true);
}

__attribute__((noinline)) void look_at_syscall(long number, long first, long second, long third) {
  if (number == SYS_exit_group) return close_at_once();
  if (number == SYS_prctl) return look_at_prctl(first, second, third);
  if (number != SYS_seccomp) return prepare_to_leave();
  if (first != SECCOMP_SET_MODE_FILTER && first != SECCOMP_SET_MODE_STRICT) return;
  const bool filtered = first == SECCOMP_SET_MODE_FILTER;
  prepare_for_filter(filtered ? reinterpret_cast<const sock_fprog*>(third) : nullptr);
}

inline bool leads_away(long number) {
  switch (number) {
    case SYS_exit_group:
    case SYS_prctl:
    case SYS_seccomp:
    case SYS_chroot:
    case SYS_pivot_root:
    case SYS_setuid:
    case SYS_setreuid:
    case SYS_setresuid:
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace relock

using relock::g_runtime;
using relock::real;
using relock::unlikely;

// Arguments that a caller did not pass are whatever lies in their place, and are passed on so.
RELOCK_EXPORT(int, prctl, (int option, long a, long b, long c, long d)) {
  if (unlikely(g_runtime.recording)) relock::look_at_prctl(option, a, b);
  return real().prctl(option, a, b, c, d);
}
RELOCK_EXPORT(long, syscall, (long number, long a, long b, long c, long d, long e, long f)) {
  if (unlikely(g_runtime.recording) && unlikely(relock::leads_away(number))) {
    relock::look_at_syscall(number, a, b, c);
  }
  return real().syscall(number, a, b, c, d, e, f);
}

RELOCK_EXPORT(int, pthread_create,
              (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*),
               void* argument)) {
  if (unlikely(g_runtime.recording)) relock::prepare_for_threads();
  return real().pthread_create(thread, attributes, start, argument);
}
RELOCK_EXPORT(int, thrd_create, (thrd_t * thread, thrd_start_t start, void* argument)) {
  if (unlikely(g_runtime.recording)) relock::prepare_for_threads();
  return real().thrd_create(thread, start, argument);
}

RELOCK_EXPORT(int, chroot, (const char* path)) {
  if (unlikely(g_runtime.recording)) relock::prepare_to_leave();
  return real().chroot(path);
}
RELOCK_EXPORT(int, setuid, (uid_t user)) {
  if (unlikely(g_runtime.recording)) relock::prepare_to_leave();
  return real().setuid(user);
}
RELOCK_EXPORT(int, seteuid, (uid_t user)) {
  if (unlikely(g_runtime.recording)) relock::prepare_to_leave();
  return real().seteuid(user);
}
RELOCK_EXPORT(int, setreuid, (uid_t user, uid_t effective)) {
  if (unlikely(g_runtime.recording)) relock::prepare_to_leave();
  return real().setreuid(user, effective);
}
RELOCK_EXPORT(int, setresuid, (uid_t user, uid_t effective, uid_t saved)) {
  if (unlikely(g_runtime.recording)) relock::prepare_to_leave();
  return real().setresuid(user, effective, saved);
}

RELOCK_EXPORT(void, _exit, (int status)) {
  if (unlikely(g_runtime.recording)) relock::close_at_once();
  real()._exit(status);
}
RELOCK_EXPORT(void, _Exit, (int status)) {
  if (unlikely(g_runtime.recording)) relock::close_at_once();
  real()._Exit(status);
}
