// Lock-neutral scripts: what a few threads do with one lock.
#pragma once

#include <functional>
#include <string>

#include "lock_under_test.h"
#include "script.h"

namespace relock::explore {

inline constexpr Deadline kSoon{10'000'000'000, false};
inline constexpr Deadline kLater{20'000'000'000, false};
inline constexpr Deadline kPast{1, false};

template <class Lock>
struct Scenarios {
  static inline Lock lock;
  static inline Lock other;
  static inline Section section;
  static inline Section other_section;

  static void visit() {
    lock.lock();
    section.visit();
    lock.unlock();
  }

  static Program base(const Setting& setting) {
    Program program;
    program.setup = [setting] {
      lock.reset();
      section.reset();
      name_memory(&section, sizeof section, "section");
      Surroundings::reset(setting);
      on_commit([](int, const void* cell, std::uint64_t, std::uint64_t now) {
        if (cell == &lock.word()) Lock::check_word(static_cast<std::uint32_t>(now));
      });
    };
    return program;
  }

  static void fork() {
    become_forked_child();
    Surroundings::wipe();
  }

  // `threads` threads lock and unlock `rounds` times.
  static Program rounds(const Setting& setting, int threads, int rounds) {
    Program program = base(setting);
    for (int i = 0; i < threads; ++i) {
      program.threads.emplace_back([rounds] {
        for (int round = 0; round < rounds; ++round) {
          lock.lock();
          section.visit_data();
          lock.unlock();
        }
      });
    }
    program.finish = [threads, rounds] {
      section.check_data(threads * rounds);
      lock.check_free();
    };
    return program;
  }

  // What one thread of a crowd does: 'l' locks, 't' tries, 'x' and 'y' wait until 10 s and 20 s,
  // 'p' comes with a limit that has passed.
  static void (*script_of(char each))() {
    switch (each) {
      case 't':
        return [] {
          if (lock.try_lock()) leave();
        };
      case 'x':
        return [] {
          if (lock.lock_until(&kSoon)) leave();
        };
      case 'y':
        return [] {
          if (lock.lock_until(&kLater)) leave();
        };
      case 'p':
        return [] {
          if (lock.lock_until(&kPast)) leave();
        };
      default:
        return &visit;
    }
  }
  static void leave() {
    section.visit();
    lock.unlock();
  }

  // One thread for each letter.
  static Program crowd(const Setting& setting, const char* who) {
    Program program = base(setting);
    for (const char* each = who; *each != '\0'; ++each) {
      program.threads.emplace_back(script_of(*each));
    }
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // T0 comes `rounds` times while the others come once.
  static Program uneven(const Setting& setting, int rounds, int others) {
    Program program = base(setting);
    program.threads.emplace_back([rounds] {
      for (int round = 0; round < rounds; ++round) visit();
    });
    for (int i = 0; i < others; ++i) program.threads.emplace_back(&visit);
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // T0 wants the lock back at once, while those who slept meanwhile starve.
  static Program starving(const Setting& setting, const char* who) {
    Program program = crowd(setting, who);
    program.threads.insert(program.threads.begin(), [] {
      lock.lock();
      lock.starve();
      leave();
      visit();
    });
    return program;
  }

  // Each thread comes once, without data.
  static Program visits(const Setting& setting, int threads) {
    Program program = base(setting);
    for (int i = 0; i < threads; ++i) program.threads.emplace_back(&visit);
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // One of the threads only tries.
  static Program trying(const Setting& setting, int threads) {
    Program program = base(setting);
    program.threads.emplace_back([] {
      if (!lock.try_lock()) return;
      section.visit();
      lock.unlock();
    });
    for (int i = 1; i < threads; ++i) program.threads.emplace_back(&visit);
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // A waiter may give up in the middle; afterwards it comes again without a limit.
  static Program giving_up(const Setting& setting, int threads, Deadline deadline,
                           bool comes_again) {
    Program program = base(setting);
    program.threads.emplace_back([deadline, comes_again] {
      if (lock.lock_until(&deadline)) {
        section.visit();
        lock.unlock();
      } else if (comes_again) {
        visit();
      }
    });
    for (int i = 1; i < threads; ++i) program.threads.emplace_back(&visit);
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // Two timed waiters with different limits beside an untimed thread.
  static Program two_timed(const Setting& setting) {
    Program program = base(setting);
    for (const Deadline deadline : {kSoon, kLater}) {
      program.threads.emplace_back([deadline] {
        if (!lock.lock_until(&deadline)) return;
        section.visit();
        lock.unlock();
      });
    }
    program.threads.emplace_back(&visit);
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // So many threads sleep at the gate that the word cannot count one more. They are not modelled:
  // whoever comes now must get the lock without being counted.
  static Program gate_full(const Setting& setting) {
    Program program = base(setting);
    program.setup = [setup = program.setup] {
      setup();
      lock.begin_with(Lock::Layout::kFree | Lock::Layout::kLocked | Lock::Layout::kPassiveMask);
    };
    program.threads.emplace_back([] { lock.unlock(); });
    program.threads.emplace_back(&visit);
    program.threads.emplace_back([] {
      if (!lock.lock_until(&kSoon)) return;
      section.visit();
      lock.unlock();
    });
    return program;
  }

  // The last user destroys the lock as soon as it has released it.
  static Program destroying(const Setting& setting, int threads) {
    Program program = base(setting);
    for (int i = 0; i < threads; ++i) {
      program.threads.emplace_back([threads] {
        lock.lock();
        section.visit();
        const bool last = section.visits() == threads;
        lock.unlock();
        if (last) lock.destroy();
      });
    }
    return program;
  }

  // While T1 waits, a signal handler of its uses another lock.
  static Program interrupted(const Setting& setting) {
    Program program = base(setting);
    program.setup = [setting] {
      lock.reset();
      other.reset("other");
      section.reset();
      other_section.reset();
      Surroundings::reset(setting);
      machine.interrupted = 1;
      machine.handler = [] {
        other.lock();
        other_section.visit();
        other.unlock();
      };
    };
    program.threads.emplace_back([] {
      visit();
      other.lock();
      other_section.visit();
      other.unlock();
    });
    program.threads.emplace_back(&visit);
    program.threads.emplace_back(&visit);
    program.finish = [] {
      lock.check_free();
      other.check_free();
    };
    return program;
  }

  // Two locks, taken in order; the second while holding the first.
  static Program nested(const Setting& setting) {
    Program program = base(setting);
    program.setup = [setting] {
      lock.reset();
      other.reset("other");
      section.reset();
      other_section.reset();
      Surroundings::reset(setting);
    };
    for (int i = 0; i < 2; ++i) {
      program.threads.emplace_back([] {
        lock.lock();
        other.lock();
        section.visit();
        other.unlock();
        lock.unlock();
      });
    }
    program.threads.emplace_back([] {
      other.lock();
      other_section.visit();
      other.unlock();
    });
    program.finish = [] {
      lock.check_free();
      other.check_free();
    };
    return program;
  }

  // A normal mutex that T0 unlocks once too often, while others own it or queue for it. It excludes
  // nobody then, but nobody may be left waiting.
  static Program stray_unlock(const Setting& setting, const Deadline* limit_of_one) {
    Program program = base(setting);
    program.threads.emplace_back([] {
      lock.lock();
      lock.unlock();
      lock.unlock();
    });
    program.threads.emplace_back([limit_of_one] {
      if (lock.lock_until(limit_of_one)) lock.unlock();
    });
    program.threads.emplace_back([] {
      lock.lock();
      lock.unlock();
    });
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // What the thread that forks does with the lock, and its child.
  enum class Fork { kHolding, kReleased, kReleasedThenTries };

  // T0 forks while others (`who`, as in crowd()) wait. The child uses the lock again and starts
  // threads (`child`) that do so too; the parent's waiters are ghosts in its word.
  static Program forking(const Setting& setting, Fork how, const char* who = "ll",
                         const char* child = "l") {
    Program program = base(setting);
    for (const char* each = child; *each != '\0'; ++each) {
      program.later.emplace_back(script_of(*each));
    }
    const auto started = static_cast<int>(program.later.size());
    program.threads.emplace_back([how, started] {
      const bool holding = how == Fork::kHolding;
      lock.lock();
      if (!holding) lock.unlock();
      fork();
      orphaned = !holding && lock.is_held();  // by a thread that is not here: nobody can release it
      if (orphaned) return;
      if (holding) lock.unlock();
      for (int i = 0; i < started; ++i) start_thread(i);
      if (how == Fork::kReleasedThenTries) {
        if (!lock.try_lock()) return;
        section.visit();
        lock.unlock();
      } else {
        visit();
      }
    });
    for (const char* each = who; *each != '\0'; ++each) {
      program.threads.emplace_back(script_of(*each));
    }
    program.finish = [] {
      if (!orphaned) lock.check_free();
    };
    return program;
  }
  static inline bool orphaned;
};

}  // namespace relock::explore
