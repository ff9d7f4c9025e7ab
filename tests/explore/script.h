// What model threads do around a lock, and what is checked there.
#pragma once

#include <cstring>
#include <string>

#include "explore_platform.h"
#include "explorer.h"

namespace relock::explore {

// The inside of a critical section: who is there, and data that only it protects.
class Section {
 public:
  void reset() {
    owner_ = kNobody;
    visits_ = 0;
    data_.store(0, MemoryOrder::kRelaxed);
  }

  void enter() {
    if (owner_ != kNobody) {
      fail("mutual exclusion: T" + std::to_string(this_thread()) + " enters a section of T" +
           std::to_string(owner_));
    }
    owner_ = this_thread();
  }
  void leave() {
    if (owner_ != this_thread()) fail("T" + std::to_string(this_thread()) + " is not the owner");
    owner_ = kNobody;
  }

  // One whole visit; in the middle somebody else may barge in.
  void visit() {
    enter();
    step();
    ++visits_;
    leave();
  }

  // The same with data that must be seen by the next owner: two more points to switch at.
  void visit_data() {
    enter();
    const std::uint32_t value = data_.load(MemoryOrder::kRelaxed);
    data_.store(value + 1, MemoryOrder::kRelaxed);
    ++visits_;
    leave();
  }

  // Under the lock: visits so far, this one included.
  int visits() const { return looked_at(visits_); }

  void check_data(int expected) {
    const auto counted = static_cast<int>(data_.load(MemoryOrder::kRelaxed));
    if (counted != expected) {
      fail("mutual exclusion: " + std::to_string(expected) + " visits left a count of " +
           std::to_string(counted));
    }
  }

 private:
  static constexpr int kNobody = -1;
  int owner_ = kNobody;
  int visits_ = 0;
  ExplorePlatform::Atomic32 data_;
};

}  // namespace relock::explore
