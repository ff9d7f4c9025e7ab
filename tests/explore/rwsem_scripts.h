// Scripts around a readers-writer lock, as interpose/rwsem.cpp drives it.
#pragma once

#include <string>

#include "lock_under_test.h"
#include "locks/rwsem.h"
#include "script.h"

namespace relock::explore {

struct RwCells {
  P::Atomic64 state;
  P::Atomic32 readers_gate, head_gate;
  P::Atomic32 writer;  // who writes is not told here
  testing::MutexCells<P> queue;
};

// What RwlockView in interpose/object.h is in production.
class RwCellsView {
 public:
  RwCellsView(RwCells& cells, bool prefers_writers)
      : cells_(&cells), prefers_writers_(prefers_writers) {}
  P::Atomic64& state() const { return cells_->state; }
  P::Atomic32& readers_gate() const { return cells_->readers_gate; }
  P::Atomic32& head_gate() const { return cells_->head_gate; }
  P::Atomic32& writer() const { return cells_->writer; }
  P::Atomic32& tuning() const { return cells_->queue.tuning; }
  testing::MutexCellsView<P> queue() const { return testing::MutexCellsView<P>(cells_->queue); }
  bool prefers_writers() const { return prefers_writers_; }

 private:
  RwCells* cells_;
  bool prefers_writers_;
};

class RwUnderTest {
 public:
  using Sem = RwSem<P, RwCellsView>;

  void reset(bool prefers_writers) {
    std::memset(static_cast<void*>(&cells_), 0, sizeof cells_);
    prefers_writers_ = prefers_writers;
    name_memory(&cells_.state, 8, "rw.state");
    name_memory(&cells_.readers_gate, 4, "rw.readers_gate");
    name_memory(&cells_.head_gate, 4, "rw.head_gate");
    name_memory(&cells_.queue.word, 4, "rw.queue");
    name_memory(&cells_.queue.gate, 4, "rw.queue.gate");
    name_memory(&cells_.queue.epoch, 4, "rw.queue.epoch");
    name_memory(&cells_.queue.tuning, 4, "rw.queue.tuning");
    name_memory(&cells_.queue.owner, 4, "rw.queue.owner");
  }

  bool try_read() { return Sem::try_read(view()); }
  bool try_write() { return Sem::try_write(view()); }
  bool read_until(const Deadline* deadline) {
    return acquire(deadline, &Sem::read_slow, try_read());
  }
  bool write_until(const Deadline* deadline) {
    return acquire(deadline, &Sem::write_slow, try_write());
  }
  void release_read() { Sem::release_read(view()); }
  void release_write() { Sem::release_write(view()); }

  void destroy() { poison(&cells_, sizeof cells_); }
  bool is_held() const {
    return (cells_.state.load(MemoryOrder::kRelaxed) & (Sem::kWriter | Sem::kReadersMask)) != 0;
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
  RwCells& cells() { return cells_; }

 private:
  RwCellsView view() { return RwCellsView(cells_, prefers_writers_); }
  bool acquire(const Deadline* deadline, Acquire (*slow)(RwCellsView, WaitContext<P>&),
               bool acquired) {
    if (acquired) return true;
    WaitContext<P> context{&Surroundings::budget};
    context.deadline = deadline;
    return slow(view(), context) == Acquire::kAcquired;
  }

  RwCells cells_;
  bool prefers_writers_ = false;
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
    lock.release_read();
  }
  static void write() {
    (void)lock.write_until(nullptr);
    section.write();
    lock.release_write();
  }
  static void read_twice() {
    (void)lock.read_until(nullptr);
    (void)lock.read_until(nullptr);
    section.read();
    lock.release_read();
    lock.release_read();
  }

  static Program base(const Setting& setting, bool prefers_writers) {
    Program program;
    program.setup = [setting, prefers_writers] {
      lock.reset(prefers_writers);
      section.reset();
      name_memory(&section, sizeof section, "section");
      Surroundings::reset(setting);
    };
    program.finish = [] { lock.check_free(); };
    return program;
  }

  // 'r' reads, 'w' writes, 'R' reads inside a read, 't' and 'T' try to read and to write, 'x' and
  // 'X' read and write with a limit: one thread for each letter.
  static Program crowd(const Setting& setting, const std::string& who, bool prefers_writers) {
    Program program = base(setting, prefers_writers);
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
          lock.release_read();
        };
      case 'T':
        return [] {
          if (!lock.try_write()) return;
          section.write();
          lock.release_write();
        };
      case 'x':
        return [] {
          if (!lock.read_until(&soon)) return;
          section.read();
          lock.release_read();
        };
      default:
        return [] {
          if (!lock.write_until(&soon)) return;
          section.write();
          lock.release_write();
        };
    }
  }

  // Whoever is the last to leave destroys the lock.
  static Program destroying(const Setting& setting) {
    Program program = base(setting, false);
    for (int i = 0; i < 3; ++i) {
      program.threads.emplace_back([i] {
        (void)(i == 0 ? lock.read_until(nullptr) : lock.write_until(nullptr));
        i == 0 ? section.read() : section.write();
        const bool last = section.visits() == 3;
        i == 0 ? lock.release_read() : lock.release_write();
        if (last) lock.destroy();
      });
    }
    program.finish = nullptr;
    return program;
  }

  // T0 forks while it holds the lock, or just after, with others waiting. The child goes on.
  static Program forking(const Setting& setting, bool holding, bool prefers_writers) {
    Program program = base(setting, prefers_writers);
    program.threads.emplace_back([holding] {
      (void)lock.write_until(nullptr);
      if (!holding) lock.release_write();
      become_forked_child();
      Surroundings::wipe();
      orphaned = !holding && lock.is_held();
      if (orphaned) return;
      if (holding) lock.release_write();
      start_thread(0);
      read();
      write();
    });
    program.threads.emplace_back(&write);
    program.threads.emplace_back(&read);
    program.later.emplace_back(&write);
    program.finish = [] {
      if (!orphaned) lock.check_state_free();  // a ghost's queue is mended when it is needed
    };
    return program;
  }
};

}  // namespace relock::explore
