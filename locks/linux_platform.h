// The production Platform: compiler atomics, futex, vDSO clock, rseq.
//
// Everything here keeps errno and makes no system call but futex. Futex calls are issued with
// inline assembly rather than syscall(2), so nothing can be interposed in between and errno is
// never written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "backoff.h"
#include "look_memory.h"
#include "platform.h"

namespace relock {

template <class P>
class SlotTable;
template <class P>
struct SpinGate;
template <class P>
class TicketQueueTable;

// A 32-bit cell with the layout of a std::uint32_t, so that it can lie inside a pthread object.
class LinuxAtomic32 {
 public:
  // For the recorder, which is another library.
  std::uint32_t* address() { return &value_; }
  std::uint32_t load(MemoryOrder order) const {
    return __atomic_load_n(&value_, static_cast<int>(order));
  }
  void store(std::uint32_t value, MemoryOrder order) {
    __atomic_store_n(&value_, value, static_cast<int>(order));
  }
  std::uint32_t exchange(std::uint32_t value, MemoryOrder order) {
    return __atomic_exchange_n(&value_, value, static_cast<int>(order));
  }
  bool compare_exchange(std::uint32_t& expected, std::uint32_t desired, MemoryOrder success) {
    return __atomic_compare_exchange_n(&value_, &expected, desired, /*weak=*/false,
                                       static_cast<int>(success), __ATOMIC_ACQUIRE);
  }
  std::uint32_t fetch_add(std::uint32_t operand, MemoryOrder order) {
    return __atomic_fetch_add(&value_, operand, static_cast<int>(order));
  }
  std::uint32_t fetch_sub(std::uint32_t operand, MemoryOrder order) {
    return __atomic_fetch_sub(&value_, operand, static_cast<int>(order));
  }
  std::uint32_t fetch_or(std::uint32_t operand, MemoryOrder order) {
    return __atomic_fetch_or(&value_, operand, static_cast<int>(order));
  }
  std::uint32_t fetch_and(std::uint32_t operand, MemoryOrder order) {
    return __atomic_fetch_and(&value_, operand, static_cast<int>(order));
  }
  void store_low_byte(std::uint8_t value, MemoryOrder order) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits 0-7 are the first byte");
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(&value_), value, static_cast<int>(order));
  }

 private:
  std::uint32_t value_;
};
static_assert(sizeof(LinuxAtomic32) == 4 && alignof(LinuxAtomic32) == 4);

class LinuxAtomic64 {
 public:
  std::uint64_t load(MemoryOrder order) const {
    return __atomic_load_n(&value_, static_cast<int>(order));
  }
  bool compare_exchange(std::uint64_t& expected, std::uint64_t desired, MemoryOrder success) {
    return __atomic_compare_exchange_n(&value_, &expected, desired, /*weak=*/false,
                                       static_cast<int>(success), __ATOMIC_ACQUIRE);
  }

 private:
  std::uint64_t value_;
};
static_assert(sizeof(LinuxAtomic64) == 8 && alignof(LinuxAtomic64) == 8);

template <class T>
class LinuxAtomicPtr {
 public:
  T* load(MemoryOrder order) const { return __atomic_load_n(&value_, static_cast<int>(order)); }
  void store(T* value, MemoryOrder order) {
    __atomic_store_n(&value_, value, static_cast<int>(order));
  }
  T* exchange(T* value, MemoryOrder order) {
    return __atomic_exchange_n(&value_, value, static_cast<int>(order));
  }
  bool compare_exchange(T*& expected, T* desired, MemoryOrder success) {
    return __atomic_compare_exchange_n(&value_, &expected, desired, /*weak=*/false,
                                       static_cast<int>(success), __ATOMIC_ACQUIRE);
  }

 private:
  T* value_;
};

namespace linux_detail {

// A program may define clock_gettime itself (tests that steer time do); our waits must follow the
// kernel's clocks. The interposer puts the C library's own function here when it starts.
inline int (*clock_function)(clockid_t, timespec*) = nullptr;

inline long futex(const void* address, int op, std::uint32_t value, const timespec* timeout,
                  std::uint32_t bitset) {
#if defined(__x86_64__)
  long result;
  register const timespec* r10 __asm__("r10") = timeout;
  register const void* r8 __asm__("r8") = nullptr;
  register std::uint64_t r9 __asm__("r9") = bitset;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_futex), "D"(address), "S"(op), "d"(value), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = SYS_futex;
  register long x0 __asm__("x0") = reinterpret_cast<long>(address);
  register long x1 __asm__("x1") = op;
  register long x2 __asm__("x2") = value;
  register long x3 __asm__("x3") = reinterpret_cast<long>(timeout);
  register long x4 __asm__("x4") = 0;
  register long x5 __asm__("x5") = bitset;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory", "cc");
  return x0;
#else
#error "relock knows the futex call of x86-64 and aarch64 only"
#endif
}

inline timespec to_timespec(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  if (ns < 0) ns = 0;  // the kernel refuses negative times; 0 has passed on either clock
  return timespec{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

}  // namespace linux_detail

struct LinuxPlatform {
  using Atomic32 = LinuxAtomic32;
  using Atomic64 = LinuxAtomic64;
  template <class T>
  using AtomicPtr = LinuxAtomicPtr<T>;

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
  }

  static WaitResult futex_wait(Atomic32& cell, std::uint32_t expected, std::uint32_t bitset,
                               const Deadline* deadline) {
    int op = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
    timespec until{};
    if (deadline != nullptr) {
      until = linux_detail::to_timespec(deadline->ns);
      if (deadline->realtime) op |= FUTEX_CLOCK_REALTIME;
    }
    const long result =
        linux_detail::futex(&cell, op, expected, deadline != nullptr ? &until : nullptr, bitset);
    if (result == -EAGAIN_) return WaitResult::kValueChanged;
    if (result == -ETIMEDOUT_) return WaitResult::kTimedOut;
    return WaitResult::kWoken;  // also EINTR: the caller looks again
  }

  static int futex_wake(const void* address, int count, std::uint32_t bitset) {
    const long result = linux_detail::futex(address, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG,
                                            static_cast<std::uint32_t>(count), nullptr, bitset);
    return result < 0 ? 0 : static_cast<int>(result);  // the page may be gone: nobody to wake
  }

  static std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    if (linux_detail::clock_function != nullptr) {
      linux_detail::clock_function(clock, &now);  // vDSO
    } else {
      clock_gettime(clock, &now);
    }
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
  static std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }
  static Deadline after_ns(std::uint64_t delta) {
    return Deadline{now_ns() + static_cast<std::int64_t>(delta), false};
  }
  static std::int64_t remaining_ns(const Deadline& deadline) {
    return deadline.ns - clock_ns(deadline.realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC);
  }
  static bool expired(const Deadline& deadline) {
    return clock_ns(deadline.realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC) >= deadline.ns;
  }

  static int cpu();  // runtime.cpp of the user: rseq, or -1
  static void note_cpu();
  static bool was_here(std::uint32_t tid);
  static int node();  // NUMA node as topology.h has it, 0 when there is one
  static std::uint32_t choose(std::uint32_t n);
  static std::uint32_t epoch();
  static SlotTable<LinuxPlatform>* slots();
  static TicketQueueTable<LinuxPlatform>* ticket_queues();
  static BackoffTable* backoff_table();
  static LookMemory* look_memory();
  static std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<std::uint64_t>(now_ns());
#endif
  }
  static SpinGate<LinuxPlatform>* spin_gate(const void* address);
  static std::uint32_t slot_hint() {
    const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    return static_cast<std::uint32_t>((thread >> 12) * 0x9e3779b97f4a7c15u >> 40);
  }

 private:
  // <cerrno> would invite uses of errno here; the two values that matter are part of the ABI.
  static constexpr long EAGAIN_ = 11;
  static constexpr long ETIMEDOUT_ = 110;
};

}  // namespace relock
