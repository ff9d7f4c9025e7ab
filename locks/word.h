// The 32-bit lock words: which bit means what, in a mutex and in a 4-byte spinlock.
//
// A mutex word (bytes 0-3 of pthread_mutex_t; all zero is "free", as static initialisers leave it):
//
//    31         20 19                        6 5 4 3 2 1 0
//   +-------------+---------------------------+-+-+-+-+-+-+
//   | algorithm's |          passive          |Q|S|A|R|O|L|
//   +-------------+---------------------------+-+-+-+-+-+-+
//     ticket: tail, head (6 bits each)         | | | | | +- L locked: somebody owns it
//     qspinlock: tail = slot + 1               | | | | +--- O offered: released to the waiter that
//     tas: unused                              | | | |        had set R, to nobody else
//                                              | | | +----- R reserved: a waiter without ticket or
//                                              | | |          node wants the next release
//                                              | | +------- A admitting: a passive waiter has been
//                                              | |            let in, but has not come yet
//                                              | +--------- S sleeper: an admitted waiter sleeps on
//                                              |              the word
//                                              +----------- Q qspinlock: pending; tas: somebody
//                                                             spins; auto-ticket: queued
//   passive: threads registered at the gate (gate.h)
//
// A spinlock word (pthread_spinlock_t has no room and no static initialiser, so its free word is a
// marker that no state of glibc's lock shows: glibc's are small positive, zero or small negative,
// that is, bits 13-15 all equal for every magnitude below 8192):
//
//    31           24 23           16 15  13 12    9  8 7           0
//   +---------------+---------------+------+-------+--+-------------+
//   |      tail = slot + 1          | 010  | epoch |P |      L      |   qspinlock
//   |Q|  unused     |     tail      | 010  | epoch |    head    |L  |   ticket: head in bits 1-8
//   +---------------+---------------+------+-------+--+-------------+
//
// Invariants (checked by the explorer):
//   W1  L and O are never both set; the lock is free only if neither is.
//   W2  "locked, nobody waits" is kFree | kLocked and "free, nobody waits" is kFree for every
//       algorithm, so they share one fast path.
//   W3  a nonzero `passive` count implies that some thread owns the lock, is offered it, waits as
//       an admitted waiter, or has been admitted (A) and is on its way: the next release sees it.
//   W4  R implies that the lock is held or an admitted waiter is about to own it.
#pragma once

#include <cstdint>

namespace relock {

struct MutexLayout {
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kLocked = 1u << 0;
  static constexpr std::uint32_t kOffered = 1u << 1;
  static constexpr std::uint32_t kReserved = 1u << 2;
  static constexpr std::uint32_t kAdmitting = 1u << 3;
  static constexpr std::uint32_t kSleeper = 1u << 4;
  static constexpr std::uint32_t kPending = 1u << 5;
  static constexpr std::uint32_t kQueued = 1u << 5;  // auto-ticket
  static constexpr std::uint32_t kPassiveOne = 1u << 6;
  static constexpr std::uint32_t kPassiveMask = 0x3fffu << 6;
  static constexpr std::uint32_t kHeld = kLocked | kOffered;
  static constexpr bool kCanSleep = true;

  static constexpr int kTailShift = 20;  // qspinlock
  static constexpr std::uint32_t kTailMask = 0xfffu << kTailShift;

  static constexpr int kTicketBits = 6;  // ticket
  static constexpr int kTicketHeadShift = 20;
  static constexpr int kTicketTailShift = 26;

  static constexpr std::uint32_t with_epoch(std::uint32_t word, std::uint32_t) { return word; }
};

struct SpinLayout {
  static constexpr std::uint32_t kMarkerMask = 7u << 13;
  static constexpr std::uint32_t kFree = 2u << 13;
  static constexpr std::uint32_t kLocked = 1u << 0;
  static constexpr std::uint32_t kPending = 1u << 8;
  static constexpr std::uint32_t kHeld = kLocked;
  static constexpr std::uint32_t kSleeper = 0;  // nobody sleeps on a spinlock's word
  static constexpr bool kCanSleep = false;

  static constexpr int kTailShift = 16;
  static constexpr std::uint32_t kTailMask = 0xffffu << kTailShift;

  static constexpr int kTicketBits = 8;
  static constexpr int kTicketHeadShift = 1;
  static constexpr int kTicketTailShift = 16;

  static constexpr std::uint32_t kQueued = 1u << 31;  // auto-ticket

  static constexpr int kEpochShift = 9;
  static constexpr std::uint32_t kEpochMask = 0xfu << kEpochShift;

  // A word with waiters says in which process they wait, so that a forked child knows its ghosts.
  static constexpr std::uint32_t with_epoch(std::uint32_t word, std::uint32_t epoch) {
    return (word & ~kEpochMask) | ((epoch << kEpochShift) & kEpochMask);
  }
  static constexpr bool is_ours(std::uint32_t word) { return (word & kMarkerMask) == kFree; }
};

static_assert((MutexLayout::kPassiveMask & MutexLayout::kTailMask) == 0);
static_assert(SpinLayout::is_ours(SpinLayout::kFree | SpinLayout::kLocked));
static_assert(!SpinLayout::is_ours(1) && !SpinLayout::is_ours(0) &&
              !SpinLayout::is_ours(static_cast<std::uint32_t>(-4000)));

// Bits by which sleepers on a mutex word are told apart in a futex bitset. Tickets use bits 0-15.
namespace wake_bit {
inline constexpr std::uint32_t kPending = 1u << 0;
inline constexpr std::uint32_t kQueueHead = 1u << 1;
inline constexpr std::uint32_t kNap = 1u << 29;       // ends by its time-out alone
inline constexpr std::uint32_t kWantsR = 1u << 30;    // timed, waiting for R to be free
inline constexpr std::uint32_t kReserved = 1u << 31;  // timed, owner of R
}  // namespace wake_bit

// What a release does to the word, and whom to wake on it afterwards.
struct Release {
  std::uint32_t word;
  std::uint32_t wake_bits;  // 0: nobody
};

}  // namespace relock
