#include "interpose/profile/own_stack.h"

#include <cstddef>

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

// Signal handlers of the program run here too when they come in the middle. Untouched pages cost
// nothing.
constexpr std::size_t kStackBytes = 256 << 10;
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
  const int index = borrow();
  if (index < 0) return false;
  thread_state.own_stack = static_cast<std::uint32_t>(index) + 1;
  relock_call_on_stack(work, argument,
                       stacks + (static_cast<std::size_t>(index) + 1) * kStackBytes);
  thread_state.own_stack = 0;
  give_back(index);
  return true;
}

void keep_own_stack_after_fork() {
  if (thread_state.own_stack != 0) write(process->stacks_busy[thread_state.own_stack - 1], 1u);
}

}  // namespace relock::profile
