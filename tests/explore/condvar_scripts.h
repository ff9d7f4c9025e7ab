// Scripts around a mutex and a condition variable, as interpose/cond.cpp drives them.
#pragma once

#include <new>

#include "scenarios.h"

namespace relock::explore {

// What a caller may get wrong: planted bugs that lie in the order of calls.
enum class CallerBug {
  kNone,
  kIgnoresTaken,        // timed out although a signal had come: swallows it
  kEnlistsAfterUnlock,  // a signal in between is lost
  kNeverConfirms,       // destroy waits for ever
  kDestroysAtOnce,      // does not wait for those who leave
  kKeepsSignal,         // cancelled with a signal that belongs to the next
};

// When a waiter is interrupted.
enum class Handler { kNone, kBeforeWake, kAfterWake, kAtMutex };

class CondUnderTest {
 public:
  using Cond = testing::CondDriver<P>;
  using Node = Cond::Node;
  using Mutex = MutexUnderTest<Tas>;
  static constexpr int kWaiters = 4;  // threads 0 to 3 may wait

  void reset(const Setting& setting, CallerBug bug) {
    bug_ = bug;
    std::memset(static_cast<void*>(&cells), 0, sizeof cells);
    std::memset(rooms_, 0, sizeof rooms_);
    new (came_room_) testing::Parker<P>;
    posts = 0;
    last_posted = -1;
    mutex.reset();
    Surroundings::reset(setting);
    name_memory(came_room_, sizeof came_room_, "came");
    name_memory(&cells.lock, 4, "cond.lock");
    name_memory(&cells.unconfirmed, 4, "cond.unconfirmed");
    name_memory(&cells.head, 8, "cond.head");
    name_memory(&cells.tail, 8, "cond.tail");
    for (int i = 0; i < kWaiters; ++i) {
      name_memory(&node(i).state, 4, "waiter" + std::to_string(i) + ".state");
      name_memory(&node(i).parker, sizeof(testing::Parker<P>),
                  "waiter" + std::to_string(i) + ".post");
      watch(&rooms_[i], offsetof(Node, state));
    }
  }

  // With the mutex held. False: timed out. In production the node lies on the waiter's stack; here
  // its place is poisoned when the wait is over, which is stricter. A signal handler that comes in
  // the wait ends only once `came` is posted.
  bool wait(const Deadline* deadline, Handler handler = Handler::kNone) {
    unpoison(&rooms_[this_thread()]);
    Node* node = new (&rooms_[this_thread()]) Node;
    if (bug_ == CallerBug::kEnlistsAfterUnlock) mutex.unlock();
    Cond::enlist(view(), *node);
    if (bug_ != CallerBug::kEnlistsAfterUnlock) mutex.unlock();
    if (handler == Handler::kBeforeWake) (void)came().wait(nullptr);
    bool signalled = node->parker.wait(deadline);
    if (handler == Handler::kAfterWake) (void)came().wait(nullptr);
    if (!signalled && (bug_ == CallerBug::kIgnoresTaken || !Cond::leave(view(), *node))) {
      if (bug_ != CallerBug::kIgnoresTaken) signalled = node->parker.wait(nullptr);
    }
    if (signalled && bug_ != CallerBug::kNeverConfirms) Cond::confirm(view(), *node);
    come_back(node);
    return signalled;
  }

  // The same, but the end of time is a cancellation, and a signal that came with it goes on.
  bool wait_or_be_cancelled(const Deadline& deadline) {
    unpoison(&rooms_[this_thread()]);
    Node* node = new (&rooms_[this_thread()]) Node;
    Cond::enlist(view(), *node);
    mutex.unlock();
    const bool signalled = node->parker.wait(&deadline);
    if (signalled) {
      Cond::confirm(view(), *node);
    } else if (!Cond::leave(view(), *node)) {
      (void)node->parker.wait(nullptr);
      if (bug_ == CallerBug::kKeepsSignal) {
        Cond::confirm(view(), *node);
      } else {
        Cond::hand_back(view(), *node);
      }
    }
    come_back(node);
    return signalled;
  }

  void signal() { Cond::signal(view()); }
  void broadcast() { Cond::broadcast(view()); }
  void destroy() {
    WaitContext<P> context{&Surroundings::budget};
    if (bug_ != CallerBug::kDestroysAtOnce) Cond::destroy(view(), context);
    poison(&cells, sizeof cells);
  }

  Mutex mutex;
  testing::CondCells<P> cells;
  int posts;  // so far, and whose was the last: for the planted bugs
  int last_posted;
  testing::Parker<P>& came() { return *reinterpret_cast<testing::Parker<P>*>(came_room_); }
  Node& node(int thread) { return *reinterpret_cast<Node*>(&rooms_[thread]); }

 private:
  struct alignas(Node) Room {
    unsigned char bytes[sizeof(Node)];
  };

  testing::CondCellsView<P> view() { return testing::CondCellsView<P>(cells); }
  void come_back(Node* node) {
    mutex.lock();
    poison(node, sizeof *node);
  }

  alignas(testing::Parker<P>) unsigned char came_room_[sizeof(testing::Parker<P>)];
  CallerBug bug_ = CallerBug::kNone;
  Room rooms_[kWaiters];
};

// Programs. `ready` and the counters are protected by the mutex.
struct CondPrograms {
  static inline CondUnderTest cond;
  static inline int tokens;
  static inline int waiting;
  static inline int sent;
  static inline int received;

  // How the waiters of the programs that are made from now on wait for the mutex.
  static inline WaitMode mode = WaitMode::kPark;

  static Program base(CallerBug bug, Mutation* mutant) {
    Program program;
    Setting setting;
    setting.mode = mode;
    setting.bug = mutant;
    program.setup = [setting, bug] {
      cond.reset(setting, bug);
      tokens = waiting = sent = received = 0;
    };
    return program;
  }

  static void take_token() {
    cond.mutex.lock();
    while (looked_at(tokens) == 0) (void)cond.wait(nullptr);
    --tokens;
    cond.mutex.unlock();
  }

  // `waiters` threads wait for a token each; another gives the tokens, one signal each or one
  // broadcast for all, with the mutex or without.
  static Program tokens_for(int waiters, bool broadcast, bool under_mutex, bool then_destroy,
                            CallerBug bug = CallerBug::kNone, Mutation* mutant = nullptr) {
    Program program = base(bug, mutant);
    for (int i = 0; i < waiters; ++i) program.threads.emplace_back(&take_token);
    program.threads.emplace_back([=] {
      cond.mutex.lock();
      tokens = waiters;
      if (!under_mutex) cond.mutex.unlock();
      for (int i = 0; i < (broadcast ? 1 : waiters); ++i) {
        broadcast ? cond.broadcast() : cond.signal();
      }
      if (then_destroy && under_mutex) cond.destroy();
      if (under_mutex) cond.mutex.unlock();
      if (then_destroy && !under_mutex) cond.destroy();
    });
    program.finish = &check_empty;
    return program;
  }

  // When all is over nobody is in the list, and nobody in the small lock.
  static void check_empty() {
    if (cond.cells.head.load(MemoryOrder::kRelaxed) != nullptr ||
        cond.cells.tail.load(MemoryOrder::kRelaxed) != nullptr) {
      fail("somebody is left in the list");
    }
    // In a forked child nobody may have had a reason to drop the parent's; destroy() would.
    if (cond.cells.list_epoch.load(MemoryOrder::kRelaxed) == World::active->epoch() &&
        cond.cells.unconfirmed.load(MemoryOrder::kRelaxed) != 0) {
      fail("somebody is unconfirmed");
    }
    if ((cond.cells.lock.load(MemoryOrder::kRelaxed) & 3) != 0) fail("the small lock is held");
  }

  static void receive() {
    ++received;
    if (received > sent) fail("more waits ended by a signal than signals were sent");
  }

  // Two wait, one of them with a time limit or until cancelled. One signal: it must not be
  // swallowed. If the limited one gets it, it says so with a signal of its own. A signaller that
  // comes too early opens the door for everybody.
  static Program signal_races(bool cancelled, CallerBug bug = CallerBug::kNone,
                              Mutation* mutant = nullptr) {
    Program program = base(bug, mutant);
    program.threads.emplace_back([cancelled] {
      cond.mutex.lock();
      if (looked_at(tokens) == 0) {
        ++waiting;
        if (cancelled ? cond.wait_or_be_cancelled(kSoon) : cond.wait(&kSoon)) {
          receive();
          ++sent;
          cond.signal();
        }
      }
      cond.mutex.unlock();
    });
    program.threads.emplace_back([] {
      cond.mutex.lock();
      if (looked_at(tokens) == 0) {
        ++waiting;
        (void)cond.wait(nullptr);
        receive();
      }
      cond.mutex.unlock();
    });
    program.threads.emplace_back([] {
      cond.mutex.lock();
      tokens = 1;
      sent += looked_at(waiting) == 2 ? 1 : 2;
      looked_at(waiting) == 2 ? cond.signal() : cond.broadcast();
      cond.mutex.unlock();
    });
    program.finish = &check_empty;
    return program;
  }

  // A waiter may time out while the object is being destroyed after a broadcast.
  static Program destroy_races_timeout(CallerBug bug = CallerBug::kNone) {
    Program program = base(bug, nullptr);
    program.threads.emplace_back([] {
      cond.mutex.lock();
      if (looked_at(tokens) == 0) (void)cond.wait(&kSoon);
      cond.mutex.unlock();
    });
    program.threads.emplace_back([] {
      cond.mutex.lock();
      tokens = 1;
      cond.broadcast();
      cond.mutex.unlock();
      cond.destroy();
    });
    return program;
  }

  // T0's wait is interrupted by a handler that ends only once T1 has come, and both come by one
  // broadcast.
  static Program handler(Handler when, bool under_mutex, Mutation* mutant = nullptr) {
    Program program = base(CallerBug::kNone, mutant);
    program.threads.emplace_back([when] {
      cond.mutex.lock();
      if (when == Handler::kAtMutex) {
        machine.handler = [] { (void)cond.came().wait(nullptr); };
        machine.interrupted = this_thread();
      }
      if (looked_at(tokens) == 0) (void)cond.wait(nullptr, when);
      machine.interrupted = -1;
      cond.mutex.unlock();
    });
    program.threads.emplace_back([] {
      take_token();
      cond.came().post();
    });
    program.threads.emplace_back([under_mutex] {
      cond.mutex.lock();
      tokens = 2;  // T1 takes one
      if (!under_mutex) cond.mutex.unlock();
      cond.broadcast();
      if (under_mutex) cond.mutex.unlock();
    });
    program.finish = &check_empty;
    return program;
  }

  // The first that a broadcast has woken destroys the object: the broadcaster may not have posted
  // all of them, the others may not have come.
  static Program destroyed_by_a_waiter(int waiters, Mutation* mutant = nullptr) {
    Program program = base(CallerBug::kNone, mutant);
    for (int i = 0; i < waiters; ++i) {
      program.threads.emplace_back([] {
        cond.mutex.lock();
        if (looked_at(tokens) == 0) {
          (void)cond.wait(nullptr);
          if (looked_at(received) == 0) cond.destroy();
          ++received;
        }
        cond.mutex.unlock();
      });
    }
    program.threads.emplace_back([] {
      cond.mutex.lock();
      tokens = 1;
      cond.mutex.unlock();
      cond.broadcast();
    });
    return program;
  }

  // What one thread of a crowd does: 'w' waits for a token, 'x' does so until 10 s, 'c' until it is
  // cancelled then; 's' gives a token and signals with the mutex, 'S' without; 'b' gives enough for
  // everybody and broadcasts with the mutex, 'B' without.
  static std::function<void()> script_of(char each) {
    switch (each) {
      case 'x':
      case 'c':
        return [cancelled = each == 'c'] {
          cond.mutex.lock();
          bool in_time = true;
          while (in_time && looked_at(tokens) == 0) {
            in_time = cancelled ? cond.wait_or_be_cancelled(kSoon) : cond.wait(&kSoon);
          }
          if (in_time) --tokens;
          cond.mutex.unlock();
        };
      case 's':
      case 'S':
      case 'b':
      case 'B':
        return [all = each == 'b' || each == 'B', held = each == 's' || each == 'b'] {
          cond.mutex.lock();
          tokens += all ? kMaxThreads : 1;
          if (!held) cond.mutex.unlock();
          all ? cond.broadcast() : cond.signal();
          if (held) cond.mutex.unlock();
        };
      default:
        return &take_token;
    }
  }
  static Program crowd(const std::string& who) {
    Program program = base(CallerBug::kNone, nullptr);
    for (const char each : who) program.threads.emplace_back(script_of(each));
    program.finish = &check_empty;
    return program;
  }

  // T0 forks while others (`who`, as in crowd()) wait or signal. The child's own threads (`child`)
  // use the condition variable.
  static Program forking(const std::string& who, const std::string& child,
                         Mutation* mutant = nullptr) {
    Program program = base(CallerBug::kNone, mutant);
    for (const char each : child) program.later.emplace_back(script_of(each));
    const int started = static_cast<int>(child.size());
    program.threads.emplace_back([started] {
      cond.mutex.lock();
      become_forked_child();
      Surroundings::wipe();
      for (int i = 0; i < started; ++i) start_thread(i);
      tokens = 0;
      cond.mutex.unlock();
      take_token();
    });
    for (const char each : who) program.threads.emplace_back(script_of(each));
    return program;
  }
};

}  // namespace relock::explore
