#include "interpose/profile/sampler.h"

namespace relock::profile {

namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kUnknownWaitNs = 10000;  // of a lock that nobody has waited for yet
constexpr std::uint64_t kUnknownSleepNs = 100000;
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

// When the budget of a window runs out, the last quarter of it is drawn ever more sparsely, so that
// the end of the window is represented too; by enough samples that none of them weighs too much.
void note_taken(std::uint32_t taken, std::uint64_t predicted_ns) {
  const std::uint32_t budget = samples_per_window();
  const std::uint32_t part = budget < 16 ? 1 : budget / 16;
  const std::uint32_t left = budget - taken;
  if (left % part != 0 || left / part < 1 || left / part > 4) return;
  const std::uint64_t period = read(process->period_ns);
  write(process->period_ns, (period > predicted_ns ? period : predicted_ns) * 4);
}

std::uint64_t within_bounds(std::uint64_t known_ns, std::uint64_t otherwise_ns) {
  const std::uint64_t mean = known_ns > 0 ? known_ns : otherwise_ns;
  if (mean < kShortestWaitNs) return kShortestWaitNs;
  return mean < kLongestWaitNs ? mean : kLongestWaitNs;
}

// Each thread sums up by itself first: all threads write the window's cache line. `undrawn`: of
// them, how many waits there are more that are not drawn; a wait that was drawn late is one less.
void note_offers(Header* header, std::uint64_t predicted_ns, std::uint32_t offers,
                 std::int32_t undrawn) {
  constexpr std::uint32_t kOffersAtOnce = 16;
  constexpr std::uint64_t kDemandAtOnce = 1000000;
  ThreadState& thread = thread_state;
  thread.offers += offers;
  thread.undrawn += undrawn;
  // More than one stack for a wait is never taken.
  const std::uint64_t period_ns = read(process->period_ns);
  const std::uint64_t each_ns =
      period_ns != 0 && predicted_ns > period_ns ? period_ns : predicted_ns;
  thread.demand_ns += each_ns * offers;
  if (thread.offers < kOffersAtOnce && thread.demand_ns < kDemandAtOnce) return;
  add(process->window_offers, thread.offers);
  add(process->window_demand_ns, thread.demand_ns);
  if (thread.undrawn > 0) {
    add(header->waits_unsampled, static_cast<std::uint64_t>(thread.undrawn));
    thread.undrawn = 0;
  }
  thread.offers = 0;
  thread.demand_ns = 0;
}

// Throws the dice for this wait and those that follow. Returns whether this one is drawn; else
// `draw` and the thread know when to ask again. Forgetting the answer, as happens when the thread
// waits for another lock first, changes no probability: every throw is as good as the next.
bool throw_dice(std::uint64_t predicted_ns, std::uint64_t period_ns, std::uint32_t weight,
                Draw& draw) {
  const std::uint64_t chance = (predicted_ns << 32) / period_ns;
  draw.chance = static_cast<std::uint32_t>(chance);
  std::uint32_t misses = 0;
  while (misses <= kMostUndrawn && (random_number() >> 32) >= chance) ++misses;
  if (misses == 0) return true;
  draw.undrawn = misses - 1;
  if (misses <= kMostUndrawn) thread_state.next_weight = weight;
  return false;
}

bool take_from_budget(Header* header, std::uint64_t predicted_ns) {
  const std::uint32_t taken = __atomic_add_fetch(&process->window_taken, 1u, __ATOMIC_RELAXED);
  if (taken > samples_per_window()) {
    drop(header, kDropBudget);
    return false;
  }
  note_taken(taken, predicted_ns);
  add(header->samples, std::uint64_t{1});
  return true;
}

}  // namespace

std::uint64_t predicted_wait_ns(const LockRow& lock) {
  return within_bounds(read(lock.expected_ns), kUnknownWaitNs);
}

std::uint64_t predicted_sleep_ns(const LockRow& lock) {
  return within_bounds(read(lock.expected_sleep_ns), kUnknownSleepNs);
}

std::uint32_t draw_again(Header* header, std::uint64_t wait_ns, std::uint64_t now_ns,
                         std::uint32_t* chance, bool* drawn) {
  const std::uint64_t end_ns = read(process->window_end_ns);
  if (now_ns >= end_ns) start_window(end_ns, now_ns);
  if (*chance == kCertain) return kWeightOne;
  const std::uint64_t period_ns = read(process->period_ns);
  const double missed =  // the chance not to be drawn now
      wait_ns >= period_ns ? 0 : 1 - static_cast<double>(wait_ns) / static_cast<double>(period_ns);
  if (!*drawn) {
    *drawn = static_cast<double>(random_number() >> 11) * 0x1p-53 >= missed;
    if (*drawn) *drawn = take_from_budget(header, wait_ns);
    note_offers(header, wait_ns, 1, *drawn ? -1 : 0);
  }
  const double in_all = 1 - missed * (1 - static_cast<double>(*chance) / kCertain);
  *chance = static_cast<std::uint32_t>(in_all * kCertain);
  const double weight = kWeightOne / (in_all > 1e-6 ? in_all : 1e-6);
  return weight < kHeaviest ? static_cast<std::uint32_t>(weight) : kHeaviest;
}

std::uint32_t draw_sample(Header* header, std::uint64_t predicted_ns, std::uint64_t now_ns,
                          Draw& draw) {
  const std::uint64_t end_ns = read(process->window_end_ns);
  if (now_ns >= end_ns) start_window(end_ns, now_ns);

  std::uint32_t weight = draw.again ? thread_state.next_weight : 0;
  thread_state.next_weight = 0;
  bool drawn = weight != 0;
  if (!drawn) {
    const std::uint64_t period_ns = read(process->period_ns);
    weight = kWeightOne;
    drawn = predicted_ns >= period_ns;
    if (!drawn) {
      const auto exact = static_cast<unsigned __int128>(period_ns) * kWeightOne / predicted_ns;
      weight = exact < kHeaviest ? static_cast<std::uint32_t>(exact) : kHeaviest;
      drawn = throw_dice(predicted_ns, period_ns, weight, draw);
    }
  }
  note_offers(header, predicted_ns, draw.passed + 1,
              static_cast<std::int32_t>(draw.passed) + (drawn ? 0 : 1));
  return drawn && take_from_budget(header, predicted_ns) ? weight : 0;
}

}  // namespace relock::profile
