// What particular locks promise beyond exclusion: order, queues by node, queues for many waiters.
#include <algorithm>

#include "case.h"
#include "scenarios.h"

namespace relock::explore {

namespace {

// Waiters in the order in which they took their places, as seen in the lock word.
class Line {
 public:
  void clear() { length_ = 0; }
  void join(int thread) {
    places_[length_++] = thread;
    tell();
  }
  // `thread` owns the lock now. A place is given up; whoever has none may own it only if nobody
  // has one.
  void serve(int thread) {
    if (length_ == 0) return;
    if (places_[0] != thread) {
      fail("T" + std::to_string(thread) + " overtakes T" + std::to_string(places_[0]));
    }
    std::copy(places_ + 1, places_ + length_, places_);
    --length_;
    tell();
  }
  bool holds(int thread) const {
    return std::find(places_, places_ + length_, thread) != places_ + length_;
  }

 private:
  void tell() const {
    std::uint64_t state = 0;
    for (int i = 0; i < length_; ++i)
      state = state * 8 + static_cast<std::uint64_t>(places_[i]) + 1;
    check_state(state);
  }

  int places_[kMaxThreads] = {};
  int length_ = 0;
};

// Does this change of the word give its author a place?
template <class Layout>
bool takes_ticket(std::uint32_t old, std::uint32_t now) {
  constexpr std::uint32_t kMask = (1u << Layout::kTicketBits) - 1;
  const std::uint32_t before = (old >> Layout::kTicketTailShift) & kMask;
  return ((now >> Layout::kTicketTailShift) & kMask) == ((before + 1) & kMask);
}
template <class Layout>
bool joins_queue(std::uint32_t old, std::uint32_t now) {
  const std::uint32_t tail = now & Layout::kTailMask;
  return (tail != 0 && tail != (old & Layout::kTailMask)) || (now & ~old & Layout::kPending) != 0;
}

template <class Lock, bool (*kJoins)(std::uint32_t, std::uint32_t)>
struct Ordered {
  using S = Scenarios<Lock>;
  static inline Line line;

  static void watch_word(int thread, const void* cell, std::uint64_t old, std::uint64_t now) {
    if (cell != &S::lock.word()) return;
    const auto before = static_cast<std::uint32_t>(old);
    const auto after = static_cast<std::uint32_t>(now);
    if (kJoins(before, after)) line.join(thread);
    // An owner by its own hand. A ticket may also be served by another's release; see below.
    if ((after & ~before & Lock::Layout::kLocked) != 0) line.serve(thread);
  }

  static Program program(WaitMode mode, Mutation* bug = nullptr) {
    Setting setting;
    setting.mode = mode;
    setting.bug = bug;
    setting.admitted_limit = 3;
    Program program = S::base(setting);
    program.setup = [setup = program.setup] {
      setup();
      line.clear();
      on_commit(&watch_word);
    };
    for (int i = 0; i < 3; ++i) {
      program.threads.emplace_back([] {
        S::lock.lock();
        S::section.enter();
        if (line.holds(this_thread())) line.serve(this_thread());
        step();
        S::section.leave();
        S::lock.unlock();
      });
    }
    return program;
  }
};

// The queue's head does not see the pending waiter, who was there before it.
template <class Lock>
struct HeadOvertakesPending : Mutation {
  std::uint64_t loaded(const void* cell, std::uint64_t value) override {
    if (cell != &Scenarios<Lock>::lock.word() || this_thread() != 2) return value;
    return (value & Lock::Layout::kTailMask) != 0 ? value & ~std::uint64_t{Lock::Layout::kPending}
                                                  : value;
  }
};

Bounds bounds_of(int preemptions) {
  Bounds bounds;
  bounds.preemptions = preemptions + (deep() ? 1 : 0);
  return bounds;
}

template <class Lock>
void add_ordered(std::vector<Case>& cases, const std::string& name, bool queued) {
  using Layout = typename Lock::Layout;
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kAdaptive}) {
    Program program = queued ? Ordered<Lock, &joins_queue<Layout>>::program(mode)
                             : Ordered<Lock, &takes_ticket<Layout>>::program(mode);
    cases.push_back(
        {"first come, first served/" + name + (mode == WaitMode::kSpin ? "/spin" : "/adaptive"),
         std::move(program), bounds_of(2), Expect::kPass, ""});
  }
}

// Waiters of several nodes behind a pending one: the secondary queue forms, is flushed and ends.
// The last thread stands in for the owner, so that the others line up in order without a switch.
template <class Lock>
Program line_of_nodes(Setting setting, int waiters) {
  setting.admitted_limit = 5;
  Program program = Scenarios<Lock>::base(setting);
  program.setup = [setup = program.setup] {
    setup();
    Scenarios<Lock>::lock.begin_with(Lock::Layout::kFree | Lock::Layout::kLocked);
  };
  for (int i = 0; i < waiters; ++i) program.threads.emplace_back(&Scenarios<Lock>::visit);
  program.threads.emplace_back([] { Scenarios<Lock>::lock.unlock(); });
  program.finish = [] { Scenarios<Lock>::lock.check_free(); };
  return program;
}

// A part of the queue is not joined to the rest again.
struct PartIsLost : Mutation {
  bool drops_pointer_store(const void*, const void* value) override {
    return value != nullptr && value != &Surroundings::nodes[this_thread()];
  }
};

// Long lines, so without switches that blocking does not force: what they are for is the search
// through the queue, whose random draws are choices.
template <class Lock>
void add_cna(std::vector<Case>& cases, const std::string& name) {
  for (const std::uint32_t local : {1u, 8u}) {
    Setting setting;
    setting.local_hand_offs = local;
    const std::string suffix = ", " + std::to_string(local) + " local hand-offs/" + name;
    for (const int nodes : {2, 3}) {
      if constexpr (!Lock::kTimed) break;  // a spinlock's waiters pause, which takes too many steps
      setting.numa_nodes = nodes;
      cases.push_back(
          {std::to_string(nodes + 2) + " waiters on " + std::to_string(nodes) + " nodes" + suffix,
           line_of_nodes<Lock>(setting, nodes + 2), bounds_of(0), Expect::kPass, "", nodes == 3});
    }
    setting.numa_nodes = 2;
    setting.admitted_limit = 4;
    Bounds bounds = bounds_of(1);
    bounds.delayed_stores = 0;
    cases.push_back({"4 threads on 2 nodes" + suffix, Scenarios<Lock>::visits(setting, 4), bounds,
                     Expect::kPass, ""});
    cases.push_back({"3 threads on 2 nodes" + suffix, Scenarios<Lock>::visits(setting, 3),
                     bounds_of(2), Expect::kPass, ""});
  }
  if constexpr (Lock::kTimed) {
    Setting setting;
    setting.numa_nodes = 2;
    setting.bug = planted<PartIsLost>();
    cases.push_back({"planted: a part of the queue is lost/" + name,
                     line_of_nodes<Lock>(setting, 5), bounds_of(0), Expect::kFailure, ""});
  }
}

// The queue is never given up.
template <class Lock>
struct StaysQueued : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    const bool keeps = cell == &Scenarios<Lock>::lock.word() && (old & Lock::Layout::kQueued) != 0;
    return keeps ? now | Lock::Layout::kQueued : now;
  }
};

// Enough tickets are out that auto-ticket starts a queue. One thread stands in for their holders:
// it releases the lock once for the owner and once for each of them, as they would in their turn.
template <class Lock>
Program many_waiters(std::uint32_t queues, Mutation* bug) {
  constexpr std::uint32_t kStandIns = 9;
  Setting setting;
  setting.mode = WaitMode::kAdaptive;
  setting.admitted_limit = 16;
  setting.ticket_queues = queues;
  setting.bug = bug;
  Program program = Scenarios<Lock>::base(setting);
  program.setup = [setup = program.setup] {
    setup();
    using Layout = typename Lock::Layout;
    Scenarios<Lock>::lock.begin_with(Layout::kFree | Layout::kLocked |
                                     (kStandIns << Layout::kTicketTailShift));
  };
  program.threads.emplace_back([] {
    for (std::uint32_t i = 0; i <= kStandIns; ++i) Scenarios<Lock>::lock.unlock();
  });
  for (int i = 0; i < 2; ++i) program.threads.emplace_back(&Scenarios<Lock>::visit);
  program.finish = [] { Scenarios<Lock>::lock.check_free(); };
  return program;
}

template <class Lock>
void add_auto_ticket(std::vector<Case>& cases, const std::string& name) {
  for (const std::uint32_t queues : {0u, 1u}) {
    cases.push_back({"many waiters, " + std::to_string(queues) + " ticket queues/" + name,
                     many_waiters<Lock>(queues, nullptr), bounds_of(1), Expect::kPass, ""});
  }
  cases.push_back({"planted: the queue is never given up/" + name,
                   many_waiters<Lock>(1, planted<StaysQueued<Lock>>()), bounds_of(1),
                   Expect::kFailure, ""});
}

}  // namespace

void add_order_cases(std::vector<Case>& cases) {
  add_ordered<MutexUnderTest<Ticket>>(cases, "ticket mutex", false);
  add_ordered<SpinUnderTest<Ticket>>(cases, "ticket spinlock", false);
  add_ordered<MutexUnderTest<TicketBackoff>>(cases, "ticket-backoff mutex", false);
  add_ordered<MutexUnderTest<AutoTicket>>(cases, "auto-ticket mutex", false);
  add_ordered<MutexUnderTest<Qspinlock>>(cases, "qspinlock mutex", true);
  add_ordered<SpinUnderTest<Qspinlock>>(cases, "qspinlock spinlock", true);
  using QueueMutex = MutexUnderTest<Qspinlock>;
  static HeadOvertakesPending<QueueMutex> bug;
  cases.push_back({"planted: the queue head overtakes the pending waiter/qspinlock mutex",
                   Ordered<QueueMutex, &joins_queue<MutexLayout>>::program(WaitMode::kSpin, &bug),
                   bounds_of(2), Expect::kFailure, "overtakes"});
  add_cna<MutexUnderTest<Cna>>(cases, "cna mutex");
  add_cna<SpinUnderTest<Cna>>(cases, "cna spinlock");
  add_auto_ticket<MutexUnderTest<AutoTicket>>(cases, "auto-ticket mutex");
  add_auto_ticket<SpinUnderTest<AutoTicket>>(cases, "auto-ticket spinlock");
}

}  // namespace relock::explore
