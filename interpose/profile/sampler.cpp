#include "interpose/profile/sampler.h"

namespace relock::profile {

namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kUnknownWaitNs = 10000;  // of a lock that nobody has waited for yet
constexpr std::uint64_t kShortestWaitNs = 1000;
constexpr std::uint64_t kLongestWaitNs = kSecond;
constexpr std::uint32_t kHeaviest = 1u << 30;

// Windows are short, so that the period follows the program; at low rates a short window would
// hold less than one sample.
std::uint64_t window_ns() { return host.samples_per_s >= 200 ? kSecond / 10 : kSecond; }

// A sample takes two stacks, the waiter's and the blocker's.
std::uint32_t samples_per_window() {
  const std::uint64_t samples = host.samples_per_s * window_ns() / kSecond / 2;
  return samples > 0 ? static_cast<std::uint32_t>(samples) : 1;
}

std::uint64_t random_number() {
  std::uint64_t& state = thread_state.random;
  if (state == 0) {
    state = reinterpret_cast<std::uint64_t>(&state) * 0x9e3779b97f4a7c15u ^ process->window_end_ns;
    state |= 1;
  }
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du;
}

// At the end of a window: the period that would have drawn three quarters of the budget in it.
void start_window(std::uint64_t end_ns, std::uint64_t now_ns) {
  if (!exchange_if(process->window_end_ns, end_ns, now_ns + window_ns())) return;
  const std::uint32_t offers = __atomic_exchange_n(&process->window_offers, 0, __ATOMIC_RELAXED);
  const std::uint64_t demand_ns =
      __atomic_exchange_n(&process->window_demand_ns, 0, __ATOMIC_RELAXED);
  write(process->window_taken, 0u);
  const std::uint64_t lasted_ns = now_ns - (end_ns - window_ns());
  const std::uint64_t wanted =
      end_ns == 0 ? 0 : samples_per_window() * (lasted_ns / 1000) / (window_ns() / 1000) * 3 / 4;
  write(process->period_ns, offers <= wanted || wanted == 0 ? 0 : demand_ns / wanted);
}

// When the budget of a window runs out, the last eighth of it is drawn ever more sparsely, so that
// the end of the window is represented too.
void note_taken(std::uint32_t taken, std::uint64_t predicted_ns) {
  const std::uint32_t budget = samples_per_window();
  const std::uint32_t left = budget - taken;
  for (std::uint32_t part = budget / 8; part > 0; part /= 2) {
    if (left != part) continue;
    const std::uint64_t period = read(process->period_ns);
    write(process->period_ns, (period > predicted_ns ? period : predicted_ns) * 8);
    return;
  }
}

}  // namespace

std::uint64_t predicted_wait_ns(const LockRow& lock) {
  const std::uint64_t waits = read(lock.contended);
  const std::uint64_t mean = waits > 0 ? read(lock.wait_ns) / waits : kUnknownWaitNs;
  if (mean < kShortestWaitNs) return kShortestWaitNs;
  return mean < kLongestWaitNs ? mean : kLongestWaitNs;
}

std::uint32_t draw_sample(Header* header, std::uint64_t predicted_ns, std::uint64_t now_ns) {
  const std::uint64_t end_ns = read(process->window_end_ns);
  if (now_ns >= end_ns) start_window(end_ns, now_ns);
  add(process->window_offers, 1u);
  add(process->window_demand_ns, predicted_ns);

  const std::uint64_t period_ns = read(process->period_ns);
  std::uint64_t weight = kWeightOne;
  if (predicted_ns < period_ns) {
    const std::uint64_t chance = (predicted_ns << 32) / period_ns;  // of 2^32
    if ((random_number() >> 32) >= chance) {
      add(header->waits_unsampled, std::uint64_t{1});
      return 0;
    }
    const auto exact = static_cast<unsigned __int128>(period_ns) * kWeightOne / predicted_ns;
    weight = exact < kHeaviest ? static_cast<std::uint64_t>(exact) : kHeaviest;
  }
  const std::uint32_t taken = __atomic_add_fetch(&process->window_taken, 1u, __ATOMIC_RELAXED);
  if (taken > samples_per_window()) {
    drop(header, kDropBudget);
    return 0;
  }
  note_taken(taken, predicted_ns);
  add(header->samples, std::uint64_t{1});
  return static_cast<std::uint32_t>(weight);
}

}  // namespace relock::profile
