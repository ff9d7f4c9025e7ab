// Bugs planted in the locks, by changing what single operations do: each must be found.
#include "case.h"
#include "scenarios.h"

namespace relock::explore {

namespace {

template <class Lock>
const P::Atomic32& word() {
  return Scenarios<Lock>::lock.word();
}
template <class Lock>
const P::Atomic32& gate() {
  return Scenarios<Lock>::lock.gate();
}
bool is_node_state(const void* address) { return Surroundings::is_node_state(address); }

template <class Lock>
struct GateWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override { return address == &gate<Lock>(); }
};
template <class Lock>
struct WordWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override { return address == &word<Lock>(); }
};
template <class Lock>
struct OffersWakeNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t bits) override {
    return address == &word<Lock>() && bits == wake_bit::kReserved;
  }
};
struct GrantWakesNobody : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override { return is_node_state(address); }
};
template <class Lock>
struct WordInTwoSteps : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t, std::uint64_t) override {
    return cell == &word<Lock>();
  }
};
struct GrantInTwoSteps : Mutation {
  bool splits_exchange(const void* cell) override { return is_node_state(cell); }
};
struct NodesBorrowedTwice : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t old, std::uint64_t now) override {
    return Surroundings::is_node_borrowed(cell) && old == 0 && now == 1;
  }
};
template <class Lock>
struct GateStandsStill : Mutation {
  bool drops_update(const void* cell, Update) override { return cell == &gate<Lock>(); }
};
template <class Lock>
struct NapsForEver : Mutation {
  bool drops_deadline(const void* cell, std::uint32_t bits) override {
    return cell == &word<Lock>() && bits == wake_bit::kNap;
  }
};
template <class Lock>
struct SleepsWithoutLooking : Mutation {
  bool ignores_value(const void* cell) override {
    return cell == &gate<Lock>() || cell == &word<Lock>();
  }
};
struct NodeSleepsWithoutLooking : Mutation {
  bool ignores_value(const void* cell) override { return is_node_state(cell); }
};
template <class Lock>
struct NobodyRegisters : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    const bool registers = cell == &word<Lock>() && now == old + Lock::Layout::kPassiveOne;
    return registers ? old : now;
  }
};
template <class Lock>
struct SleepersNotMarked : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    const bool marks = cell == &word<Lock>() && now == (old | Lock::Layout::kSleeper) && now != old;
    return marks ? old : now;
  }
};
template <class Lock>
struct HeadTakesNothing : Mutation {
  bool drops_update(const void* cell, Update how) override {
    return cell == &word<Lock>() && how == Update::kOr;
  }
};
template <class Lock>
struct ServesTwoTickets : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    constexpr std::uint32_t kOne = 1u << Lock::Layout::kTicketHeadShift;
    const bool serves = cell == &word<Lock>() && now == old + kOne;
    return serves ? now + kOne : now;
  }
};
template <class Lock>
struct WideRelease : Mutation {
  bool widens_byte_store(const void* cell) override { return cell == &word<Lock>(); }
};

// Wakes whoever sleeps on `cell` before it changes it, and nobody after.
class WakesTooEarly : public Mutation {
 public:
  void before_change(const void* cell) override {
    if (is_it(cell)) (void)World::active->futex_wake(cell, kMaxThreads, kAnyBit);
  }
  bool drops_wake(const void* address, std::uint32_t) override { return is_it(address); }

 private:
  virtual bool is_it(const void* cell) = 0;
};
template <class Lock>
class WordWakesTooEarly : public WakesTooEarly {
  bool is_it(const void* cell) override { return cell == &word<Lock>(); }
};
template <class Lock>
class GateWakesTooEarly : public WakesTooEarly {
  bool is_it(const void* cell) override { return cell == &gate<Lock>(); }
};
class GrantWakesTooEarly : public WakesTooEarly {
  bool is_it(const void* cell) override { return is_node_state(cell); }
};

// Does not wait until the successor has linked itself: whatever is there is handed the role.
struct DoesNotWaitForLink : Mutation {
  std::uint64_t loaded(const void* cell, std::uint64_t value) override {
    QueueNode<P>* const nobody = &Surroundings::nodes[kMaxThreads - 1];
    const bool links = cell == &Surroundings::nodes[this_thread()].next;
    return links && value == 0 ? reinterpret_cast<std::uint64_t>(nobody) : value;
  }
};

struct NodeStateInTwoSteps : Mutation {
  bool splits_compare_exchange(const void* cell, std::uint64_t, std::uint64_t) override {
    return is_node_state(cell);
  }
};
// pv: the release is not told whom to kick.
template <class Lock>
struct NobodyToKick : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    return cell == &Scenarios<Lock>::lock.tuning() ? old : now;
  }
};
Setting parking(std::uint32_t admitted_limit, Mutation* bug) {
  Setting setting;
  setting.admitted_limit = admitted_limit;
  setting.bug = bug;
  return setting;
}

Setting spinning(Mutation* bug) {
  Setting setting = parking(3, bug);
  setting.mode = WaitMode::kSpin;
  return setting;
}

// Looks at the word after it has let go, as if to decide whom to wake.
template <class Lock>
struct LooksAfterRelease : Lock {
  void unlock() {
    Lock::unlock();
    (void)this->word().load(MemoryOrder::kRelaxed);
  }
};
// Gives the owner's fast release to everybody: waiters are forgotten.
template <class Lock>
struct ForgetsEverybody : Lock {
  void unlock() { this->overwrite(Lock::Layout::kFree); }
};

Bounds bounds_of(int timeouts = 0) {
  Bounds bounds;
  bounds.preemptions = 2;
  bounds.timeouts = timeouts;
  return bounds;
}

class Planted {
 public:
  explicit Planted(std::vector<Case>& cases) : cases_(cases) {}

  void add(const std::string& name, Program program, const char* reason, int timeouts = 0) {
    Bounds bounds = bounds_of(timeouts);
    bounds.free_pauses = 1;
    cases_.push_back({"planted: " + name, std::move(program), bounds, Expect::kFailure, reason});
  }

  // Bugs in what all mutexes share.
  template <class Lock>
  void add_gate(const std::string& lock) {
    using S = Scenarios<Lock>;
    add("the gate wakes nobody/" + lock, S::visits(parking(1, planted<GateWakesNobody<Lock>>()), 3),
        "lost wakeup");
    add("the gate's number stands still/" + lock,
        S::visits(parking(1, planted<GateStandsStill<Lock>>()), 3), "lost wakeup");
    add("sleeps without looking/" + lock,
        S::visits(parking(1, planted<SleepsWithoutLooking<Lock>>()), 3), "lost wakeup");
    add("sleeps without being registered/" + lock,
        S::visits(parking(1, planted<NobodyRegisters<Lock>>()), 3), "lost wakeup");
    add("the word changes in two steps/" + lock,
        S::visits(parking(1, planted<WordInTwoSteps<Lock>>()), 2), "");
    add("an offer wakes nobody/" + lock,
        S::giving_up(parking(1, planted<OffersWakeNobody<Lock>>()), 2, kSoon, false),
        "lost wakeup");
    // The owner, the sleeper and the release must each be interrupted once.
    add("the gate wakes before its number advances/" + lock,
        S::visits(parking(1, planted<GateWakesTooEarly<Lock>>()), 3), "lost wakeup");
    cases_.back().bounds.preemptions = 3;
    add("a forked child keeps ghosts/" + lock,
        S::forking(parking(3, planted<ChildKeepsGhosts>()), S::Fork::kHolding), "");
    add("looks after the release/" + lock,
        Scenarios<LooksAfterRelease<Lock>>::destroying(parking(1, nullptr), 2),
        "after it was destroyed");
    add("a release forgets everybody/" + lock,
        Scenarios<ForgetsEverybody<Lock>>::visits(parking(1, nullptr), 2), "lost wakeup");
  }

  // Bugs in sleeping on the word.
  template <class Lock>
  void add_word(const std::string& lock) {
    using S = Scenarios<Lock>;
    add("the word wakes nobody/" + lock, S::visits(parking(3, planted<WordWakesNobody<Lock>>()), 3),
        "lost wakeup");
    add("sleepers are not marked/" + lock,
        S::visits(parking(3, planted<SleepersNotMarked<Lock>>()), 3), "");
    add("the word wakes before it changes/" + lock,
        S::visits(parking(3, planted<WordWakesTooEarly<Lock>>()), 3), "lost wakeup");
  }

  // Bugs in what all spinlocks share.
  template <class Lock>
  void add_spin(const std::string& lock) {
    using S = Scenarios<Lock>;
    add("the word changes in two steps/" + lock,
        S::visits(spinning(planted<WordInTwoSteps<Lock>>()), 2), "");
    add("looks after the release/" + lock,
        Scenarios<LooksAfterRelease<Lock>>::destroying(spinning(nullptr), 2),
        "after it was destroyed");
  }

  template <class Lock>
  void add_queue(const std::string& lock) {
    using S = Scenarios<Lock>;
    add("a grant wakes nobody/" + lock, S::visits(parking(3, planted<GrantWakesNobody>()), 4),
        "lost wakeup");
    Setting pausing = parking(3, planted<GrantInTwoSteps>());
    pausing.mode = WaitMode::kAdaptive;
    add("a grant in two steps/" + lock, S::visits(pausing, 4), "lost wakeup");
    add("a node sleeps without looking/" + lock,
        S::visits(parking(3, planted<NodeSleepsWithoutLooking>()), 4), "lost wakeup");
    Setting one_node = parking(4, planted<NodesBorrowedTwice>());
    one_node.slots = 1;
    add("a node is borrowed twice/" + lock, S::visits(one_node, 4), "");
    add("a grant wakes before it is made/" + lock,
        S::visits(parking(3, planted<GrantWakesTooEarly>()), 4), "lost wakeup");
    add_links<Lock>(lock);
  }

  template <class Lock>
  void add_links(const std::string& lock) {
    add("the successor's link is not waited for/" + lock,
        Scenarios<Lock>::visits(parking(4, planted<DoesNotWaitForLink>()), 4), "lost wakeup");
  }

 private:
  std::vector<Case>& cases_;
};

// Bugs in the locks beyond the plain ones.
void add_family(Planted& planted_in) {
  using PvMutex = MutexUnderTest<PvQspinlock>;
  using CnaMutex = MutexUnderTest<Cna>;
  using BackoffMutex = MutexUnderTest<TicketBackoff>;
  planted_in.add("a kick wakes nobody/pv-qspinlock mutex",
                 Scenarios<PvMutex>::visits(parking(4, planted<GrantWakesNobody>()), 4),
                 "lost wakeup");
  planted_in.add("the release is not told whom to kick/pv-qspinlock mutex",
                 Scenarios<PvMutex>::visits(parking(4, planted<NobodyToKick<PvMutex>>()), 4),
                 "lost wakeup");
  planted_in.add("a waiter halts in two steps/pv-qspinlock mutex",
                 Scenarios<PvMutex>::visits(parking(4, planted<NodeStateInTwoSteps>()), 4), "");
  planted_in.add_links<PvMutex>("pv-qspinlock mutex");
  planted_in.add("a grant wakes nobody/cna mutex",
                 Scenarios<CnaMutex>::visits(parking(4, planted<GrantWakesNobody>()), 4),
                 "lost wakeup");
  planted_in.add(
      "two tickets are served at once/ticket-backoff mutex",
      Scenarios<BackoffMutex>::visits(parking(3, planted<ServesTwoTickets<BackoffMutex>>()), 3),
      "");
}

template <template <class, class> class Algorithm>
void add_common(Planted& planted_in, const std::string& name) {
  planted_in.add_gate<MutexUnderTest<Algorithm>>(name + " mutex");
  planted_in.add_spin<SpinUnderTest<Algorithm>>(name + " spinlock");
}
// These stand for others (locks/lock_list.def).
template <class Platform, class Layout>
struct Glibc;
template <>
void add_common<Glibc>(Planted&, const std::string&) {}
template <class Platform, class Layout>
struct Auto;
template <>
void add_common<Auto>(Planted&, const std::string&) {}

}  // namespace

void add_planted_lock_cases(std::vector<Case>& cases) {
  using TicketMutex = MutexUnderTest<Ticket>;
  using QueueMutex = MutexUnderTest<Qspinlock>;
  using QueueSpin = SpinUnderTest<Qspinlock>;
  Planted planted_in(cases);
#define RELOCK_LOCK_ROW(ident, name, fair, idea) add_common<ident>(planted_in, name);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
  using TasMutex = MutexUnderTest<Tas>;
  planted_in.add("a courtesy without an end/tas mutex",
                 Scenarios<TasMutex>::starving(parking(1, planted<NapsForEver<TasMutex>>()), "l"),
                 "lost wakeup");
  planted_in.add_word<TicketMutex>("ticket mutex");
  planted_in.add_word<QueueMutex>("qspinlock mutex");
  planted_in.add_queue<QueueMutex>("qspinlock mutex");
  planted_in.add(
      "the queue head takes nothing/qspinlock mutex",
      Scenarios<QueueMutex>::visits(parking(4, planted<HeadTakesNothing<QueueMutex>>()), 4), "");
  planted_in.add(
      "two tickets are served at once/ticket mutex",
      Scenarios<TicketMutex>::visits(parking(3, planted<ServesTwoTickets<TicketMutex>>()), 3), "");
  planted_in.add("a release wider than its byte/qspinlock spinlock",
                 Scenarios<QueueSpin>::visits(spinning(planted<WideRelease<QueueSpin>>()), 3), "");
  add_family(planted_in);
}

}  // namespace relock::explore
