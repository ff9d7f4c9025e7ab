#include "memory.h"

#include <cstring>

#include "hashing.h"

namespace relock::explore {

namespace {

std::uint64_t read_raw(const std::uint8_t* address, int bytes) {
  if (bytes == 8) {
    std::uint64_t value;
    std::memcpy(&value, address, sizeof value);
    return value;
  }
  std::uint32_t value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

void write_raw(std::uint8_t* address, int bytes, std::uint64_t value) {
  if (bytes == 8) {
    std::memcpy(address, &value, sizeof value);
  } else {
    const auto narrow = static_cast<std::uint32_t>(value);
    std::memcpy(address, &narrow, sizeof narrow);
  }
}

std::size_t slot_of(const void* address, std::size_t size) {
  return (reinterpret_cast<std::uint64_t>(address) >> 2) * 0x9e3779b97f4a7c15u >> 40 & (size - 1);
}

}  // namespace

void Memory::begin_execution() {
  for (Cell& each : cells_) each.known = false;
  for (auto& buffer : buffers_) buffer.clear();
  changes_.clear();
  now_ = 0;
  for (View& view : views_) {
    view.floor = 0;
    view.has_read.clear();
  }
  poisoned_.clear();
  names_.clear();
  hash_ = 0;
}

void Memory::begin_search() {
  begin_execution();
  cells_.clear();
  table_.assign(256, 0);
}

void Memory::grow() {
  table_.assign(table_.size() * 2, 0);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    std::size_t slot = slot_of(cells_[i].address, table_.size());
    while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = static_cast<int>(i) + 1;
  }
}

int Memory::cell_at(const void* address, int bytes) {
  std::size_t slot = slot_of(address, table_.size());
  while (table_[slot] != 0) {
    Cell& found = cells_[static_cast<std::size_t>(table_[slot] - 1)];
    if (found.address == address) {
      if (found.bytes != bytes) {  // stack memory in its next use
        found.bytes = bytes;
        found.known = false;
      }
      return table_[slot] - 1;
    }
    slot = (slot + 1) & (table_.size() - 1);
  }
  cells_.push_back(Cell{});
  cells_.back().address = static_cast<std::uint8_t*>(const_cast<void*>(address));
  cells_.back().bytes = bytes;
  table_[slot] = static_cast<int>(cells_.size());
  if (cells_.size() * 2 > table_.size()) grow();
  return static_cast<int>(cells_.size()) - 1;
}

// The hash is the sum over the cells used so far in this execution of mix(cell, value). A plain
// re-initialisation (a node on a stack, in its next life) is noticed at the next access.
void Memory::account(int index, std::uint64_t value) {
  Cell& c = cell(index);
  if (c.known) {
    if (c.last == value) return;
    hash_ ^= mix(static_cast<std::uint64_t>(index) + 1, c.last);
  }
  c.known = true;
  c.last = value;
  hash_ ^= mix(static_cast<std::uint64_t>(index) + 1, value);
}

std::uint64_t Memory::committed(int index) {
  const Cell& c = cell(index);
  const std::uint64_t value = read_raw(c.address, c.bytes);
  account(index, value);
  return value;
}

void Memory::commit(int index, std::uint64_t value) {
  const Cell& c = cell(index);
  const std::uint64_t old = read_raw(c.address, c.bytes);
  write_raw(c.address, c.bytes, value);
  account(index, read_raw(c.address, c.bytes));
  if (old == read_raw(c.address, c.bytes)) return;
  changes_.push_back({index, old});
  ++now_;
}

std::uint64_t Memory::seen_by(int thread, int index) {
  std::uint64_t value = committed(index);
  for (const BufferedStore& store : buffers_[thread]) {
    if (store.cell != index) continue;
    value = store.low_byte ? (value & ~0xffull) | (store.value & 0xff) : store.value;
  }
  return value;
}

void Memory::buffer(int thread, int index, std::uint64_t value, bool low_byte, bool release) {
  buffers_[thread].push_back({index, value, low_byte, release});
}

bool Memory::has_buffered(int thread, int index) const {
  for (const BufferedStore& store : buffers_[thread]) {
    if (store.cell == index) return true;
  }
  return false;
}

bool Memory::may_commit(int thread, int entry) const {
  if (entry == 0) return true;
  const BufferedStore& store = at(thread, entry);
  if (store.release) return false;
  for (int i = 0; i < entry; ++i) {
    if (at(thread, i).cell == store.cell) return false;
  }
  return true;
}

std::uint64_t Memory::buffer_hash(int thread) const {
  std::uint64_t hash = 0;
  for (const BufferedStore& store : buffers_[thread]) {
    hash = mix(hash, mix(static_cast<std::uint64_t>(store.cell), store.value));
  }
  return hash;
}

void Memory::commit_buffered(int thread, int entry) {
  const BufferedStore store = at(thread, entry);
  buffers_[thread].erase(buffers_[thread].begin() + entry);
  const std::uint64_t old = committed(store.cell);
  commit(store.cell, store.low_byte ? (old & ~0xffull) | (store.value & 0xff) : store.value);
  read_at(thread, store.cell, now_);
}

void Memory::poison(const void* begin, std::size_t bytes) {
  const auto* first = static_cast<const std::uint8_t*>(begin);
  poisoned_.push_back({first, first + bytes, {}});
}

void Memory::unpoison(const void* begin) {
  std::erase_if(poisoned_, [begin](const Range& range) { return range.begin == begin; });
}

bool Memory::poisoned(int index) {
  if (poisoned_.empty()) return false;
  const void* address = cell(index).address;
  for (const Range& range : poisoned_) {
    if (range.holds(address)) return true;
  }
  return false;
}

void Memory::name(const void* begin, std::size_t bytes, const std::string& name) {
  const auto* first = static_cast<const std::uint8_t*>(begin);
  names_.push_back({first, first + bytes, name});
}

std::string Memory::name_of(const void* address) const {
  for (const Range& range : names_) {
    if (!range.holds(address)) continue;
    const auto offset = static_cast<const std::uint8_t*>(address) - range.begin;
    return offset == 0 ? range.name : range.name + "+" + std::to_string(offset);
  }
  return {};
}

}  // namespace relock::explore
