#include "interpose/profile/own_stack.h"

#include <csignal>
#include <cstddef>
#include <initializer_list>

#include "interpose/profile/process_state.h"
#include "interpose/profile/system.h"

#ifndef __x86_64__
#error "stacks are switched on x86-64 alone"
#endif

// The frame pointer keeps the way back, so the unwind rule holds on both stacks.
extern "C" void relock_call_on_stack(void (*work)(void*), void* argument, void* top);
__asm__(
    ".text\n"
    ".hidden relock_call_on_stack\n"
    ".globl relock_call_on_stack\n"
    ".type relock_call_on_stack, @function\n"
    "relock_call_on_stack:\n"
    "  .cfi_startproc\n"
    "  push %rbp\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset %rbp, -16\n"
    "  mov %rsp, %rbp\n"
    "  .cfi_def_cfa_register %rbp\n"
    "  mov %rdx, %rsp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  .cfi_def_cfa %rsp, 8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size relock_call_on_stack, . - relock_call_on_stack\n");

namespace relock::profile {

namespace {

// Untouched pages cost nothing.
constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kGuardBytes = 4096;

char* stacks;

// A place in ProcessState::stacks_busy, or -1.
int borrow() {
  constexpr int kAttempts = 2000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    for (int i = 0; i < static_cast<int>(kOwnStacks); ++i) {
      std::uint32_t free = 0;
      // Acquire pairs with give_back: what the last user left on the stack is no longer used.
      if (read(process->stacks_busy[i]) == 0 && exchange_if(process->stacks_busy[i], free, 1u)) {
        return i;
      }
    }
    __builtin_ia32_pause();
  }
  return -1;
}

void give_back(int index) { publish(process->stacks_busy[index], 0u); }

// No handler of the program runs on these stacks: they are not its own, and the kernel, finding the
// stack pointer outside of a signal stack that is in use, would begin that one from its top again.
// What a thread does to itself (a fault) cannot be put off.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    std::uint64_t all = ~std::uint64_t{0};
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
      all &= ~(std::uint64_t{1} << (own - 1));
    }
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before_, sizeof all);
  }
  ~SignalsBlocked() {
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  std::uint64_t before_ = 0;
};

}  // namespace

bool set_up_own_stacks() {
  const std::size_t bytes = kOwnStacks * kStackBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  stacks = static_cast<char*>(memory);
  for (std::size_t i = 0; i < kOwnStacks; ++i) {
    mprotect(stacks + i * kStackBytes, kGuardBytes, PROT_NONE);
  }
  return true;
}

bool on_own_stack(void (*work)(void*), void* argument) {
  if (read(sandboxed) && read(host.stacks) == 0) return false;  // the mask may not be touched
  const SignalsBlocked blocked;
  const int index = borrow();
  if (index < 0) return false;
  relock_call_on_stack(work, argument,
                       stacks + (static_cast<std::size_t>(index) + 1) * kStackBytes);
  give_back(index);
  return true;
}

}  // namespace relock::profile
