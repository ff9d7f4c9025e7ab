// The tables of the profile file. All updates are atomic and none waits: they may be made in any
// thread, in a signal handler, and while the process is being killed.
#pragma once

#include "interpose/profile/process_state.h"

namespace relock::profile {

inline constexpr std::uint32_t kNoRow = 0xffffffff;

// ---- locks ----

// Where objects were initialised, before anybody waits for them. Lossy: two objects may share an
// entry, the later one keeps it.
void remember_init_site(const void* object, const void* site);
void forget_init_site(const void* object);

// The row of a live object, made when `create`; kNoRow when there is none or no room (counted).
std::uint32_t find_lock(Header* header, const void* object, int kind, bool create);
inline LockRow& lock_row(Header* header, std::uint32_t row) {
  return rows<LockRow>(header, kSectionLocks)[row];
}
void retire_lock(LockRow& lock, std::uint64_t acquisitions);
// Counts a wait that has ended, all but its stacks.
void count_wait(Header* header, std::uint32_t row, const RelockWaitEnd& end);
void count_hold(LockRow& lock, std::uint64_t hold_ns, std::uint32_t weight);
// The object's counter, which may have wrapped around since the row heard of it. Advances of less
// than `least_step` are left for later.
void count_acquisitions(LockRow& lock, std::uint64_t counter, std::uint64_t least_step);
// Locks that nobody has waited for may use half of the table.
bool has_room_for_idle_locks(const Header* header);

// The sums of a row and its shards.
struct WaitSums {
  std::uint64_t contended;
  std::uint64_t wait_ns;
  std::uint64_t max_wait_ns;
};
WaitSums wait_sums(Header* header, const LockRow& lock);

// ---- threads ----

// Finds where the C library counts its threads.
void set_up_thread_count();
// Adds the time since the last call, for each thread there is, to the header; seldom does anything.
void count_threads(Header* header, std::uint64_t now_ns, bool at_once);
// No other thread can record any more.
bool is_last_thread();

// ---- stacks ----

// The number of this stack (row + 1), 0 when there was no room.
std::uint32_t intern_stack(Header* header, const std::uint64_t* frames, std::uint32_t count);

// ---- tickets ----

// A ticket for a sampled wait, never 0 but when the table is full (counted).
std::uint32_t begin_ticket(Header* header, std::uint32_t lock, std::uint32_t weight,
                           std::uint64_t now_ns);
// By the waiter, before it ends the ticket.
void set_waiter_stack(Header* header, std::uint32_t ticket, std::uint32_t stack);
void reweigh_ticket(Header* header, std::uint32_t ticket, std::uint32_t weight);
// Whether the ticket is still of use to its releaser; if so the caller takes a stack and calls
// release_ticket.
bool claim_release(Header* header, std::uint32_t ticket);
void release_ticket(Header* header, std::uint32_t ticket, std::uint32_t blocker_stack,
                    std::uint64_t now_ns);
// expect_release: a release may still come; otherwise the wait is recorded without a blocker.
void end_ticket(Header* header, std::uint32_t ticket, std::uint64_t wait_ns, bool expect_release);
// Records the ended waits whose release was never reported.
void settle_tickets(Header* header);

}  // namespace relock::profile
