// How much thread time the process has had: what waits are a share of.
#include <dlfcn.h>

#include "interpose/profile/tables.h"

namespace relock::profile {

namespace {

constexpr std::uint64_t kCountEveryNs = 5000000;

// The C library's count of the process's threads, which it keeps for debuggers. Asking the kernel
// would take a system call that a sandbox may forbid.
const std::uint32_t* thread_count;

}  // namespace

void set_up_thread_count() {
  thread_count = static_cast<const std::uint32_t*>(dlsym(RTLD_DEFAULT, "__nptl_nthreads"));
}

bool is_last_thread() { return thread_count != nullptr && read(*thread_count) == 1; }

void count_threads(Header* header, std::uint64_t now_ns, bool at_once) {
  std::uint64_t counted_ns = read(process->threads_counted_ns);
  if (counted_ns == 0) counted_ns = header->start_monotonic_ns;
  if (thread_count == nullptr || now_ns <= counted_ns) return;
  if (now_ns - counted_ns < kCountEveryNs && !at_once) return;
  std::uint64_t seen = read(process->threads_counted_ns);
  if (seen > counted_ns || !exchange_if(process->threads_counted_ns, seen, now_ns)) return;
  const std::uint32_t now = read(*thread_count);
  const std::uint32_t before = read(header->threads);
  // Threads that came or went meanwhile were there for half of a short time. In a long one nobody
  // waited, and they are taken not to have been there.
  const std::uint64_t passed_ns = now_ns - counted_ns;
  const std::uint32_t fewer = before != 0 && before < now ? before : now;
  const bool shortly = before != 0 && passed_ns < 20 * kCountEveryNs;
  add(header->thread_ns, shortly ? passed_ns * (before + now) / 2 : passed_ns * fewer);
  write(header->threads, now);
  raise_to(header->threads_most, now);
}

}  // namespace relock::profile
