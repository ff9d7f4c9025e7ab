#include "interpose/profile/stack_bounds.h"

#include <sys/syscall.h>

#include "interpose/profile/process_state.h"

extern "C" void* __libc_stack_end;  // top of the main thread's stack, by the dynamic loader

namespace relock::profile {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLongestMainStack = 64u << 20;
constexpr std::uint64_t kLongestProbe = 1u << 20;
constexpr std::uint64_t kLongestWalk = 64u << 20;

constexpr std::uint64_t page_of(std::uint64_t address) { return address & ~(kPage - 1); }

// Whether the page can be read. The call asks to change the signal mask in a way that does not
// exist: the kernel reads the mask first, so it answers EFAULT or EINVAL and changes nothing.
bool page_is_readable(std::uint64_t page) {
  constexpr long kFault = -14;
  long result = SYS_rt_sigprocmask;
  register long length __asm__("r10") = 8;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(-1L), "S"(page), "d"(0L), "r"(length)
                   : "rcx", "r11", "memory");
  return result != kFault;
}

bool range_is_readable(std::uint64_t low, std::uint64_t high) {
  if (high - low > kLongestProbe) return false;
  for (std::uint64_t page = page_of(low); page < high; page += kPage) {
    if (!page_is_readable(page)) return false;
  }
  return true;
}

// The main thread's stack is one mapping up to its end, and nothing else is ever mapped so close
// below that end.
bool find_main_stack(std::uint64_t stack_pointer) {
  const auto end = reinterpret_cast<std::uint64_t>(__libc_stack_end);
  if (stack_pointer >= end || end - stack_pointer > kLongestMainStack) return false;
  thread_state.stack_low = page_of(stack_pointer);
  thread_state.stack_high = end;
  return true;
}

// Another thread's stack ends at its thread descriptor, whoever allocated it. A stack pointer
// elsewhere (a signal stack, a coroutine) is told by the guard page or the distance between.
bool find_thread_stack(std::uint64_t stack_pointer) {
  const auto end = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  if (stack_pointer >= end) return false;
  std::uint64_t known = end;
  if (thread_state.stack_high == end && thread_state.stack_low > stack_pointer) {
    known = thread_state.stack_low;
  }
  if (!range_is_readable(stack_pointer, known)) return false;
  thread_state.stack_low = page_of(stack_pointer);
  thread_state.stack_high = end;
  return true;
}

}  // namespace

void StackReader::move_to(std::uint64_t stack_pointer) {
  stack_pointer_ = stack_pointer;
  const ThreadState& thread = thread_state;
  const bool known = stack_pointer >= thread.stack_low && stack_pointer < thread.stack_high;
  if (known || find_main_stack(stack_pointer) || find_thread_stack(stack_pointer)) {
    low_ = thread.stack_low;
    high_ = thread.stack_high;
  } else {
    low_ = high_ = 0;
  }
}

bool has_room_below(std::uint64_t stack_pointer, std::uint64_t bytes) {
  ThreadState& thread = thread_state;
  const bool known = stack_pointer >= thread.stack_low && stack_pointer < thread.stack_high;
  if (!known && !find_main_stack(stack_pointer) && !find_thread_stack(stack_pointer)) return false;
  const std::uint64_t wanted = page_of(stack_pointer - bytes);
  if (wanted >= thread.stack_low) return true;
  if (!range_is_readable(wanted, thread.stack_low)) return false;
  thread.stack_low = wanted;
  return true;
}

bool StackReader::read_word(std::uint64_t address, std::uint64_t* value) {
  if ((address & 7) != 0) return false;
  const bool known = address >= low_ && address + 8 <= high_;
  if (!known) {
    // A stack that may be unmapped later: what is learned about it holds for this walk.
    if (address < stack_pointer_ || address - stack_pointer_ > kLongestWalk) return false;
    const std::uint64_t page = page_of(address);
    if (page != probed_page_ && !page_is_readable(page)) return false;
    probed_page_ = page;
  }
  *value = *reinterpret_cast<const std::uint64_t*>(address);
  return true;
}

}  // namespace relock::profile
