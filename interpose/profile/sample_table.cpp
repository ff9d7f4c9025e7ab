// Stacks, the waits under way, and the pairs of stacks that they become.
#include <cstring>

#include "interpose/profile/tables.h"

namespace relock::profile {

namespace {

constexpr std::uint32_t kMaxProbes = 128;
constexpr std::uint32_t kSlotTries = 32;
constexpr std::uint32_t kSlotBits = 10;
// A ticket has 31 bits: the interposer keeps one more beside it.
constexpr std::uint32_t kGenerationMask = (1u << (31 - kSlotBits)) - 1;
static_assert(kTicketRows == 1u << kSlotBits);

std::uint64_t hash_frames(const std::uint64_t* frames, std::uint32_t count, std::uint64_t seed) {
  std::uint64_t hash = seed * 0x9e3779b97f4a7c15u + count;
  for (std::uint32_t i = 0; i < count; ++i) {
    hash ^= frames[i];
    hash *= 0xd6e8feb86659fd93u;
    hash ^= hash >> 29;
  }
  return hash | 1;  // 0 marks a free row
}

// Writes the frames of a row that this thread has just taken.
void store_frames(Header* header, StackRow& row, const std::uint64_t* frames, std::uint32_t count) {
  Section& section = header->sections[kSectionFrames];
  const std::uint32_t first = __atomic_fetch_add(&section.used, count, __ATOMIC_RELAXED);
  if (first > kFrameWords - kMaxFrames) {
    // Taken back, so that the number cannot wrap around in a long run.
    __atomic_fetch_sub(&section.used, count, __ATOMIC_RELAXED);
    return drop(header, kDropStacks);
  }
  std::memcpy(rows<std::uint64_t>(header, kSectionFrames) + first, frames, count * sizeof *frames);
  write(row.first_frame, first);
  publish(row.frames, count);  // pairs with whoever reads the file or the log's tables
}

void count_pair(Header* header, const TicketRow& ticket, std::uint32_t blocker_stack) {
  auto* table = rows<PairRow>(header, kSectionPairs);
  const std::uint64_t key = pair_key(ticket.lock, ticket.waiter_stack, blocker_stack);
  const std::uint64_t start = (key * 0xd6e8feb86659fd93u) >> 32;
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    PairRow& row = table[(start + probe) & (kPairRows - 1)];
    std::uint64_t seen = read(row.key);
    // The row's other fields start at zero and are only added to, so nothing has to be published.
    if (seen == 0 && exchange_if(row.key, seen, key)) seen = key;
    if (seen != key) continue;
    add(row.samples, std::uint64_t{1});
    add(row.wait_ns, ticket.wait_ns);
    add(row.weighted_samples, std::uint64_t{ticket.weight});
    const auto weighted = static_cast<unsigned __int128>(ticket.wait_ns) * ticket.weight;
    add(row.weighted_wait_ns, static_cast<std::uint64_t>(weighted / kWeightOne));
    return;
  }
  drop(header, kDropPairs);
}

TicketRow& ticket_row(Header* header, std::uint32_t ticket) {
  return rows<TicketRow>(header, kSectionTickets)[ticket & (kTicketRows - 1)];
}
bool same_generation(std::uint64_t state, std::uint32_t ticket) {
  return (static_cast<std::uint32_t>(state >> 8) & kGenerationMask) == ticket >> kSlotBits;
}

// Its waiter's until it ends: nobody moves it before, and whoever does reads it after end_ticket.
TicketRow* row_of_waiter(Header* header, std::uint32_t ticket) {
  if (ticket == 0) return nullptr;
  TicketRow& row = ticket_row(header, ticket);
  const std::uint64_t state = read_acquire(row.state);  // pairs with begin_ticket
  return (state & kTicketBegun) != 0 && same_generation(state, ticket) ? &row : nullptr;
}

// Of a wait whose own release was not reported (another waiter's mark was in the object): the
// latest release of the lock that was, if it came while this one waited.
std::uint32_t release_seen_by_others(Header* header, const TicketRow& row) {
  constexpr std::uint64_t kLateNs = 200000;  // from the release to its report
  const LockRow& lock = lock_row(header, row.lock);
  const std::uint64_t released_ns = read(lock.released_ns);
  if (released_ns < row.begin_ns || released_ns > row.begin_ns + row.wait_ns + kLateNs) return 0;
  return read(lock.releasing_stack);
}

// The wait has ended and nobody else will touch the row: it moves to the pairs.
void settle(Header* header, TicketRow& row, std::uint64_t state) {
  const bool released = (state & kTicketReleased) != 0;
  count_pair(header, row, released ? row.blocker_stack : release_seen_by_others(header, row));
  publish(row.state, state & ~std::uint64_t{0xff});  // pairs with begin_ticket
}

// Ended, with no release under way: may be settled by whoever takes it.
bool take_unreleased(TicketRow& row, std::uint64_t state) {
  const std::uint64_t flags = state & 0xff;
  return flags == (kTicketBegun | kTicketEnded) &&
         exchange_if(row.state, state, state | kTicketClaimed);
}

}  // namespace

std::uint32_t intern_stack(Header* header, const std::uint64_t* frames, std::uint32_t count) {
  if (count == 0) return 0;
  auto* table = rows<StackRow>(header, kSectionStacks);
  const std::uint32_t generation = read(header->module_generation);
  const std::uint64_t hash = hash_frames(frames, count, generation);
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe) {
    const std::uint32_t index = static_cast<std::uint32_t>((hash >> 20) + probe) & (kStackRows - 1);
    StackRow& row = table[index];
    std::uint64_t seen = read(row.hash);
    if (seen == 0 && exchange_if(row.hash, seen, hash)) {
      write(row.generation, generation);
      store_frames(header, row, frames, count);
      return index + 1;
    }
    // 64 bits of hash stand for the frames: two stacks that share them are not expected to meet.
    if (seen == hash) return index + 1;
  }
  drop(header, kDropStacks);
  return 0;
}

std::uint32_t begin_ticket(Header* header, std::uint32_t lock, std::uint32_t weight,
                           std::uint64_t now_ns) {
  auto* table = rows<TicketRow>(header, kSectionTickets);
  for (std::uint32_t attempt = 0; attempt < kSlotTries; ++attempt) {
    const std::uint32_t next = __atomic_fetch_add(&process->next_ticket, 1u, __ATOMIC_RELAXED);
    const std::uint32_t slot = next & (kTicketRows - 1);
    TicketRow& row = table[slot];
    std::uint64_t state = read_acquire(row.state);  // pairs with settle
    // A thousand samples have come since this one ended: its release will not be reported.
    if (take_unreleased(row, state)) {
      settle(header, row, state);
      state &= ~std::uint64_t{0xff};
    }
    if ((state & 0xff) != 0) continue;
    std::uint32_t generation = static_cast<std::uint32_t>(state >> 8) + 1;
    if ((generation & kGenerationMask) == 0) ++generation;
    const std::uint64_t base = std::uint64_t{generation} << 8;
    if (!exchange_if(row.state, state, base | kTicketClaimed)) continue;
    row.lock = lock;
    row.waiter_stack = 0;
    row.blocker_stack = 0;
    row.weight = weight;
    row.begin_ns = now_ns;
    row.wait_ns = 0;
    publish(row.state, base | kTicketBegun);  // pairs with claim_release and end_ticket
    return (generation & kGenerationMask) << kSlotBits | slot;
  }
  drop(header, kDropTickets);
  return 0;
}

void set_waiter_stack(Header* header, std::uint32_t ticket, std::uint32_t stack) {
  if (TicketRow* row = row_of_waiter(header, ticket)) write(row->waiter_stack, stack);
}

void reweigh_ticket(Header* header, std::uint32_t ticket, std::uint32_t weight) {
  if (TicketRow* row = row_of_waiter(header, ticket)) write(row->weight, weight);
}

bool claim_release(Header* header, std::uint32_t ticket) {
  TicketRow& row = ticket_row(header, ticket);
  std::uint64_t state = read_acquire(row.state);  // pairs with begin_ticket
  do {
    const std::uint64_t flags = state & 0xff;
    const bool open = (flags & kTicketBegun) != 0 &&
                      (flags & (kTicketReleasing | kTicketReleased | kTicketClaimed)) == 0;
    if (!open || !same_generation(state, ticket)) return false;
  } while (!exchange_if(row.state, state, state | kTicketReleasing));
  return true;
}

void release_ticket(Header* header, std::uint32_t ticket, std::uint32_t blocker_stack,
                    std::uint64_t now_ns) {
  TicketRow& row = ticket_row(header, ticket);
  if (blocker_stack != 0) {
    LockRow& lock = lock_row(header, row.lock);
    write(lock.releasing_stack, blocker_stack);
    write(lock.released_ns, now_ns);
  }
  write(row.blocker_stack, blocker_stack);
  // The releaser holds kTicketReleasing, so the row cannot be settled or reused before this.
  const std::uint64_t before = __atomic_fetch_or(&row.state, std::uint64_t{kTicketReleased},
                                                 __ATOMIC_ACQ_REL);  // pairs with end_ticket
  if ((before & kTicketEnded) != 0) settle(header, row, before | kTicketReleased);
}

void end_ticket(Header* header, std::uint32_t ticket, std::uint64_t wait_ns, bool expect_release) {
  TicketRow& row = ticket_row(header, ticket);
  const std::uint64_t seen = read_acquire(row.state);  // pairs with begin_ticket
  if ((seen & kTicketBegun) == 0 || (seen & kTicketEnded) != 0 || !same_generation(seen, ticket)) {
    return;
  }
  write(row.wait_ns, wait_ns);
  const std::uint64_t before = __atomic_fetch_or(&row.state, std::uint64_t{kTicketEnded},
                                                 __ATOMIC_ACQ_REL);  // pairs with release_ticket
  const std::uint64_t state = before | kTicketEnded;
  if ((before & kTicketReleased) != 0) {
    settle(header, row, state);
  } else if (!expect_release && take_unreleased(row, state)) {
    settle(header, row, state);
  }
}

void settle_tickets(Header* header) {
  auto* table = rows<TicketRow>(header, kSectionTickets);
  for (std::uint32_t slot = 0; slot < kTicketRows; ++slot) {
    const std::uint64_t state = read_acquire(table[slot].state);  // pairs with end_ticket
    if (take_unreleased(table[slot], state)) settle(header, table[slot], state);
  }
}

}  // namespace relock::profile
