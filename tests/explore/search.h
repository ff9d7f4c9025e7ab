// Depth-first enumeration of choices, with the states that need not be entered again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace relock::explore {

// Keys of states with the number of preemptions that were left when they were entered.
class VisitedStates {
 public:
  // False: the state has been entered before with at least as many preemptions left.
  bool enter(std::uint64_t key, int preemptions_left);
  void clear();
  std::uint64_t size() const { return used_; }

 private:
  struct Entry {
    std::uint64_t key = 0;
    int preemptions_left = -1;
  };
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 24;
  void grow();

  std::vector<Entry> entries_;
  std::uint64_t used_ = 0;
};

class Search {
 public:
  static constexpr int kPruned = -1;

  void begin_execution() { depth_ = 0; }
  // Beyond the choices that are repeated, a choice asks whether its state is new.
  bool at_new_choice() const { return depth_ == path_.size() && !replaying_; }
  bool enter(std::uint64_t key, int preemptions_left) {
    return visited_.enter(key, preemptions_left);
  }
  int choose(int alternatives);
  // Moves to the next unexplored schedule. False: there is none.
  bool advance();
  void restart();

  void replay(const std::vector<int>& choices);
  bool replaying() const { return replaying_; }
  // After a replayed execution: why the choices cannot be those of such a run. Empty: they can.
  std::string misfit() const;
  std::string choices() const;
  std::uint64_t states() const { return visited_.size(); }

 private:
  struct Choice {
    int taken;
    int count;
  };
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  bool replaying_ = false;
  std::size_t given_ = 0;  // choices to replay
  std::string misfit_;
  VisitedStates visited_;
};

}  // namespace relock::explore
