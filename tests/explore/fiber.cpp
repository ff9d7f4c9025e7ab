#include "fiber.h"

#include <sys/mman.h>

#include <cstdlib>

namespace relock::explore {

// relock_explore_pass(save, target): pushes what the calling convention makes the callee keep,
// stores the stack pointer in *save, and pops the same from target. The floating-point control
// words stay as they are: nobody here changes them.
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl relock_explore_pass\n"
    ".type relock_explore_pass, @function\n"
    "relock_explore_pass:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size relock_explore_pass, . - relock_explore_pass\n");
namespace {
constexpr std::size_t kEntrySlot = 6;
constexpr std::size_t kFrameWords = 8;  // the entry sees a stack as after a call: 16n + 8
}  // namespace
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl relock_explore_pass\n"
    ".type relock_explore_pass, %function\n"
    "relock_explore_pass:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n"
    ".size relock_explore_pass, . - relock_explore_pass\n");
namespace {
constexpr std::size_t kEntrySlot = 11;  // x30
constexpr std::size_t kFrameWords = 20;
}  // namespace
#else
#error "the explorer knows how to switch stacks on x86-64 and aarch64 only"
#endif

extern "C" void relock_explore_pass(void** save, void* target);

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
}

void Fiber::prepare(void (*entry)()) {
  if (stack_ == nullptr) {
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    stack_ = static_cast<std::uint8_t*>(memory);
  }
  auto* frame = reinterpret_cast<std::uint64_t*>(stack_ + kStackBytes) - kFrameWords;
  for (std::size_t i = 0; i < kFrameWords; ++i) frame[i] = 0;
  frame[kEntrySlot] = reinterpret_cast<std::uint64_t>(entry);
  sp_ = frame;
}

void Fiber::pass(Fiber& from, Fiber& to) { relock_explore_pass(&from.sp_, to.sp_); }

bool Fiber::holds(const void* address) const {
  const auto* byte = static_cast<const std::uint8_t*>(address);
  return stack_ != nullptr && byte >= stack_ && byte < stack_ + kStackBytes;
}

bool Fiber::uses(const void* address) const { return holds(address) && address >= sp_; }

}  // namespace relock::explore
