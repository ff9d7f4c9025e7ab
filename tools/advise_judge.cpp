// The judgement about one lock. What it knows of the backends comes from locks/README.md: ordered
// locks need a context switch per hand-off once threads outnumber CPUs; a queue pays where many
// CPUs look at one word; cna pays where the lock crosses NUMA nodes; spinning pays where a hold is
// shorter than putting a thread to sleep and waking it.
#include "tools/advise.h"
#include "tools/text_format.h"

namespace relock {

namespace {

constexpr std::uint32_t kMutex = 0;  // as in interpose/profiler_api.h
constexpr std::uint32_t kSpin = 1;

constexpr std::uint64_t kFewestWaits = 100;         // fewer say nothing
constexpr double kLeastShare = 0.005;               // of the threads' time
constexpr std::uint64_t kLeastWait_ns = 5'000'000;  // where the threads' time is not known
constexpr std::uint64_t kShortHold_ns = 5'000;      // shorter than a sleep and a wake
constexpr std::uint64_t kLongHold_ns = 100'000;     // no allowance of pauses reaches that far
constexpr std::uint64_t kStarved_ns = 50'000'000;   // a wait that a person notices
constexpr std::uint64_t kStarvedFactor = 1'000;     // and that is out of proportion
constexpr double kManyAcross = 0.25;                // of the hand-offs
constexpr std::uint32_t kManyCpus = 8;              // from here on one word is fought over

bool is_ordered(const std::string& lock) {
  return lock == "ticket" || lock == "ticket-backoff" || lock == "auto-ticket" ||
         lock == "qspinlock" || lock == "pv-qspinlock" || lock == "cna";
}

bool is_overcommitted(const RunFacts& run) { return run.threads > run.cpus; }

std::string threads_on_cpus(const RunFacts& run) {
  return format("%u threads on %u CPU%s", run.threads, run.cpus, run.cpus == 1 ? "" : "s");
}

// The median, since an owner that loses its CPU now and then makes a mean of short holds long.
bool is_short(const LockFacts& lock) { return lock.hold_ns < kShortHold_ns; }
bool is_long(const LockFacts& lock) { return lock.hold_ns / 2 >= kLongHold_ns; }

std::string held_long(const LockFacts& lock) {
  return "half of its holds take " + duration_text(lock.hold_ns / 2) + " or more (" +
         counted(lock.hold_samples, "sample") + ")";
}

std::string held(const LockFacts& lock) {
  return "half of its holds are shorter than " + duration_text(lock.hold_ns) + " (" +
         counted(lock.hold_samples, "sample") + ")";
}

std::string const& lock_in_use(const LockFacts& lock, const RunFacts& run) {
  return lock.kind == kMutex ? run.mutex : lock.kind == kSpin ? run.spin : run.rwlock;
}

// Too little to gain, whatever the lock; empty: worth a look.
std::string too_little(const LockFacts& lock, const RunFacts& run) {
  if (lock.waits < kFewestWaits) return "only " + counted(lock.waits, "wait");
  const double share = run.thread_ns == 0
                           ? 0
                           : static_cast<double>(lock.wait_ns) / static_cast<double>(run.thread_ns);
  if (run.thread_ns != 0 && share < kLeastShare) {
    return format("its waits are %.2f %% of the threads' time", share * 100);
  }
  if (run.thread_ns == 0 && lock.wait_ns < kLeastWait_ns) {
    return "its waits add up to " + duration_text(lock.wait_ns);
  }
  return "";
}

bool crosses_nodes(const LockFacts& lock, const RunFacts& run, std::string* why) {
  const std::uint64_t all = lock.within + lock.across;
  if (run.nodes < 2 || all < kFewestWaits) return false;
  const double share = static_cast<double>(lock.across) / static_cast<double>(all);
  if (share < kManyAcross) return false;
  *why = format("%.0f %% of %s hand-offs went from one of %u NUMA nodes to another", share * 100,
                short_count(all).c_str(), run.nodes) +
         "; cna serves waiters of the owner's node first";
  return true;
}

bool starves(const LockFacts& lock) {
  if (lock.waits == 0 || lock.max_wait_ns < kStarved_ns) return false;
  const std::uint64_t mean = lock.wait_ns / lock.waits;
  return lock.max_wait_ns / kStarvedFactor > mean &&
         lock.max_wait_ns / kStarvedFactor > lock.hold_ns;
}

// A mutex whose waiters might spend their time better. Empty `lock` and a reason, or advice.
LockAdvice judge_mutex(const LockFacts& lock, const RunFacts& run) {
  const std::string& now = run.mutex;
  std::string why;
  if (now != "cna" && crosses_nodes(lock, run, &why)) return {"cna", "", why};
  const bool ordered = is_ordered(now);
  if (ordered && is_overcommitted(run) && !is_long(lock)) {
    return {"tas", "",
            now + " hands over in order, and with " + threads_on_cpus(run) +
                " the next in line is often not running; tas is taken by whoever runs"};
  }
  if (!ordered && starves(lock)) {
    return {is_overcommitted(run) ? "pv-qspinlock" : "ticket", "",
            "one wait took " + duration_text(lock.max_wait_ns) + " where the mean is " +
                duration_text(lock.wait_ns / lock.waits) + ": " + now +
                " lets others pass; a queue keeps the order" +
                (is_overcommitted(run) ? " within a bound" : "")};
  }
  if (lock.hold_samples == 0) return {"", "", "no hold time was sampled, so nothing more is known"};
  if (now == "glibc" && is_short(lock)) {
    return {
        "auto", "",
        held(lock) +
            ", less than the sleep and the wake that each wait for the C library's lock costs; " +
            "auto pauses first"};
  }
  if (run.wait != "park" && is_long(lock) && now != "glibc") {
    return {now, "park",
            held_long(lock) + ": no waiter's pauses reach that far, they only take CPU time"};
  }
  if (now == "tas" && is_short(lock) && !is_overcommitted(run) && run.cpus >= kManyCpus) {
    return {"qspinlock", "",
            held(lock) + " with " + threads_on_cpus(run) +
                ": all waiters look at one word; in qspinlock's queue each looks at its own"};
  }
  if (is_long(lock)) {
    return {"", "",
            held_long(lock) + ": the holder is what is waited for, no lock can shorten that"};
  }
  return {"", "", held(lock) + ": " + now + " suits that"};
}

// A spinlock's waiters never sleep for good, so the order is all there is to choose.
LockAdvice judge_spin(const LockFacts& lock, const RunFacts& run) {
  std::string why;
  if (run.spin != "cna" && crosses_nodes(lock, run, &why)) return {"cna", "", why};
  if (is_ordered(run.spin) && is_overcommitted(run)) {
    return {"tas", "",
            run.spin + " hands over in order, and with " + threads_on_cpus(run) +
                " the next in line is often not running; tas is taken by whoever runs"};
  }
  if (!is_ordered(run.spin) && starves(lock) && !is_overcommitted(run)) {
    return {"ticket", "",
            "one wait took " + duration_text(lock.max_wait_ns) + " where the mean is " +
                duration_text(lock.wait_ns / lock.waits) + ": a ticket keeps the order"};
  }
  return {"", "", run.spin + " suits it: " + threads_on_cpus(run)};
}

LockAdvice judge_rwlock(const LockFacts& lock, const RunFacts& run) {
  if (run.rwlock == "glibc" && !is_long(lock)) {
    return {"rwsem", "",
            counted(lock.waits, "wait") + " took " +
                duration_text(lock.waits == 0 ? 0 : lock.wait_ns / lock.waits) +
                " on average; rwsem's waiters pause before they sleep"};
  }
  return {"", "",
          "there is no other readers-writer lock to choose than " + run.rwlock +
              " and the C library's"};
}

}  // namespace

LockAdvice judge_lock(const LockFacts& lock, const RunFacts& run) {
  const std::string little = too_little(lock, run);
  if (!little.empty()) return {"", "", "too little to gain: " + little};
  LockAdvice advice = lock.kind == kMutex  ? judge_mutex(lock, run)
                      : lock.kind == kSpin ? judge_spin(lock, run)
                                           : judge_rwlock(lock, run);
  if (!advice.gains()) return advice;
  if (lock.pattern.empty()) {
    return {"", "", advice.why + "; but nothing is known of it that a rule could name"};
  }
  if (lock.kind != kMutex && !lock.by_address) {
    return {"", "",
            advice.why + "; but only mutexes can be ruled by who made them or waits: set " +
                (lock.kind == kSpin ? "RELOCK_SPIN=" : "RELOCK_RWLOCK=") + advice.lock +
                " for all"};
  }
  if (advice.lock == lock_in_use(lock, run) && advice.wait.empty()) return {"", "", advice.why};
  return advice;
}

}  // namespace relock
