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

Site& site_of(const void* object) {
  return sites[mix(reinterpret_cast<std::uint64_t>(object)) & (kSites - 1)];
}

std::uint64_t init_site(const void* object) {
  const Site& entry = site_of(object);
  const auto address = reinterpret_cast<std::uint64_t>(object);
  if (read_acquire(entry.object) != address) return 0;  // pairs with remember_init_site
  return read(entry.site);
}

// A lock that was initialised where its predecessor at the address was goes on in the same row:
// programs that make and destroy locks all the time would fill the table otherwise.
bool revive(LockRow& row) {
  std::uint32_t retired = 1;
  if (!exchange_if(row.retired, retired, 0u)) return false;
  add(row.acquisitions_before, __atomic_exchange_n(&row.acquisitions, 0, __ATOMIC_RELAXED));
  add(row.objects, 1u);
  return true;
}

void fill(LockRow& row, std::uint64_t site) {
  write(row.init_site, site);
  add(row.objects, 1u);
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
  for (std::uint32_t probe = 0; probe < kMaxProbes;) {
    const std::uint32_t index = static_cast<std::uint32_t>(start + probe) & (kLockRows - 1);
    LockRow& row = table[index];
    std::uint64_t seen = read_acquire(row.key);  // pairs with the exchange below
    if (seen == 0) {
      if (!create) return kNoRow;
      const std::uint64_t site = init_site(object);
      if (retired_row != kNoRow && read(table[retired_row].init_site) == site) {
        revive(table[retired_row]);  // false: another thread just did
        return retired_row;
      }
      if (!exchange_if(row.key, seen, key)) continue;  // look at what came in between
      fill(row, site);
      return index;
    }
    if (seen == key) {
      if (read(row.retired) == 0) return index;
      retired_row = index;
    }
    ++probe;
  }
  if (create) drop(header, kDropLocks);
  return kNoRow;
}

void retire_lock(LockRow& lock, std::uint64_t acquisitions) {
  raise_to(lock.acquisitions, acquisitions);
  write(lock.retired, 1u);
}

void count_wait(LockRow& lock, std::uint64_t wait_ns, int outcome, std::uint64_t acquisitions) {
  add(lock.contended, std::uint64_t{1});
  add(lock.wait_ns, wait_ns);
  raise_to(lock.max_wait_ns, wait_ns);
  raise_to(lock.acquisitions, acquisitions);
  std::uint32_t bucket = 63u - static_cast<std::uint32_t>(__builtin_clzll(wait_ns | 1));
  if (bucket >= kHistogramBuckets) bucket = kHistogramBuckets - 1;
  add(lock.histogram[bucket], 1u);
  if (outcome == RELOCK_WAIT_TIMED_OUT) add(lock.timeouts, std::uint64_t{1});
  if (outcome == RELOCK_WAIT_CANCELLED) add(lock.cancelled, std::uint64_t{1});
}

}  // namespace relock::profile
