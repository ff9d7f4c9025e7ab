// What a lock may ask of the world it runs in.
//
// Every lock in this folder is a template over a Platform `P`. The same source runs in production
// (linux_platform.h) and under the exhaustive scheduler in tests/explore/, which implements this
// contract with cells it can observe. Nothing else in locks/ names an atomic, a futex or a clock.
//
// A Platform is a type with static members only:
//
//   P::Atomic32                      a 32-bit cell, trivially laid out as a std::uint32_t
//     load(order)                    order is a MemoryOrder; every call spells it
//     store(value, order)
//     exchange(value, order)               -> previous value
//     compare_exchange(expected&, desired, success_order)   strong; on failure `expected` is
//                                          reloaded with acquire order and false is returned
//     fetch_add / fetch_sub / fetch_or / fetch_and (operand, order)   -> previous value
//     store_low_byte(value, order)   stores bits 0-7 alone; loads forward correctly from it
//
//   P::Atomic64                      a 64-bit cell: load, compare_exchange
//   P::AtomicPtr<T>                  a pointer cell: load, store, exchange, compare_exchange
//
//   P::pause()                       one spin-wait hint; the unit of every *_pauses quantity
//   P::futex_wait(cell, expected, bitset, deadline) -> WaitResult
//                                    sleeps while cell == expected; may return early (spurious).
//                                    `deadline` may be null (no limit). Preserves errno.
//   P::futex_wake(address, count, bitset) -> int   threads woken. Only the ADDRESS is used: the
//                                    cell may already be gone. Preserves errno.
//   P::now_ns()                      monotonic nanoseconds
//   P::after_ns(delta) -> Deadline   now + delta on the monotonic clock
//   P::expired(deadline) -> bool, P::remaining_ns(deadline) -> std::int64_t (may be negative)
//   P::cpu() -> int                  CPU of this thread, or -1 when unknown (a hint)
//   P::note_cpu()                    remembers for others which CPU this thread is on
//   P::was_here(owner) -> bool       whether that thread noted the caller's CPU last: then it can
//                                    hardly be running now (a hint). `owner`: as in the object; 0:
//                                    false
//   P::node() -> int                 NUMA node of this thread, 0 when unknown
//   P::choose(n) -> std::uint32_t    pseudo-random number below n (n >= 1)
//   P::epoch() -> std::uint32_t      how many forks this process is away from where relock started;
//                                    a value below 2^30. Objects compare it with their own.
//   P::slot_hint() -> std::uint32_t  where this thread starts to look for a free queue node
//   P::spin_gate(address) -> SpinGate<P>*   the gate of a spinlock (shared by those that hash
//                                    alike), or null
//   P::ticket_queues() -> TicketQueueTable<P>*   queues of auto-ticket, or null
//   P::backoff_table() -> BackoffTable*   this thread's learned delays, or null
//   P::ticks() -> std::uint64_t      a counter that is cheap to read, about one to three per ns
//   P::look_memory() -> LookMemory*  this thread's last contended acquisition, or null
//   P::slots() -> SlotTable<P>*      queue nodes, or null when there are none (not started yet)
//
// Two contracts bind every lock:
//   last touch   the store that releases a lock is the last access to the object's memory
//   no wake lost a thread sleeps only after it has made sure, in one atomic step with the state it
//                saw, that the release it waits for will see it
#pragma once

#include <cstdint>

namespace relock {

enum class MemoryOrder : int {
  kRelaxed = __ATOMIC_RELAXED,
  kAcquire = __ATOMIC_ACQUIRE,
  kRelease = __ATOMIC_RELEASE,
  kAcqRel = __ATOMIC_ACQ_REL,
  kSeqCst = __ATOMIC_SEQ_CST,
};

// When a timed acquisition gives up. `ns` counts from the clock's epoch.
struct Deadline {
  std::int64_t ns = 0;
  bool realtime = false;  // CLOCK_REALTIME, else CLOCK_MONOTONIC
};

enum class WaitResult : std::uint8_t {
  kWoken,         // woken, or a spurious return
  kValueChanged,  // the cell did not hold the expected value
  kTimedOut,
};

enum class Acquire : std::uint8_t {
  kAcquired,
  kTimedOut,
};

// All 32 bits: a sleeper that any wake may end.
inline constexpr std::uint32_t kAnyBit = 0xffffffffu;

}  // namespace relock
