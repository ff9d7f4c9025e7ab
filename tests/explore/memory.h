// Memory as the model threads see it: cells, and per thread a store buffer as on x86 (TSO), or as
// on weaker machines (explorer.h).
//
// A cell's committed value lies in the cell itself, so an object under test has its production
// layout. What this file adds is bookkeeping by address: a hash of everything committed, which
// threads have touched a cell, and which memory nobody may touch any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace relock::explore {

inline constexpr int kMaxThreads = 6;

struct Cell {
  std::uint8_t* address = nullptr;
  int bytes = 0;              // 4 or 8
  std::uint32_t read_by = 0;  // bit per thread, over all executions of the search
  std::uint32_t written_by = 0;
  bool shared = false;  // one reads what another writes: accesses are worth a choice
  bool known = false;   // in this execution: `last` is part of the hash
  std::uint64_t last = 0;
};

class Memory {
 public:
  // Forgets values and poison, keeps what the search has learned about cells.
  void begin_execution();
  // Forgets all cells.
  void begin_search();

  // The index of the cell at `address`, made at its first use.
  int cell_at(const void* address, int bytes);
  Cell& cell(int index) { return cells_[static_cast<std::size_t>(index)]; }

  // A committed access. Only committed values count in the hash.
  std::uint64_t committed(int index);
  void commit(int index, std::uint64_t value);

  // Thread's view: its own buffered stores over the committed value, byte by byte.
  std::uint64_t seen_by(int thread, int index);
  void buffer(int thread, int index, std::uint64_t value, bool low_byte, bool release);
  bool has_buffered(int thread) const { return !buffers_[thread].empty(); }
  bool has_buffered(int thread, int index) const;
  int buffered(int thread) const { return static_cast<int>(buffers_[thread].size()); }
  int buffered_cell(int thread, int entry) const { return at(thread, entry).cell; }
  // On a weak machine: whether this store may become visible before those in front of it.
  bool may_commit(int thread, int entry) const;
  void commit_buffered(int thread, int entry);
  // On a weak machine what is left in it does not follow from what the thread has done.
  std::uint64_t buffer_hash(int thread) const;
  void drop_buffer(int thread) { buffers_[thread].clear(); }

  // ---- what a weak machine may have loaded early ----

  // Values other than the present one that the thread's load may give, the youngest first.
  void earlier_values(int thread, int index, std::vector<std::uint64_t>& values);
  // The thread has read the present value, or the `back`-th of earlier_values(); with `acquire`
  // none of its later loads is older.
  void has_read(int thread, int index, int back, bool acquire);
  // None of the thread's loads from here on is older than now.
  void catch_up(int thread) { views_[thread].floor = now_; }
  // What the threads' loads may still give: part of a state.
  std::uint64_t early_hash();

  void poison(const void* begin, std::size_t bytes);
  void unpoison(const void* begin);
  bool poisoned(int index);

  // Names for traces: "mutex", "mutex+4".
  void name(const void* begin, std::size_t bytes, const std::string& name);
  std::string name_of(const void* address) const;

  std::uint64_t hash() const { return hash_; }

 private:
  struct BufferedStore {
    int cell;
    std::uint64_t value;
    bool low_byte;
    bool release;
  };
  struct Change {
    int cell;
    std::uint64_t old;
  };
  struct View {
    int floor = 0;                              // in changes: what is older is seen
    std::vector<std::pair<int, int>> has_read;  // cell, and the change it was read after
  };

  const BufferedStore& at(int thread, int entry) const {
    return buffers_[thread][static_cast<std::size_t>(entry)];
  }
  int oldest_for(int thread, int index) const;
  void read_at(int thread, int index, int time);
  struct Range {
    const std::uint8_t* begin;
    const std::uint8_t* end;
    std::string name;
    bool holds(const void* address) const { return address >= begin && address < end; }
  };

  void account(int index, std::uint64_t value);
  void grow();

  std::vector<Cell> cells_;
  std::vector<int> table_;  // open addressing over addresses: index + 1, 0 is empty
  std::deque<BufferedStore> buffers_[kMaxThreads];
  std::vector<Change> changes_;  // of committed values, in this execution
  int now_ = 0;                  // how many
  View views_[kMaxThreads];
  std::vector<Range> poisoned_;
  std::vector<Range> names_;
  std::uint64_t hash_ = 0;
};

}  // namespace relock::explore
