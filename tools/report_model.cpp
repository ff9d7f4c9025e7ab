#include "tools/report_model.h"

#include <algorithm>
#include <map>
#include <utility>

namespace relock {

namespace {

struct Drop {
  const char* key;
  const char* text;
};
constexpr std::array<Drop, 8> kDrops = {
    Drop{"locks", "waits for locks beyond the table"},
    Drop{"stacks", "stacks beyond the table"},
    Drop{"pairs", "pairs of stacks beyond the table"},
    Drop{"tickets", "samples beyond the waits under way"},
    Drop{"modules", "modules beyond the table"},
    Drop{"nested", "calls inside another recording"},
    Drop{"unwinder_busy", "stacks not taken, the unwinder was busy"},
    Drop{"over_rate", "samples over the rate"},
};

template <typename Share>
void add_share(const PairShare& pair, Share* sum) {
  sum->ns = add_up(sum->ns, pair.ns);
  sum->waits = add_up(sum->waits, pair.waits);
  sum->samples = add_up(sum->samples, pair.samples);
}

template <typename Share>
void largest_first(std::vector<Share>* shares) {
  std::stable_sort(shares->begin(), shares->end(),
                   [](const Share& a, const Share& b) { return a.ns > b.ns; });
}

std::uint32_t reading(const Report& report, std::uint32_t stack) {
  return stack == kNone ? kNone : report.reads_as[stack];
}

std::vector<StackShare> by_stack(const Report& report, const ReportLock& lock,
                                 std::uint32_t PairShare::*side) {
  std::map<std::uint32_t, std::size_t> places;
  std::vector<StackShare> shares;
  for (const PairShare& pair : lock.pairs) {
    const std::uint32_t stack = reading(report, pair.*side);
    const auto [place, is_new] = places.emplace(stack, shares.size());
    if (is_new) shares.push_back({stack, 0, 0, 0});
    add_share(pair, &shares[place->second]);
  }
  largest_first(&shares);
  return shares;
}

}  // namespace

const char* kind_name(std::uint32_t kind) {
  constexpr std::array kWords = {"mutex", "spinlock", "rwlock read", "rwlock write", "cond"};
  return kind < kWords.size() ? kWords[kind] : "lock";
}

const char* drop_text(std::uint32_t drop) {
  return drop < kDrops.size() ? kDrops[drop].text : nullptr;
}
const char* drop_key(std::uint32_t drop) {
  return drop < kDrops.size() ? kDrops[drop].key : nullptr;
}

std::uint64_t mean_hold_ns(const ReportLock& lock) {
  if (!lock.hold.has_value()) return 0;
  const HoldTimes& hold = *lock.hold;
  if (hold.stands_for != 0) return hold.stands_for_ns / hold.stands_for;
  return hold.samples == 0 ? 0 : hold.total_ns / hold.samples;
}

std::vector<StackShare> waiters_of(const Report& report, const ReportLock& lock) {
  return by_stack(report, lock, &PairShare::waiter);
}

std::vector<StackShare> blockers_of(const Report& report, const ReportLock& lock) {
  return by_stack(report, lock, &PairShare::blocker);
}

std::vector<PairShare> pairs_of(const Report& report, const ReportLock& lock) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> places;
  std::vector<PairShare> pairs;
  for (const PairShare& pair : lock.pairs) {
    const std::uint32_t waiter = reading(report, pair.waiter);
    const std::uint32_t blocker = reading(report, pair.blocker);
    const auto [place, is_new] = places.emplace(std::pair(waiter, blocker), pairs.size());
    if (is_new) pairs.push_back({waiter, blocker, 0, 0, 0});
    add_share(pair, &pairs[place->second]);
  }
  largest_first(&pairs);
  return pairs;
}

void keep_hottest(Report* report, std::uint32_t count) {
  if (report->locks.size() > count) report->locks.resize(count);
  if (report->conditions.size() > count) report->conditions.resize(count);
}

std::uint64_t add_up(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

std::uint64_t scaled(std::uint64_t part, std::uint64_t whole, std::uint64_t total) {
  if (total == 0) return 0;
  const unsigned __int128 result = static_cast<unsigned __int128>(part) * whole / total;
  return result > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(result);
}

}  // namespace relock
