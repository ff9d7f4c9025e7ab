// What a weak machine does differently around single operations (explorer.h, Bounds::weak).
#include "world.h"

namespace relock::explore {

namespace {

bool releases(MemoryOrder order) {
  return order == MemoryOrder::kRelease || order == MemoryOrder::kAcqRel ||
         order == MemoryOrder::kSeqCst;
}
bool acquires(MemoryOrder order) {
  return order == MemoryOrder::kAcquire || order == MemoryOrder::kAcqRel ||
         order == MemoryOrder::kSeqCst;
}

}  // namespace

// The present value, or while the bounds allow it one that the load may have found earlier.
std::uint64_t World::weak_load(int index, MemoryOrder order) {
  if (memory_.has_buffered(current_, index)) return memory_.seen_by(current_, index);
  int back = 0;
  earlier_.clear();
  if (stale_left_ > 0 && order != MemoryOrder::kSeqCst) {
    const bool possible = memory_.cell(index).shared || search_.replaying();
    if (possible) memory_.earlier_values(current_, index, earlier_);
    back = search_.choose(1 + static_cast<int>(earlier_.size()));
  }
  if (back > 0) --stale_left_;
  memory_.has_read(current_, index, back, acquires(order));
  return back > 0 ? earlier_[static_cast<std::size_t>(back - 1)] : memory_.committed(index);
}

// What of the thread's own stores must be visible before its read-modify-write of this cell.
void World::commit_before(int index, MemoryOrder order) {
  if (!bounds_.weak || releases(order)) return commit_all(current_);
  for (int entry = 0; entry < memory_.buffered(current_);) {
    if (memory_.buffered_cell(current_, entry) != index) {
      ++entry;
    } else if (memory_.may_commit(current_, entry)) {
      commit_buffered(current_, entry);
    } else {
      commit_buffered(current_, 0);
      entry = 0;
    }
  }
  if (memory_.has_buffered(current_)) me().went_past_buffer = true;
}

void World::has_updated(int index, MemoryOrder order) {
  if (bounds_.weak) memory_.has_read(current_, index, 0, acquires(order));
}

// A call into the kernel.
void World::barrier() {
  commit_all(current_);
  memory_.catch_up(current_);
}

}  // namespace relock::explore
