#include "search.h"

#include <cstdlib>

#include "hashing.h"

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
  if (choice.taken >= alternatives) choice.taken = alternatives - 1;
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
  std::size_t length = depth_;
  while (length > 0 && path_[length - 1].taken == 0) --length;
  std::string text;
  for (std::size_t i = 0; i < length;) {
    std::size_t run = i;
    while (run < length && path_[run].taken == path_[i].taken) ++run;
    if (!text.empty()) text += ',';
    if (run - i > 1) text += std::to_string(run - i) + "x";
    text += std::to_string(path_[i].taken);
    i = run;
  }
  return text.empty() ? "0" : text;
}

void Search::replay(const std::string& choices) {
  restart();
  replaying_ = true;
  const char* at = choices.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    long value = std::strtol(at, &end, 10);
    long times = 1;
    if (*end == 'x') {
      times = value;
      value = std::strtol(end + 1, &end, 10);
    }
    for (long i = 0; i < times; ++i) path_.push_back({static_cast<int>(value), 0});
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
  }
}

}  // namespace relock::explore
