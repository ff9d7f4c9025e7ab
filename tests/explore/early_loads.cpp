// Loads that a weak machine may have done early: which values of a cell a thread may still read.
//
// Time is the number of changes to memory so far. A load may have been done at any moment since the
// thread's last acquire, but not before the moment at which the thread last read or wrote the cell.
#include <algorithm>

#include "hashing.h"
#include "memory.h"

namespace relock::explore {

int Memory::oldest_for(int thread, int index) const {
  int oldest = views_[thread].floor;
  for (const auto& [cell, time] : views_[thread].has_read) {
    if (cell == index) oldest = std::max(oldest, time);
  }
  return oldest;
}

void Memory::earlier_values(int thread, int index, std::vector<std::uint64_t>& values) {
  values.clear();
  const std::uint64_t present = committed(index);
  const int oldest = oldest_for(thread, index);
  for (int time = now_ - 1; time >= oldest; --time) {
    const Change& change = changes_[static_cast<std::size_t>(time)];
    if (change.cell != index || change.old == present) continue;
    if (std::find(values.begin(), values.end(), change.old) != values.end()) continue;
    values.push_back(change.old);
  }
}

void Memory::read_at(int thread, int index, int time) {
  for (auto& [cell, last] : views_[thread].has_read) {
    if (cell != index) continue;
    last = std::max(last, time);
    return;
  }
  views_[thread].has_read.emplace_back(index, time);
}

void Memory::has_read(int thread, int index, int back, bool acquire) {
  int time = now_;
  if (back > 0) {  // just before the change that ended the value
    std::vector<std::uint64_t> values;
    earlier_values(thread, index, values);
    const std::uint64_t value = values[static_cast<std::size_t>(back - 1)];
    do {
      --time;
    } while (changes_[static_cast<std::size_t>(time)].cell != index ||
             changes_[static_cast<std::size_t>(time)].old != value);
  }
  read_at(thread, index, time);
  if (acquire) views_[thread].floor = std::max(views_[thread].floor, time);
}

std::uint64_t Memory::early_hash() {
  std::uint64_t hash = 0;
  for (int thread = 0; thread < kMaxThreads; ++thread) {
    for (int time = views_[thread].floor; time < now_; ++time) {
      const Change& change = changes_[static_cast<std::size_t>(time)];
      if (time < oldest_for(thread, change.cell)) continue;
      hash = mix(hash, mix(static_cast<std::uint64_t>(change.cell), change.old) +
                           static_cast<std::uint64_t>(thread));
    }
  }
  return hash;
}

}  // namespace relock::explore
