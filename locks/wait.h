// How a waiter spends its time: shared by all locks.
#pragma once

#include <cstdint>

#include "budget.h"
#include "platform.h"
#include "word.h"

namespace relock {

// Whether a bound of ours, which is on the monotonic clock, ends before a caller's deadline.
template <class P>
bool ends_before(const Deadline& bound, const Deadline& deadline) {
  if (!deadline.realtime) return bound.ns < deadline.ns;
  return !P::expired(deadline) && bound.ns - P::now_ns() < P::remaining_ns(deadline);
}

// Told once per acquisition, before the waiter first gives up its CPU. Never called by an owner.
struct WaitObserver {
  void (*before_sleep)(WaitObserver* self);
};

// One slow acquisition: its limits, and what it has found out so far.
template <class P>
struct WaitContext {
  const Budget* budget;
  const Deadline* deadline = nullptr;
  typename P::Atomic32* aux = nullptr;  // bits 16-31 are the algorithm's; null in a spinlock
  WaitObserver* observer = nullptr;
  std::uint32_t spin_pauses = 0;  // this acquisition's allowance, from the lock's learned budget
  std::uint32_t pauses = 0;       // spent so far
  bool patient = false;           // nobody ends this wait with a wake: pause, then nap
  bool slept = false;
  bool spinning_failed = false;
  bool alone = false;            // when the last sleep at the gate began, nobody else waited
  bool promoted = false;         // let itself in where order is not kept: asks for the next release
  std::uint32_t owner_seen = 0;  // when the last sleep at the gate began
  std::uint32_t asked_in_vain = 0;  // releases asked for, awake, that did not come in time
  std::uint32_t promotions = 0;     // sleeps at the gate that reached their bound under one owner

  // The sleep has reached its bound. While one owner holds the lock, coming in is no use.
  void bound_reached(std::uint32_t owner) {
    constexpr std::uint32_t kMostPromotions = 20;
    if (owner != owner_seen) {
      promotions = 0;
    } else if (promotions < kMostPromotions) {
      ++promotions;
    }
  }

  bool spins_only() const { return patient || budget->mode == WaitMode::kSpin; }

  void going_to_sleep() {
    if (!slept && observer != nullptr) observer->before_sleep(observer);
    slept = true;
  }
};

// Pauses for one waiting phase. In spin mode it never runs out, but after a millisecond it naps in
// a short timed futex, so that a real-time waiter on its owner's CPU lets the owner run.
template <class P>
class Spinner {
 public:
  explicit Spinner(WaitContext<P>& context) : Spinner(context, context.spin_pauses) {}
  Spinner(WaitContext<P>& context, std::uint32_t allowance)
      : context_(context), allowance_(allowance) {}

  // Pauses once. False: the allowance is used up and the caller may sleep.
  // `cell` and `seen` say what the caller waits to see change.
  bool spin(typename P::Atomic32& cell, std::uint32_t seen) {
    if (context_.spins_only()) {
      pause_or_nap(cell, seen);
      return true;
    }
    if (spent_ >= allowance_) {
      context_.spinning_failed = true;
      return false;
    }
    ++spent_;
    ++context_.pauses;
    P::pause();
    return true;
  }

  // The same, `pauses` times without a look in between; a nap ends them.
  bool spin_for(std::uint32_t pauses, typename P::Atomic32& cell, std::uint32_t seen) {
    const std::uint32_t naps = naps_;
    for (std::uint32_t i = 0; i < pauses && naps_ == naps; ++i) {
      if (!spin(cell, seen)) return false;
    }
    return true;
  }

  // For waits that nobody ends with a wake: pauses, later naps.
  void pause_or_nap(typename P::Atomic32& cell, std::uint32_t seen) {
    constexpr std::uint32_t kClockEvery = 64;
    ++spent_;
    P::pause();
    if (spent_ % kClockEvery != 0 && context_.budget->spin_before_nap_ns != 0) return;
    const std::int64_t now = P::now_ns();
    if (since_ == 0) since_ = now;
    if (now - since_ < context_.budget->spin_before_nap_ns) return;
    nap_for(cell, seen, context_.budget->nap_ns);
  }

  // One short timed sleep, longer each time.
  void nap(typename P::Atomic32& cell, std::uint32_t seen) {
    if (nap_ns_ == 0) nap_ns_ = context_.budget->nap_ns;
    nap_for(cell, seen, nap_ns_);
    nap_ns_ *= 2;
    if (nap_ns_ > context_.budget->nap_max_ns) nap_ns_ = context_.budget->nap_max_ns;
  }

 private:
  void nap_for(typename P::Atomic32& cell, std::uint32_t seen, std::uint64_t ns) {
    context_.going_to_sleep();
    ++naps_;
    const Deadline until = P::after_ns(ns);
    (void)P::futex_wait(cell, seen, wake_bit::kNap, &until);
  }

  WaitContext<P>& context_;
  const std::uint32_t allowance_;
  std::uint32_t spent_ = 0;
  std::uint32_t naps_ = 0;
  std::int64_t since_ = 0;
  std::uint64_t nap_ns_ = 0;
};

// What a releaser must do after its release, prepared while it still owned the lock.
template <class P>
struct ReleaseNote {
  const void* wake = nullptr;            // one sleeper at this address
  typename P::Atomic32* bump = nullptr;  // an element that a waiter looks at; never in the object

  void carry_out() const {
    if (bump != nullptr) bump->fetch_add(1, MemoryOrder::kRelease);  // A1 of auto_ticket.h
    if (wake != nullptr) P::futex_wake(wake, 1, kAnyBit);
  }
};

// How an algorithm's part of an acquisition ended.
enum class Joined : std::uint8_t {
  kAcquired,
  kNoRoom,     // no ticket or queue node free: compete without one
  kAtTheGate,  // registered as a passive waiter again (tas)
};

}  // namespace relock
