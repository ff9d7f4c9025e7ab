// Scripts around a readers-writer lock, as interpose/rwsem.cpp drives it.
#pragma once

#include <string>

#include "lock_under_test.h"
#include "script.h"

namespace relock::explore {

class RwUnderTest : public testing::RwDriver<P, Host> {
 public:
  using Base = testing::RwDriver<P, Host>;
  using typename Base::Sem;

  void reset(RwPreference preference) {
    std::memset(static_cast<void*>(&cells_), 0, sizeof cells_);
    preference_ = preference;
    name_memory(&cells_.state, 8, "rw.state");
    name_memory(&cells_.readers_gate, 4, "rw.readers_gate");
    name_memory(&cells_.head_gate, 4, "rw.head_gate");
    name_memory(&cells_.writer, 4, "rw.writer");
    name_memory(&cells_.queue.word, 4, "rw.queue");
    name_memory(&cells_.queue.gate, 4, "rw.queue.gate");
    name_memory(&cells_.queue.epoch, 4, "rw.queue.epoch");
    name_memory(&cells_.queue.tuning, 4, "rw.queue.tuning");
    name_memory(&cells_.queue.owner, 4, "rw.queue.owner");
  }

  void destroy() { poison(&cells_, sizeof cells_); }
  bool is_held() const {
    return (cells_.state.load(MemoryOrder::kRelaxed) & (Sem::kWriter | Sem::kReadersMask)) != 0;
  }
  std::uint64_t readers() const {
    return (cells_.state.load(MemoryOrder::kRelaxed) & Sem::kReadersMask) / Sem::kReader;
  }
  static void check_word(std::uint64_t state) {
    if ((state & Sem::kWriter) != 0 && (state & Sem::kReadersMask) != 0) {
      fail("the state shows a writer and readers");
    }
    if ((state & Sem::kWaiters) == 0 && (state & Sem::kEpochMask) != 0) {
      fail("the state shows an epoch without waiters");
    }
  }
  void check_state_free() const {
    const std::uint64_t state = cells_.state.load(MemoryOrder::kRelaxed);
    if (state != 0) fail("something is left in the free state: " + std::to_string(state));
  }
  void check_free() const {
    check_state_free();
    const std::uint32_t queue = cells_.queue.word.load(MemoryOrder::kRelaxed);
    if (queue != 0) fail("something is left in the free queue: " + std::to_string(queue));
  }
  testing::RwCells<P>& cells() { return cells_; }

 private:
  using Base::cells_;
  using Base::preference_;
};

// Who is inside: any number of readers, or one writer, whose data the readers must see whole.
class RwSection {
 public:
  void reset() {
    readers_ = writers_ = visits_ = 0;
    first_.store(0, MemoryOrder::kRelaxed);
    second_.store(0, MemoryOrder::kRelaxed);
  }
  void read() {
    if (looked_at(writers_) != 0) fail("mutual exclusion: a reader meets a writer");
    ++readers_;
    ++visits_;
    const std::uint32_t one = first_.load(MemoryOrder::kRelaxed);
    if (second_.load(MemoryOrder::kRelaxed) != one) fail("a reader sees half of a writer's work");
    --readers_;
  }
  void write() {
    if (looked_at(writers_) != 0) fail("mutual exclusion: a writer meets a writer");
    if (looked_at(readers_) != 0) fail("mutual exclusion: a writer meets a reader");
    ++writers_;
    ++visits_;
    const std::uint32_t next = first_.load(MemoryOrder::kRelaxed) + 1;
    first_.store(next, MemoryOrder::kRelaxed);
    second_.store(next, MemoryOrder::kRelaxed);
    --writers_;
  }
  int visits() const { return looked_at(visits_); }

 private:
  int readers_ = 0;
  int writers_ = 0;
  int visits_ = 0;
  P::Atomic32 first_, second_;
};

struct RwPrograms {
  static inline RwUnderTest lock;
  static inline RwSection section;
  static inline bool orphaned;

  static void read() {
    (void)lock.read_until(nullptr);
    section.read();
    lock.unlock();
  }
  static void write() {
    (void)lock.write_until(nullptr);
    section.write();
    lock.unlock();
  }
  static void read_twice() {
    (void)lock.read_until(nullptr);
    (void)lock.read_until(nullptr);
    section.read();
    lock.unlock();
    lock.unlock();
  }

  static Program base(const Setting& setting, RwPreference preference) {
    Program program;
    program.setup = [setting, preference] {
      lock.reset(preference);
      section.reset();
      name_memory(&section, sizeof section, "section");
      Surroundings::reset(setting);
      on_commit([](int, const void* cell, std::uint64_t, std::uint64_t now) {
        if (cell == &lock.cells().state) RwUnderTest::check_word(now);
      });
    };
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // 'r' reads, 'w' writes, 'R' reads inside a read, 't' and 'T' try to read and to write, 'x' and
  // 'X' read and write with a limit: one thread for each letter.
  static Program crowd(const Setting& setting, const std::string& who, RwPreference preference) {
    Program program = base(setting, preference);
    for (const char each : who) program.threads.emplace_back(script_of(each));
    return program;
  }

  static void (*script_of(char each))() {
    static const Deadline soon{10'000'000'000, false};
    switch (each) {
      case 'r':
        return &read;
      case 'R':
        return &read_twice;
      case 'w':
        return &write;
      case 't':
        return [] {
          if (!lock.try_read()) return;
          section.read();
          lock.unlock();
        };
      case 'T':
        return [] {
          if (!lock.try_write()) return;
          section.write();
          lock.unlock();
        };
      case 'x':
        return [] {
          if (!lock.read_until(&soon)) return;
          section.read();
          lock.unlock();
        };
      default:
        return [] {
          if (!lock.write_until(&soon)) return;
          section.write();
          lock.unlock();
        };
    }
  }

  // Whoever is the last to come destroys the lock as soon as it has left. At most one 'r' among the
  // 'w'. With `looks_after` it looks at the lock after its release.
  static Program destroying(const Setting& setting, const std::string& who, RwPreference preference,
                            bool looks_after = false) {
    Program program = base(setting, preference);
    const int all = static_cast<int>(who.size());
    for (const char each : who) {
      program.threads.emplace_back([reads = each == 'r', all, looks_after] {
        (void)(reads ? lock.read_until(nullptr) : lock.write_until(nullptr));
        reads ? section.read() : section.write();
        const bool last = section.visits() == all;
        lock.unlock();
        if (looks_after) (void)lock.is_held();
        if (last) lock.destroy();
      });
    }
    program.finish = nullptr;
    return program;
  }

  // What T0 holds when it forks.
  enum class Holds { kNothing, kRead, kWrite };

  // T0 forks while it holds the lock, or just after, with others (`who`, as in crowd()) waiting.
  // The child goes on and starts threads (`child`).
  static Program forking(const Setting& setting, Holds holds, RwPreference preference,
                         const std::string& who = "wr", const std::string& child = "w") {
    Program program = base(setting, preference);
    for (const char each : child) program.later.emplace_back(script_of(each));
    const int started = static_cast<int>(child.size());
    program.threads.emplace_back([holds, started] {
      (void)(holds == Holds::kRead ? lock.read_until(nullptr) : lock.write_until(nullptr));
      if (holds == Holds::kNothing) lock.unlock();
      become_forked_child();
      Surroundings::wipe();
      // Held by a thread that is not here: nobody can release it.
      orphaned =
          holds == Holds::kRead ? lock.readers() > 1 : holds == Holds::kNothing && lock.is_held();
      if (orphaned) return;
      if (holds != Holds::kNothing) lock.unlock();
      for (int i = 0; i < started; ++i) start_thread(i);
      read();
      write();
    });
    for (const char each : who) program.threads.emplace_back(script_of(each));
    program.finish = [] {
      if (!orphaned) lock.check_state_free();  // a ghost's queue is mended when it is needed
    };
    return program;
  }
};

}  // namespace relock::explore
