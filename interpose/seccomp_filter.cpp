// The instructions that the kernel accepts in a seccomp filter (Documentation/userspace-api/
// seccomp_filter.rst; classic BPF): loads come from struct seccomp_data, jumps only lead forward.
#include "interpose/seccomp_filter.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <linux/audit.h>
#include <linux/seccomp.h>

namespace relock {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

struct Machine {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  std::uint32_t memory[BPF_MEMWORDS] = {};
};

// False: the kernel would not have accepted it, or the result is undefined.
bool calculate(Machine& machine, const sock_filter& step) {
  const std::uint32_t operand = BPF_SRC(step.code) == BPF_X ? machine.x : step.k;
  switch (BPF_OP(step.code)) {
    case BPF_ADD:
      return machine.a += operand, true;
    case BPF_SUB:
      return machine.a -= operand, true;
    case BPF_MUL:
      return machine.a *= operand, true;
    case BPF_DIV:
      return operand != 0 && (machine.a /= operand, true);
    case BPF_MOD:
      return operand != 0 && (machine.a %= operand, true);
    case BPF_AND:
      return machine.a &= operand, true;
    case BPF_OR:
      return machine.a |= operand, true;
    case BPF_XOR:
      return machine.a ^= operand, true;
    case BPF_LSH:
      return operand < 32 && (machine.a <<= operand, true);
    case BPF_RSH:
      return operand < 32 && (machine.a >>= operand, true);
    case BPF_NEG:
      return machine.a = -machine.a, true;
    default:
      return false;
  }
}

bool load(std::uint32_t& target, const Machine& machine, const sock_filter& step,
          const seccomp_data& data) {
  switch (BPF_MODE(step.code)) {
    case BPF_IMM:
      return target = step.k, true;
    case BPF_LEN:
      return target = sizeof data, true;
    case BPF_MEM:
      return step.k < BPF_MEMWORDS && (target = machine.memory[step.k], true);
    case BPF_ABS:
      if (step.k > sizeof data - 4 || step.k % 4 != 0) return false;
      std::memcpy(&target, reinterpret_cast<const char*>(&data) + step.k, 4);
      return true;
    default:
      return false;
  }
}

// How many of the following instructions are passed over.
std::uint32_t jump(const Machine& machine, const sock_filter& step) {
  const std::uint32_t operand = BPF_SRC(step.code) == BPF_X ? machine.x : step.k;
  bool taken = false;
  switch (BPF_OP(step.code)) {
    case BPF_JA:
      return step.k;
    case BPF_JEQ:
      taken = machine.a == operand;
      break;
    case BPF_JGT:
      taken = machine.a > operand;
      break;
    case BPF_JGE:
      taken = machine.a >= operand;
      break;
    case BPF_JSET:
      taken = (machine.a & operand) != 0;
      break;
    default:
      break;
  }
  return taken ? step.jt : step.jf;
}

// One instruction that neither jumps nor returns.
bool perform(Machine& machine, const sock_filter& step, const seccomp_data& data) {
  switch (BPF_CLASS(step.code)) {
    case BPF_LD:
      return load(machine.a, machine, step, data);
    case BPF_LDX:
      return load(machine.x, machine, step, data);
    case BPF_ST:
      return step.k < BPF_MEMWORDS && (machine.memory[step.k] = machine.a, true);
    case BPF_STX:
      return step.k < BPF_MEMWORDS && (machine.memory[step.k] = machine.x, true);
    case BPF_ALU:
      return calculate(machine, step);
    case BPF_MISC:
      if (BPF_MISCOP(step.code) == BPF_TAX) return machine.x = machine.a, true;
      return machine.a = machine.x, true;
    default:
      return false;
  }
}

}  // namespace

bool filter_allows(const sock_fprog& filter, int number, const unsigned long (&arguments)[6]) {
  seccomp_data data{};
  data.nr = number;
  data.arch = kArchitecture;
  data.instruction_pointer = reinterpret_cast<std::uint64_t>(&filter_allows);
  for (int i = 0; i < 6; ++i) data.args[i] = arguments[i];
  Machine machine;
  if (filter.filter == nullptr) return false;
  for (std::uint32_t at = 0; at < filter.len; ++at) {
    const sock_filter& step = filter.filter[at];
    const std::uint32_t kind = BPF_CLASS(step.code);
    if (kind == BPF_RET) {
      const std::uint32_t answer = BPF_RVAL(step.code) == BPF_A ? machine.a : step.k;
      const std::uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
      return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
    }
    if (kind == BPF_JMP) {
      const std::uint32_t skipped = jump(machine, step);
      if (skipped >= filter.len - at) return false;
      at += skipped;
    } else if (!perform(machine, step, data)) {
      return false;
    }
  }
  return false;
}

}  // namespace relock
