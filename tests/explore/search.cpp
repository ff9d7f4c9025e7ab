#include "search.h"

#include "hashing.h"
#include "replay_string.h"

namespace relock::explore {

void VisitedStates::clear() {
  entries_.assign(1 << 12, Entry{});
  used_ = 0;
}

void VisitedStates::grow() {
  std::vector<Entry> old = std::move(entries_);
  entries_.assign(old.size() * 2, Entry{});
  for (const Entry& entry : old) {
    if (entry.preemptions_left < 0) continue;
    std::size_t slot = mix(entry.key, 1) & (entries_.size() - 1);
    while (entries_[slot].preemptions_left >= 0) slot = (slot + 1) & (entries_.size() - 1);
    entries_[slot] = entry;
  }
}

bool VisitedStates::enter(std::uint64_t key, int preemptions_left) {
  std::size_t slot = mix(key, 1) & (entries_.size() - 1);
  while (entries_[slot].preemptions_left >= 0) {
    Entry& entry = entries_[slot];
    if (entry.key == key) {
      if (entry.preemptions_left >= preemptions_left) return false;
      entry.preemptions_left = preemptions_left;
      return true;
    }
    slot = (slot + 1) & (entries_.size() - 1);
  }
  if (used_ >= kMaxEntries) return true;  // full: explore without remembering
  entries_[slot] = {key, preemptions_left};
  if (++used_ * 2 > entries_.size()) grow();
  return true;
}

int Search::choose(int alternatives) {
  if (depth_ == path_.size()) path_.push_back({0, alternatives});
  Choice& choice = path_[depth_++];
  // A replayed schedule says what was taken, not out of how many.
  if (choice.taken >= alternatives) {
    if (misfit_.empty()) {
      misfit_ = "choice " + std::to_string(depth_) + " is " + std::to_string(choice.taken) +
                ", but what can go on there is numbered 0 to " + std::to_string(alternatives - 1);
    }
    choice.taken = alternatives - 1;
  }
  choice.count = alternatives;
  return choice.taken;
}

bool Search::advance() {
  path_.resize(depth_);
  while (!path_.empty()) {
    if (++path_.back().taken < path_.back().count) return true;
    path_.pop_back();
  }
  return false;
}

void Search::restart() {
  path_.clear();
  visited_.clear();
}

std::string Search::choices() const {
  std::vector<int> taken;
  for (std::size_t i = 0; i < depth_; ++i) taken.push_back(path_[i].taken);
  return print_choices(taken);
}

void Search::replay(const std::vector<int>& choices) {
  restart();
  replaying_ = true;
  given_ = choices.size();
  for (const int taken : choices) path_.push_back({taken, 0});
}

std::string Search::misfit() const {
  if (!misfit_.empty() || depth_ >= given_) return misfit_;
  return "it has " + std::to_string(given_) + " choices, but the run ends after " +
         std::to_string(depth_);
}

}  // namespace relock::explore
