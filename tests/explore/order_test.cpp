// What particular locks promise beyond exclusion: order, queues by node, queues for many waiters.
#include <algorithm>

#include "case.h"
#include "policy/options.h"
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
  static void watch() {
    line.clear();
    on_commit(&watch_word);
  }
  static void visit() {
    S::lock.lock();
    S::section.enter();
    if (line.holds(this_thread())) line.serve(this_thread());
    step();
    S::section.leave();
    S::lock.unlock();
  }

  static Program program(WaitMode mode, int threads, Mutation* bug = nullptr) {
    Setting setting;
    setting.mode = mode;
    setting.bug = bug;
    setting.admitted_limit = 4;
    Program program = S::base(setting);
    program.setup = [setup = program.setup] {
      setup();
      watch();
    };
    for (int i = 0; i < threads; ++i) program.threads.emplace_back(&visit);
    return program;
  }
};

template <class Lock>
constexpr auto joins() {
  if constexpr (requires { typename Lock::Word::Slow; }) {
    return &joins_queue<typename Lock::Layout>;
  } else {
    return &takes_ticket<typename Lock::Layout>;
  }
}

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
void add_ordered(std::vector<Case>& cases, const std::string& name) {
  using Order = Ordered<Lock, joins<Lock>()>;
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    if (!Lock::kTimed && mode == WaitMode::kPark) continue;  // spinlocks do not park
    for (const int threads : {3, 4}) {
      const int most = mode == WaitMode::kAdaptive ? 4 : 5;  // switches and threads together
      cases.push_back({"first come, first served, " + std::to_string(threads) + " threads/" + name +
                           "/" + wait_mode_name(mode),
                       Order::program(mode, threads), bounds_of(threads == 3 ? 2 : most - threads),
                       Expect::kPass, ""});
    }
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

// What goes back to the front at a flush is not joined to the rest.
struct FlushDropsTheRest : Mutation {
  bool drops_pointer_store(const void* cell, const void* value) override {
    const int thread = this_thread();
    const bool cuts = value == nullptr && cell != &Surroundings::nodes[thread].next;
    const bool links = value != nullptr && value != &Surroundings::nodes[thread];
    const bool flushes = links && cell != &Surroundings::nodes[thread].next && !cut_before_[thread];
    cut_before_[thread] = cuts;  // setting aside cuts first
    return flushes;
  }

 private:
  bool cut_before_[kMaxThreads] = {};
};

// Long lines, so without switches that blocking does not force: what they are for is the search
// through the queue, whose random draws are choices.
template <class Lock>
void add_lines(std::vector<Case>& cases, const std::string& name, std::uint32_t local) {
  Setting setting;
  setting.local_hand_offs = local;
  const std::string suffix = ", " + std::to_string(local) + " local hand-offs/" + name;
  Bounds in_line = bounds_of(0);
  in_line.one_by_one = true;
  for (const int nodes : {2, 3}) {
    setting.numa_nodes = nodes;
    const std::string on = " waiters on " + std::to_string(nodes) + " nodes";
    cases.push_back({"4" + on + suffix, line_of_nodes<Lock>(setting, 4), bounds_of(0),
                     Expect::kPass, "", local > 1 && nodes > 2});
    cases.push_back({"5" + on + " in line" + suffix, line_of_nodes<Lock>(setting, 5), in_line,
                     Expect::kPass, "", local > 1});
    cases.push_back({"5" + on + suffix, line_of_nodes<Lock>(setting, 5), bounds_of(0),
                     Expect::kPass, "", true});
  }
}

template <class Lock>
void add_cna(std::vector<Case>& cases, const std::string& name) {
  for (const std::uint32_t local : {1u, 8u}) {
    // A spinlock's waiters pause, which takes too many steps.
    if constexpr (Lock::kTimed) add_lines<Lock>(cases, name, local);
    Setting setting;
    setting.local_hand_offs = local;
    const std::string suffix = ", " + std::to_string(local) + " local hand-offs/" + name;
    setting.admitted_limit = 4;
    for (const int nodes : {2, 3}) {
      setting.numa_nodes = nodes;
      Bounds bounds = bounds_of(1);
      bounds.delayed_stores = 0;
      const std::string on = " threads on " + std::to_string(nodes) + " nodes";
      cases.push_back(
          {"4" + on + suffix, Scenarios<Lock>::visits(setting, 4), bounds, Expect::kPass, ""});
      cases.push_back({"3" + on + suffix, Scenarios<Lock>::visits(setting, 3), bounds_of(2),
                       Expect::kPass, ""});
    }
  }
  if constexpr (Lock::kTimed) {
    Setting setting;
    setting.numa_nodes = 2;
    Bounds in_line = bounds_of(0);
    in_line.one_by_one = true;
    setting.bug = planted<PartIsLost>();
    cases.push_back({"planted: a part of the queue is lost/" + name,
                     line_of_nodes<Lock>(setting, 5), in_line, Expect::kFailure, ""});
    setting.bug = planted<FlushDropsTheRest>();
    cases.push_back({"planted: a flush drops the rest of the queue/" + name,
                     line_of_nodes<Lock>(setting, 5), in_line, Expect::kFailure, ""});
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
struct ManyWaiters {
  using S = Scenarios<Lock>;
  using Order = Ordered<Lock, joins<Lock>()>;
  static constexpr std::uint32_t kStandIns = 9;
  static inline Lock locks[3];

  static constexpr std::uint32_t many() {
    using Layout = typename Lock::Layout;
    return Layout::kFree | Layout::kLocked | (kStandIns << Layout::kTicketTailShift);
  }
  static Setting setting_of(WaitMode mode, std::uint32_t queues, Mutation* bug) {
    Setting setting;
    setting.mode = mode;
    setting.admitted_limit = 16;
    setting.ticket_queues = queues;
    setting.bug = bug;
    return setting;
  }

  // `full`: all queues belong to some lock that is not modelled.
  static Program one_lock(WaitMode mode, std::uint32_t queues, bool full, Mutation* bug = nullptr) {
    Program program = S::base(setting_of(mode, queues, bug));
    program.setup = [setup = program.setup, full] {
      setup();
      S::lock.begin_with(many());
      if (full) {
        for (auto& queue : Surroundings::queues) queue.lock.store(&queue, MemoryOrder::kRelaxed);
      }
      Order::watch();
    };
    program.threads.emplace_back([] {
      for (std::uint32_t i = 0; i <= kStandIns; ++i) S::lock.unlock();
    });
    for (int i = 0; i < 2; ++i) program.threads.emplace_back(&Order::visit);
    program.finish = [] { S::lock.check_free(); };
    return program;
  }

  // The queue that a lock looks at first: the one that it gets while the table is empty.
  static const void* home_of(const Lock& lock) {
    auto* queue = P::queue_table->claim(&lock.word());
    TicketQueueTable<P>::give_back(*queue);
    return queue;
  }

  // Two locks whose first place in the table is the same. With one queue the second finds it full.
  static Program two_locks(WaitMode mode, std::uint32_t queues) {
    static Lock* pair[2];
    static Section sections[2];
    Program program = S::base(setting_of(mode, queues, nullptr));
    program.setup = [setup = program.setup] {
      setup();
      for (Lock& each : locks) each.reset(&each == locks ? "lock0" : "another");
      pair[0] = &locks[0];
      for (int i : {0, 1}) sections[i].reset();
      const bool first = home_of(locks[0]) == home_of(locks[1]);
      const bool second = home_of(locks[0]) == home_of(locks[2]);
      pair[1] = first ? &locks[1] : &locks[2];
      if (!first && !second) pair[0] = &locks[1];
      for (Lock* each : pair) each->begin_with(many());
    };
    program.threads.emplace_back([] {
      for (std::uint32_t i = 0; i <= kStandIns; ++i) {
        for (Lock* each : pair) each->unlock();
      }
    });
    for (int i : {0, 1}) {
      program.threads.emplace_back([i] {
        pair[i]->lock();
        sections[i].visit();
        pair[i]->unlock();
      });
    }
    program.finish = [] {
      for (const Lock* each : pair) each->check_free();
      for (const auto& queue : Surroundings::queues) {
        if (queue.lock.load(MemoryOrder::kRelaxed) != nullptr) fail("a queue is never given back");
      }
    };
    return program;
  }
};

template <class Lock>
void add_auto_ticket(std::vector<Case>& cases, const std::string& name) {
  using Many = ManyWaiters<Lock>;
  const auto add = [&](const std::string& what, WaitMode mode, Program program) {
    cases.push_back({what + "/" + name + "/" + wait_mode_name(mode), std::move(program),
                     bounds_of(1), Expect::kPass, ""});
  };
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    if (!Lock::kTimed && mode == WaitMode::kPark) continue;  // spinlocks do not park
    add("many waiters, no table of queues", mode, Many::one_lock(mode, 0, false));
    add("many waiters, all queues taken", mode, Many::one_lock(mode, 2, true));
    add("many waiters, a queue", mode, Many::one_lock(mode, 1, false));
    add("many waiters of two locks, one queue", mode, Many::two_locks(mode, 1));
    add("many waiters of two locks with one place", mode, Many::two_locks(mode, 2));
  }
  cases.push_back({"planted: the queue is never given up/" + name,
                   Many::one_lock(WaitMode::kAdaptive, 1, false, planted<StaysQueued<Lock>>()),
                   bounds_of(1), Expect::kFailure, ""});
}

template <template <class, class> class Algorithm>
void add_fifo(std::vector<Case>& cases, const std::string& name, const char* fair) {
  if (std::strcmp(fair, "FIFO") != 0) return;
  add_ordered<MutexUnderTest<Algorithm>>(cases, name + " mutex");
  add_ordered<SpinUnderTest<Algorithm>>(cases, name + " spinlock");
}
// These stand for others (locks/lock_list.def).
template <class Platform, class Layout>
struct Glibc;
template <>
void add_fifo<Glibc>(std::vector<Case>&, const std::string&, const char*) {}
template <class Platform, class Layout>
struct Auto;
template <>
void add_fifo<Auto>(std::vector<Case>&, const std::string&, const char*) {}

}  // namespace

void add_order_cases(std::vector<Case>& cases) {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) add_fifo<ident>(cases, name, fair);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
  using QueueMutex = MutexUnderTest<Qspinlock>;
  static HeadOvertakesPending<QueueMutex> bug;
  cases.push_back(
      {"planted: the queue head overtakes the pending waiter/qspinlock mutex",
       Ordered<QueueMutex, &joins_queue<MutexLayout>>::program(WaitMode::kSpin, 3, &bug),
       bounds_of(2), Expect::kFailure, "overtakes"});
  add_cna<MutexUnderTest<Cna>>(cases, "cna mutex");
  add_cna<SpinUnderTest<Cna>>(cases, "cna spinlock");
  add_auto_ticket<MutexUnderTest<AutoTicket>>(cases, "auto-ticket mutex");
  add_auto_ticket<SpinUnderTest<AutoTicket>>(cases, "auto-ticket spinlock");
}

}  // namespace relock::explore
