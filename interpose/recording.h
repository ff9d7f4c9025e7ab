// The wrappers' side of the recorder: nothing here runs unless profiling is on.
#pragma once

#include <cstdint>

#include <pthread.h>

#include "interpose/profiler_api.h"
#include "interpose/runtime.h"
#include "interpose/ticks.h"
#include "locks/wait.h"

namespace relock {

// Calls the recorder, call(profiler), with cancellation put off. Its functions have destructors, so
// a thread that is cancelled asynchronously inside them would end in std::terminate. The guard lies
// on this side of the border: letting cancellation in again may act at once, and only code without
// exception tables survives that.
template <class Call>
inline void tell_recorder(Call call) {
  int state;
  int type;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  call(g_runtime.profiler);
  // The type last: glibc 2.36 forgets the thread's result when the state lets a request in.
  pthread_setcancelstate(state, nullptr);
  pthread_setcanceltype(type, nullptr);
}

// The same for what only counts: it has no cancellation point, and a request that is not to act at
// once may stay as it is.
template <class Call>
inline void tell_count(Call call) {
  int type;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  call(g_runtime.profiler);
  pthread_setcanceltype(type, nullptr);
}

// ---- what an object keeps of its own ----
//
// mark: bits 0-30 the ticket of a sampled waiter, whom the next release tells; bit 31 somebody has
// waited for the object since it was made. Changed by atomic operations alone.
// record: bits 8-31 acquisitions, which wrap around; bits 0-7 the NUMA node of the latest owner
// plus 1, where nodes are told apart. Written by owners alone.

inline constexpr std::uint32_t kKnown = RELOCK_MARK_KNOWN;
inline constexpr std::uint32_t kTicketBits = kKnown - 1;
inline constexpr std::uint32_t kNodeBits = 0xff;
inline constexpr std::uint32_t kOneAcquisition = 0x100;
inline constexpr unsigned kCountBits = 24;

inline std::uint32_t acquisitions_in(std::uint32_t record) { return record / kOneAcquisition; }

// Whether the recorder must hear of a counter that says `count`: once in each quarter of its range,
// and not at 0, which means that nothing is known.
constexpr bool is_due(std::uint32_t count, unsigned bits) {
  return (count & ((1u << (bits - 2)) - 1)) == 1u << (bits - 3);
}

struct RecordedObject {
  const void* address;
  RelockObjectKind kind;
  LinuxAtomic32* mark;    // null: it has no place for records
  LinuxAtomic32* record;  // null: likewise, or it is counted differently (rwlock.cpp)
};

// ---- what a thread keeps of its own ----

struct Hold {
  const void* object;
  std::uint64_t since;   // ticks
  std::uint32_t record;  // the object's, by which the hold is known again; 0: not looked at
  std::uint16_t weight;  // how many acquisitions it stands for; 0: the place is free
  std::uint16_t kind;
};
inline constexpr int kHolds = 4;

// Of waiters of a condition variable whom this thread has woken: it has to say so.
struct WokenTickets {
  static constexpr std::uint32_t kMost = 8;
  std::uint32_t count;
  std::uint32_t tickets[kMost];
};

struct ThreadRecord {
  std::uint32_t due;  // kWaitDue, kHoldDue << its place: what a release has to look at
  std::uint32_t changing;
  const void* waited_for;  // the lock that this thread waited for last,
  std::uint32_t kind;
  std::uint32_t lock;     // its row in the recorder plus 1,
  std::uint32_t undrawn;  // how many more waits for it need not be asked about,
  std::uint32_t passed;   // how many were not,
  std::uint32_t chance;   // and the chance that they had to be drawn
  std::uint32_t random;
  std::int32_t until_hold;
  RelockWaitEnd wait;  // a short wait of which the recorder has not heard yet
  Hold holds[kHolds];
  WokenTickets woken;
};
inline constexpr std::uint32_t kWaitDue = 1;
inline constexpr std::uint32_t kHoldDue = 2;
extern __thread ThreadRecord t_record __attribute__((tls_model("initial-exec")));

// In a forked child: what is due belongs to the parent's file.
inline void forget_thread_record() {
  t_record.due = 0;
  t_record.waited_for = nullptr;
  t_record.woken.count = 0;
}

// ---- a wait ----

// One contended wait from its start to its end. As an observer it is told when the waiter is about
// to sleep.
class RecordedWait : public WaitObserver {
 public:
  // `blocks`: the wait will not say when it sleeps, and counts as one that does.
  RecordedWait(const RecordedObject& object, bool blocks);

  // After the wait, by the owner if it was acquired. `acquisitions`: of the object, this one
  // included; 0 when unknown. A short wait is told of with the release.
  void end(RelockWaitOutcome outcome, std::uint64_t acquisitions, RelockHandOff hand_off);
  // The same with what the object's record says.
  void end(RelockWaitOutcome outcome);

 private:
  static void before_sleep(WaitObserver* self);
  void ask();
  std::uint32_t* mark() const;

  RecordedObject object_;
  RelockWait begun_{0, 0, 0};
  std::uint32_t chance_;
  bool slept_ = false;
  std::uint64_t since_;  // ticks
};

// ---- an acquisition ----

// From this count on, one hold in kMostHoldWeight is timed.
inline constexpr std::uint32_t kOftenTaken = 16384;
inline constexpr std::uint32_t kMostHoldWeight = 64;

// Counts it, by the new owner. True: its counter is to be told of, or the object is known and its
// hold or node may be of interest: note_known_acquisition must be called.
inline bool count_acquisition(LinuxAtomic32& record, const LinuxAtomic32& mark) {
  const std::uint32_t now = record.load(MemoryOrder::kRelaxed) + kOneAcquisition;
  record.store(now, MemoryOrder::kRelaxed);  // owners alone write it, and see the one before by P1
  if (unlikely(is_due(acquisitions_in(now), kCountBits))) return true;
  if (likely((mark.load(MemoryOrder::kRelaxed) & kKnown) == 0)) return false;  // a hint
  if (g_runtime.topology.nodes > 1 || acquisitions_in(now) < kOftenTaken) return true;
  if (t_record.until_hold > 1) return --t_record.until_hold, false;
  return true;
}
void note_known_acquisition(const RecordedObject& object);

inline void note_acquisition(const RecordedObject& object) {
  if (count_acquisition(*object.record, *object.mark)) note_known_acquisition(object);
}

// Begins to time a hold if it is drawn; `count`: the object's acquisitions. `record`: see Hold.
void draw_hold(const void* object, RelockObjectKind kind, std::uint32_t count,
               std::uint32_t record);
RelockHandOff hand_off_from(std::uint32_t node_before);
std::uint32_t own_node();  // plus 1

void report_count(const void* object, RelockObjectKind kind, std::uint64_t acquisitions);

// ---- a release ----

inline bool release_is_reported(const LinuxAtomic32& mark) {
  // A hint: a mark that comes later costs one sample.
  return (mark.load(MemoryOrder::kRelaxed) & kTicketBits) != 0 || t_record.due != 0;
}

// Takes the ticket of a sampled waiter out of the mark: 0 if there is none. Relaxed: the ticket is
// a number, and the row that it stands for was published.
inline std::uint32_t take_ticket(LinuxAtomic32& mark) {
  if (likely((mark.load(MemoryOrder::kRelaxed) & kTicketBits) == 0)) return 0;
  return mark.fetch_and(kKnown, MemoryOrder::kRelaxed) & kTicketBits;
}

// Before a waiter of a condition variable is woken, whose mark may be gone afterwards; and when all
// have been.
inline void take_woken(LinuxAtomic32& mark) {
  WokenTickets& woken = t_record.woken;
  if (woken.count == WokenTickets::kMost) return;
  const std::uint32_t ticket = take_ticket(mark);
  if (unlikely(ticket != 0)) woken.tickets[woken.count++] = ticket;
}
void report_woken();

// What is to be told after a release, found before it. `mark` and `record` may be null.
class ReportedRelease {
 public:
  ReportedRelease(const void* object, LinuxAtomic32* mark, const LinuxAtomic32* record);
  void report() const;  // after the release, when the object may be gone

 private:
  std::uint32_t ticket_ = 0;
  std::uint64_t hold_ns_ = 0;
  Hold hold_{};
};

// ---- the rest ----

inline void report_try_failed(const void* object, RelockObjectKind kind) {
  tell_recorder([=](const RelockProfiler& recorder) { recorder.try_failed(object, kind); });
}
inline void report_init(const void* object, RelockObjectKind kind, const void* site) {
  tell_recorder([=](const RelockProfiler& recorder) { recorder.object_init(object, kind, site); });
}
inline void report_destroy(const void* object, RelockObjectKind kind, std::uint64_t acquisitions) {
  tell_recorder(
      [=](const RelockProfiler& recorder) { recorder.object_destroy(object, kind, acquisitions); });
}

// A 4-byte spinlock has no room for a mark and a record, and the C library's own condition
// variables have none for a mark: they live in a table hashed by address, where the first object to
// claim an entry keeps it. Null when the table is full.
struct TableRecord {
  std::uintptr_t address;
  LinuxAtomic32 mark;
  LinuxAtomic32 record;
};
inline constexpr unsigned kTableBits = 12;
extern TableRecord g_table_records[1u << kTableBits];
inline std::size_t table_place(const void* object) {
  return (reinterpret_cast<std::uintptr_t>(object) >> 2) * 0x9e3779b97f4a7c15u >> (64 - kTableBits);
}
TableRecord* find_table_record(const void* object, bool make);

inline TableRecord* table_record(const void* object, bool make = true) {
  TableRecord& first = g_table_records[table_place(object)];
  // Relaxed: an entry carries nothing but counters.
  const std::uintptr_t seen = __atomic_load_n(&first.address, __ATOMIC_RELAXED);
  if (likely(seen == reinterpret_cast<std::uintptr_t>(object))) return &first;
  return find_table_record(object, make);
}
// For the next object at the address. Returns the record of this one.
std::uint32_t forget_table_record(const void* object);

}  // namespace relock
