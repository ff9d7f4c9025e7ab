// Stacks of model threads, and how control passes between them. All of them run on one OS thread,
// so that an execution is a plain function of the scheduler's choices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace relock::explore {

class Fiber {
 public:
  static constexpr std::size_t kStackBytes = 64 * 1024;

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Makes the fiber start in entry() at its next turn, on an empty stack. What an abandoned
  // execution left on the stack is simply forgotten: model threads own nothing.
  void prepare(void (*entry)());

  // Suspends `from`, which must be the running one, and continues `to`.
  static void pass(Fiber& from, Fiber& to);

  // Whether `address` lies on this stack, and if so, in the part that a suspended fiber uses.
  bool holds(const void* address) const;
  bool uses(const void* address) const;

 private:
  void* sp_ = nullptr;
  std::uint8_t* stack_ = nullptr;  // null: the OS thread's own stack
};

}  // namespace relock::explore
