// The bounds that locks state on being passed over, each with a bug that ignores it.
#include <algorithm>

#include "case.h"
#include "rwsem_scripts.h"
#include "scenarios.h"

namespace relock::explore {

namespace {

Bounds bounds_of(int preemptions, int timeouts = 0) {
  Bounds bounds;
  bounds.preemptions = preemptions + (deep() ? 1 : 0);
  bounds.timeouts = timeouts;
  return bounds;
}

// ---- pv-qspinlock: rounds that a halted queue head loses ----

template <class Lock>
struct Losses {
  using S = Scenarios<Lock>;
  static constexpr int kNobody = -1;
  static inline int head;     // the thread that waits as queue head
  static inline int lost;     // its halts during which somebody stole the lock
  static inline bool stolen;  // during this one
  static inline int most;     // as stated

  static void tell() {
    check_state(static_cast<std::uint64_t>((head + 1) * 100 + lost * 2 + (stolen ? 1 : 0)));
  }
  static void watch_word(int thread, const void* cell, std::uint64_t old, std::uint64_t now) {
    using Layout = typename Lock::Layout;
    if (cell != &S::lock.word()) return;
    const bool taken = (now & ~old & Layout::kLocked) != 0;
    if (!taken && (now & ~old & Layout::kPending) != 0) {
      if (thread != head) lost = 0;
      head = thread;
      stolen = false;
    } else if (taken && thread == head) {
      head = kNobody;
    } else if (taken && head != kNobody && !stolen) {
      stolen = true;
      ++lost;
      if (lost > most) {
        fail("T" + std::to_string(head) + " has lost " + std::to_string(lost) + " rounds");
      }
    }
    tell();
  }

  // T0 comes again and again, so that it can steal; the others queue.
  static Program program(WaitMode mode, std::uint32_t rounds, int waiters, std::uint32_t stated) {
    Setting setting;
    setting.mode = mode;
    setting.admitted_limit = 4;
    setting.lost_rounds = rounds;
    Program program = S::base(setting);
    program.setup = [setup = program.setup, stated] {
      setup();
      head = kNobody;
      lost = 0;
      most = static_cast<int>(stated);
      on_commit(&watch_word);
    };
    program.threads.emplace_back([stated] {
      for (std::uint32_t round = 0; round < stated + 3; ++round) S::visit();
    });
    for (int i = 0; i < waiters; ++i) program.threads.emplace_back(&S::visit);
    program.finish = [] { S::lock.check_free(); };
    return program;
  }
};

template <class Lock>
void add_losses(std::vector<Case>& cases, const std::string& name) {
  using Lost = Losses<Lock>;
  for (const WaitMode mode : {WaitMode::kPark, WaitMode::kAdaptive}) {
    if (!Lock::kTimed && mode == WaitMode::kPark) continue;  // spinlocks do not park
    const std::string suffix = "/" + name + (mode == WaitMode::kPark ? "/park" : "/adaptive");
    for (const std::uint32_t rounds : {0u, 1u, 2u}) {
      cases.push_back({"a head loses at most " + std::to_string(rounds) + " rounds" + suffix,
                       Lost::program(mode, rounds, 1, rounds), bounds_of(3), Expect::kPass, ""});
    }
    cases.push_back({"a head before another loses at most 1 round" + suffix,
                     Lost::program(mode, 1, 2, 1), bounds_of(1), Expect::kPass, ""});
  }
  if constexpr (Lock::kTimed) {
    cases.push_back({"planted: a head that loses for ever/" + name,
                     Lost::program(WaitMode::kPark, 100, 1, 1), bounds_of(2), Expect::kFailure,
                     "has lost 2 rounds"});
  }
}

// ---- cna: hand-offs inside a node while waiters of another one wait ----

template <class Lock>
struct PassedOver {
  using S = Scenarios<Lock>;
  static inline int line[kMaxThreads];
  static inline int length;
  static inline int passed[kMaxThreads];
  static inline int most;

  static void join(int thread) {
    line[length++] = thread;
    passed[thread] = 0;
  }
  static void serve(int thread) {
    int* const end = line + length;
    int* const place = std::find(line, end, thread);
    if (place == end) return;
    for (const int* before = line; before != place; ++before) {
      if (machine.node[*before] == machine.node[thread]) {
        fail("T" + std::to_string(thread) + " overtakes T" + std::to_string(*before) +
             " of the same node");
      }
      if (++passed[*before] > most) {
        fail("T" + std::to_string(*before) + " is passed over " + std::to_string(most + 1) +
             " times");
      }
    }
    std::copy(place + 1, end, place);
    --length;
  }
  static void watch_word(int thread, const void* cell, std::uint64_t old, std::uint64_t now) {
    using Layout = typename Lock::Layout;
    if (cell != &S::lock.word()) return;
    const std::uint64_t tail = now & Layout::kTailMask;
    const bool joins = (now & Layout::kLocked) == (old & Layout::kLocked) && tail != 0 &&
                       tail != (old & Layout::kTailMask);
    if (joins || (now & ~old & Layout::kPending) != 0) join(thread);
    if ((now & ~old & Layout::kLocked) != 0) serve(thread);
    std::uint64_t state = 0;
    for (int i = 0; i < length; ++i) {
      const auto place = static_cast<std::uint64_t>(line[i] + 1);
      state = state * 64 + place * 8 + static_cast<std::uint64_t>(passed[line[i]]);
    }
    check_state(state);
  }

  // The last thread stands in for the owner; the first waiter becomes pending, the rest queue.
  static Program program(const char* nodes, std::uint32_t local, std::uint32_t stated) {
    Setting setting;
    setting.admitted_limit = 5;
    setting.local_hand_offs = local;
    setting.node_of = nodes;
    Program program = S::base(setting);
    const int waiters = static_cast<int>(std::strlen(nodes));
    program.setup = [setup = program.setup, nodes, stated] {
      setup();
      const std::string all = nodes;
      most = static_cast<int>(stated) * (*std::max_element(all.begin(), all.end()) - '0');
      length = 0;
      S::lock.begin_with(Lock::Layout::kFree | Lock::Layout::kLocked);
      on_commit(&watch_word);
    };
    for (int i = 0; i < waiters; ++i) program.threads.emplace_back(&S::visit);
    program.threads.emplace_back([] { S::lock.unlock(); });
    program.finish = [] { S::lock.check_free(); };
    return program;
  }
};

template <class Lock>
void add_passed_over(std::vector<Case>& cases, const std::string& name) {
  using Passed = PassedOver<Lock>;
  const auto add = [&](const char* nodes, std::uint32_t local, Bounds bounds) {
    cases.push_back({"passed over by at most " + std::to_string(local) + ", nodes " + nodes +
                         (bounds.one_by_one ? " in line/" : "/") + name,
                     Passed::program(nodes, local, local), bounds, Expect::kPass, ""});
  };
  Bounds in_line;
  in_line.preemptions = deep() ? 1 : 0;
  in_line.one_by_one = true;
  for (const std::uint32_t local : {0u, 1u, 2u}) {
    for (const char* nodes : {"0101", "0011", "0120", "01011", "01211", "01202", "00121"}) {
      add(nodes, local, in_line);
    }
  }
  add("0101", 1, bounds_of(0));
  add("0120", 2, bounds_of(0));
  add("010", 1, bounds_of(1));
  cases.push_back({"planted: no bound on local hand-offs/" + name, Passed::program("01011", 100, 1),
                   in_line, Expect::kFailure, "is passed over 2 times"});
}

// ---- the gate: a sleeper lets itself in when its time has come ----

// No release ever admits anybody.
template <class Lock>
struct NobodyIsAdmitted : Mutation {
  bool drops_wake(const void* address, std::uint32_t) override {
    return address == &Scenarios<Lock>::lock.gate();
  }
};

template <template <class, class> class Algorithm>
void add_promotion(std::vector<Case>& cases, const std::string& name) {
  using Lock = MutexUnderTest<Algorithm>;
  for (const WaitMode mode : {WaitMode::kPark, WaitMode::kAdaptive}) {
    Setting setting;
    setting.mode = mode;
    setting.bug = planted<NobodyIsAdmitted<Lock>>();
    setting.promote_ns = 10'000'000'000;
    Bounds bounds = bounds_of(1, 8);
    bounds.idle_time = true;
    cases.push_back({"nobody is admitted, all come in by time/" + name + " mutex" +
                         (mode == WaitMode::kPark ? "/park" : "/adaptive"),
                     Scenarios<Lock>::visits(setting, 3), bounds, Expect::kPass, ""});
  }
}
template <class Platform, class Layout>
struct Glibc;
template <>
void add_promotion<Glibc>(std::vector<Case>&, const std::string&) {}
template <class Platform, class Layout>
struct Auto;
template <>
void add_promotion<Auto>(std::vector<Case>&, const std::string&) {}

// ---- rwsem: theft ends when the head, or a reader, has waited for promote_ns ----

struct Theft {
  using R = RwPrograms;
  using Sem = RwUnderTest::Sem;

  // Who has said that it has waited long, and has neither come in nor given up.
  static inline int head;
  static inline bool reader;
  static constexpr int kNobody = -1;

  static void watch_state(int thread, const void* cell, std::uint64_t old, std::uint64_t now) {
    if (cell != &R::lock.cells().state) return;
    const std::uint64_t set = now & ~old;
    const std::uint64_t cleared = old & ~now;
    if ((set & Sem::kWriter) != 0) {
      if (reader) fail("T" + std::to_string(thread) + " passes a reader that has waited long");
      if (head != kNobody && head != thread) {
        fail("T" + std::to_string(thread) + " passes a writer that has waited long");
      }
    }
    const bool comes_in = (now & Sem::kReadersMask) > (old & Sem::kReadersMask);
    const bool gives_up = thread != 0 && (now & Sem::kWriter) == (old & Sem::kWriter);
    if (comes_in || (gives_up && (cleared & Sem::kReadersFirst) != 0)) reader = false;
    if (thread == head && (cleared & Sem::kWriterFirst) != 0) head = kNobody;
    if ((set & Sem::kReadersFirst) != 0) reader = true;
    if ((set & Sem::kWriterFirst) != 0) head = thread;
    check_state(static_cast<std::uint64_t>(head + 1) * 2 + (reader ? 1 : 0));
  }

  static Program program(WaitMode mode, const char* who, Mutation* bug) {
    Setting setting;
    setting.mode = mode;
    setting.promote_ns = 10'000'000'000;
    setting.bug = bug;
    Program program = R::base(setting, RwPreference::kReaders);
    program.setup = [setup = program.setup] {
      setup();
      head = kNobody;
      reader = false;
      on_commit(&watch_state);
    };
    program.threads.emplace_back([] {
      for (int round = 0; round < 3; ++round) R::write();
    });
    for (const char* each = who; *each != '\0'; ++each) {
      program.threads.emplace_back(R::script_of(*each));
    }
    return program;
  }
};

// A writer's release forgets what somebody has said.
template <std::uint64_t kBit>
struct ReleaseForgets : Mutation {
  std::uint64_t desired(const void* cell, std::uint64_t old, std::uint64_t now) override {
    const bool releases =
        cell == &RwPrograms::lock.cells().state && (old & ~now & RwUnderTest::Sem::kWriter) != 0;
    return releases ? now & ~kBit : now;
  }
};

void add_theft(std::vector<Case>& cases) {
  for (const WaitMode mode : {WaitMode::kPark, WaitMode::kAdaptive}) {
    const std::string suffix =
        std::string("/rwsem/") + (mode == WaitMode::kPark ? "park" : "adaptive");
    for (const char* who : {"w", "r", "wr", "X", "x"}) {
      const bool two = std::strlen(who) == 2;
      cases.push_back({std::string("theft has a bound, ") + who + suffix,
                       Theft::program(mode, who, nullptr), bounds_of(two ? 1 : 2, 2), Expect::kPass,
                       ""});
    }
  }
  using Sem = RwUnderTest::Sem;
  cases.push_back(
      {"planted: a release forgets that a writer has waited long/rwsem",
       Theft::program(WaitMode::kPark, "w", planted<ReleaseForgets<Sem::kWriterFirst>>()),
       bounds_of(2, 1), Expect::kFailure, "passes a writer"});
  cases.push_back(
      {"planted: a release forgets that a reader has waited long/rwsem",
       Theft::program(WaitMode::kPark, "r", planted<ReleaseForgets<Sem::kReadersFirst>>()),
       bounds_of(2, 1), Expect::kFailure, "passes a reader"});
}

// ---- ticket-backoff: the delays that the threads have learned ----

Program backoff_with(std::uint32_t most_units) {
  using S = Scenarios<MutexUnderTest<TicketBackoff>>;
  Setting setting;
  setting.mode = WaitMode::kSpin;
  Program program = S::rounds(setting, 3, 2);
  program.setup = [setup = program.setup, most_units] {
    setup();
    Surroundings::budget.backoff_units = most_units;
  };
  program.finish = [finish = program.finish] {
    finish();
    for (const BackoffTable& table : P::backoff_tables) {
      const std::uint32_t delay = table.delay_of(&S::lock.word());
      if (delay > BackoffDelay::kUnit) fail("a delay is longer than a pause");
    }
  };
  return program;
}

void add_backoff(std::vector<Case>& cases) {
  cases.push_back({"delays stay under their cap/ticket-backoff mutex/spin", backoff_with(1),
                   bounds_of(1), Expect::kPass, ""});
  cases.back().whole = true;
  cases.push_back({"planted: a larger cap on delays/ticket-backoff mutex", backoff_with(2),
                   bounds_of(1), Expect::kFailure, "a delay is longer than a pause"});
}

}  // namespace

void add_bound_cases(std::vector<Case>& cases) {
  add_losses<MutexUnderTest<PvQspinlock>>(cases, "pv-qspinlock mutex");
  add_losses<SpinUnderTest<PvQspinlock>>(cases, "pv-qspinlock spinlock");
  add_passed_over<MutexUnderTest<Cna>>(cases, "cna mutex");
#define RELOCK_LOCK_ROW(ident, name, fair, idea) add_promotion<ident>(cases, name);
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
  add_theft(cases);
  add_backoff(cases);
}

}  // namespace relock::explore
