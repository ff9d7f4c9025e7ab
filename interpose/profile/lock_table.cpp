#include "interpose/profile/tables.h"

namespace relock::profile {

namespace {

constexpr std::uint32_t kMaxProbes = 128;
constexpr std::uint32_t kSites = 16384;  // a power of two

struct Site {
  std::uint64_t object;
  std::uint64_t site;
};
Site sites[kSites];

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  value ^= value >> 32;
  return value;
}

std::uint32_t bucket_of(std::uint64_t ns) {
  const std::uint32_t bucket = 63u - static_cast<std::uint32_t>(__builtin_clzll(ns | 1));
  return bucket < kHistogramBuckets ? bucket : kHistogramBuckets - 1;
}

Site& site_of(const void* object) {
  return sites[mix(reinterpret_cast<std::uint64_t>(object)) & (kSites - 1)];
}

std::uint64_t init_site(const void* object) {
  const Site& entry = site_of(object);
  const auto address = reinterpret_cast<std::uint64_t>(object);
  if (read_acquire(entry.object) != address) return 0;  // pairs with remember_init_site
  return read(entry.site);
}

// Locks that follow each other at one address have rows of their own, up to this many. A later one
// that was initialised where its predecessor was goes on in the same row: programs that make and
// destroy locks all the time would fill the table otherwise.
constexpr std::uint32_t kToldApart = 8;
bool revive(LockRow& row) {
  std::uint32_t retired = 1;
  if (!exchange_if(row.retired, retired, 0u)) return false;
  add(row.acquisitions_before, __atomic_exchange_n(&row.acquisitions, 0, __ATOMIC_RELAXED));
  add(row.objects, 1u);
  return true;
}

void fill(Header* header, LockRow& row, std::uint64_t site) {
  write(row.init_site, site);
  add(row.objects, 1u);
  add(header->sections[kSectionLocks].used, 1u);
}

// ---- shards ----

// Below this many waits the row itself does.
constexpr std::uint64_t kWaitsForShards = 64;

// The first threads have one each, for as long as the process lives, and need no atomics; those
// that come later share the rest.
std::uint32_t shard_of_thread(Header* header) {
  const auto file = static_cast<std::uint32_t>(header->start_monotonic_ns);
  if (thread_state.shard == 0 || thread_state.shard_of != file) {
    thread_state.shard_of = file;  // a child made behind the C library's back has another one
    add(header->waiting_threads, std::uint64_t{1});
    const std::uint32_t number = __atomic_fetch_add(&process->next_shard, 1u, __ATOMIC_RELAXED);
    thread_state.shard =
        1 + (number < kOwnShards ? number : kOwnShards + number % (kShardsPerLock - kOwnShards));
  }
  return thread_state.shard - 1;
}

// Hands out shards once. Two threads may do so at a time; the second one's stay unused.
void give_shards(Header* header, LockRow& row) {
  std::uint32_t& used = header->sections[kSectionShards].used;
  if (read(used) > kShardRows - kShardsPerLock) return;
  const std::uint32_t first = __atomic_fetch_add(&used, kShardsPerLock, __ATOMIC_RELAXED);
  if (first > kShardRows - kShardsPerLock) return;
  std::uint32_t none = 0;
  exchange_if(row.shards, none, first + 1);
}

// A mean that follows slowly. Not written without need, since every wait reads its line.
void expect(std::uint64_t& mean_ns, std::uint64_t wait_ns) {
  const std::uint64_t known = read(mean_ns);
  const std::uint64_t next = known == 0        ? wait_ns
                             : wait_ns > known ? known + (wait_ns - known) / 8
                                               : known - (known - wait_ns) / 8;
  if (known == 0 || next != known) write(mean_ns, next | 1);
}

template <bool kAlone, class T>
T count_in(T& field, T amount) {
  if constexpr (!kAlone) return __atomic_add_fetch(&field, amount, __ATOMIC_RELAXED);
  add_alone(field, amount);
  return read(field);
}

// `Row` is a LockRow or a ShardRow: both have these counts. kAlone: no other thread writes it.
template <bool kAlone, class Row>
std::uint64_t add_wait(LockRow& lock, Row& row, const RelockWaitEnd& end) {
  constexpr std::uint64_t kOne = 1;
  const std::uint64_t waits = count_in<kAlone>(row.contended, kOne);
  count_in<kAlone>(row.wait_ns, end.wait_ns);
  raise_to(row.max_wait_ns, end.wait_ns);
  count_in<kAlone>(row.histogram[bucket_of(end.wait_ns)], 1u);
  // On one node they are all within it, and need no count.
  if (end.hand_off == RELOCK_HANDOFF_WITHIN && host.nodes > 1) {
    count_in<kAlone>(row.handoffs_within, kOne);
  }
  if (end.hand_off == RELOCK_HANDOFF_ACROSS) count_in<kAlone>(row.handoffs_across, kOne);
  if (end.slept != 0) {
    expect(lock.expected_sleep_ns, end.wait_ns);
  } else if (waits <= 16 || waits % 16 == 0) {
    expect(lock.expected_ns, end.wait_ns);
  }
  return waits;
}

}  // namespace

void remember_init_site(const void* object, const void* site) {
  Site& entry = site_of(object);
  write(entry.object, std::uint64_t{0});
  publish(entry.site, reinterpret_cast<std::uint64_t>(site));
  publish(entry.object, reinterpret_cast<std::uint64_t>(object));  // pairs with init_site
}

void forget_init_site(const void* object) {
  Site& entry = site_of(object);
  if (read(entry.object) == reinterpret_cast<std::uint64_t>(object)) {
    write(entry.object, std::uint64_t{0});
  }
}

std::uint32_t find_lock(Header* header, const void* object, int kind, bool create) {
  auto* table = rows<LockRow>(header, kSectionLocks);
  const auto address = reinterpret_cast<std::uint64_t>(object);
  const std::uint64_t key = lock_key(address, static_cast<std::uint32_t>(kind));
  const std::uint64_t start = mix(key);
  std::uint32_t retired_row = kNoRow;
  std::uint32_t predecessors = 0;
  for (std::uint32_t probe = 0; probe < kMaxProbes;) {
    const std::uint32_t index = static_cast<std::uint32_t>(start + probe) & (kLockRows - 1);
    LockRow& row = table[index];
    std::uint64_t seen = read_acquire(row.key);  // pairs with the exchange below
    if (seen == 0) {
      if (!create) return kNoRow;
      const std::uint64_t site = init_site(object);
      const bool goes_on = predecessors >= kToldApart || !has_room_for_idle_locks(header);
      if (goes_on && retired_row != kNoRow && read(table[retired_row].init_site) == site) {
        revive(table[retired_row]);  // false: another thread just did
        return retired_row;
      }
      if (!exchange_if(row.key, seen, key)) continue;  // look at what came in between
      fill(header, row, site);
      return index;
    }
    if (seen == key) {
      if (read(row.retired) == 0) return index;
      retired_row = index;
      ++predecessors;
    }
    ++probe;
  }
  if (create) drop(header, kDropLocks);
  return kNoRow;
}

void retire_lock(LockRow& lock, std::uint64_t acquisitions) {
  if (acquisitions != 0) count_acquisitions(lock, acquisitions, 1);
  write(lock.retired, 1u);
}

// The new value is the nearest one that ends in the counter's bits.
void count_acquisitions(LockRow& lock, std::uint64_t counter, std::uint64_t least_step) {
  const std::uint32_t bits = host.counter_bits[key_kind(read(lock.key)) & 7];
  const std::uint64_t mask = bits == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t known = read(lock.acquisitions);
  const std::uint64_t ahead = (counter - known) & mask;
  if (ahead >= least_step && ahead <= mask / 2) raise_to(lock.acquisitions, known + ahead);
}

void count_wait(Header* header, std::uint32_t index, const RelockWaitEnd& end) {
  constexpr std::uint64_t kLongNs = 50000;
  constexpr std::uint64_t kManyAcquisitions = 256;
  LockRow& lock = lock_row(header, index);
  const std::uint32_t shard = shard_of_thread(header);
  if (const std::uint32_t first = read(lock.shards); first == 0) {
    if (add_wait<false>(lock, lock, end) == kWaitsForShards) give_shards(header, lock);
  } else {
    ShardRow& row = rows<ShardRow>(header, kSectionShards)[first - 1 + shard];
    shard < kOwnShards ? add_wait<true>(lock, row, end) : add_wait<false>(lock, row, end);
  }
  // After a wait that is long enough to bear it, else every so many: all threads write this one.
  const bool few = end.wait_ns > kLongNs || end.acquisitions <= kManyAcquisitions;
  if (end.acquisitions != 0) {
    count_acquisitions(lock, end.acquisitions, few ? 1 : kManyAcquisitions);
  }
  if (end.outcome == RELOCK_WAIT_TIMED_OUT) add(lock.timeouts, std::uint64_t{1});
  if (end.outcome == RELOCK_WAIT_CANCELLED) add(lock.cancelled, std::uint64_t{1});
}

void count_hold(LockRow& lock, std::uint64_t hold_ns, std::uint32_t weight) {
  add(lock.hold_samples, std::uint64_t{1});
  add(lock.hold_ns, hold_ns);
  raise_to(lock.max_hold_ns, hold_ns);
  add(lock.hold_weighted, std::uint64_t{weight});
  add(lock.hold_weighted_ns, hold_ns * weight);
  add(lock.hold_histogram[bucket_of(hold_ns)], 1u);
}

bool has_room_for_idle_locks(const Header* header) {
  return read(header->sections[kSectionLocks].used) < kLockRows / 2;
}

WaitSums wait_sums(Header* header, const LockRow& lock) {
  WaitSums sums{read(lock.contended), read(lock.wait_ns), read(lock.max_wait_ns)};
  const std::uint32_t first = read(lock.shards);
  for (std::uint32_t i = 0; first != 0 && i < kShardsPerLock; ++i) {
    const ShardRow& shard = rows<ShardRow>(header, kSectionShards)[first - 1 + i];
    sums.contended += read(shard.contended);
    sums.wait_ns += read(shard.wait_ns);
    if (read(shard.max_wait_ns) > sums.max_wait_ns) sums.max_wait_ns = read(shard.max_wait_ns);
  }
  return sums;
}

}  // namespace relock::profile
