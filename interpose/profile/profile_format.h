// The profile file: what the recorder maps and writes, and what `relock report` reads. Plain
// structures of fixed size, little endian, no pointers. README.md explains the layout.
//
// Every field that changes while the program runs is written with an atomic of its own size, so a
// reader of a live or killed process sees each of them whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace relock::profile {

inline constexpr char kMagic[8] = {'R', 'E', 'L', 'O', 'C', 'K', 'P', '1'};
inline constexpr std::uint32_t kFormatVersion = 2;

enum SectionIndex : std::uint32_t {
  kSectionLocks,
  kSectionStacks,
  kSectionFrames,
  kSectionPairs,
  kSectionTickets,
  kSectionModules,
  kSectionShards,
  kSectionCount
};

inline constexpr std::uint32_t kLockRows = 8192;  // a power of two, as are the next two
inline constexpr std::uint32_t kStackRows = 16384;
inline constexpr std::uint32_t kPairRows = 32768;
inline constexpr std::uint32_t kFrameWords = 180224;  // 11 frames for each stack
inline constexpr std::uint32_t kTicketRows = 1024;    // a power of two
inline constexpr std::uint32_t kModuleRows = 512;
inline constexpr std::uint32_t kShardRows = 8192;
inline constexpr std::uint32_t kShardsPerLock = 16;
inline constexpr std::uint32_t kOwnShards = 12;         // of them: each written by one thread alone
inline constexpr std::uint32_t kMaxFrames = 64;         // the innermost frames of a deeper stack
inline constexpr std::uint32_t kHistogramBuckets = 40;  // bucket b: times of 2^b..2^(b+1)-1 ns
inline constexpr std::uint32_t kKinds = 5;              // RelockObjectKind
inline constexpr std::uint32_t kCondKind = 4;
inline constexpr std::uint32_t kWeightOne = 256;  // weights are fixed point, 8 bits

// What was not recorded because there was no room or no chance to.
enum DropIndex : std::uint32_t {
  kDropLocks,         // waits whose lock found no row
  kDropStacks,        // stacks that found no row or no room for their frames
  kDropPairs,         // samples whose pair of stacks found no row
  kDropTickets,       // samples given up because too many waits were under way
  kDropModules,       // modules that found no row
  kDropNested,        // calls made while the same thread was recording
  kDropUnwinderBusy,  // stacks left out because the unwinder was in use
  kDropBudget,        // samples refused because the rate was used up
  kDropCount = 16     // room for more
};

enum HeaderFlags : std::uint32_t {
  kFlagFinished = 1,      // the program came to its normal end
  kFlagFiltered = 2,      // it entered a seccomp filter: nothing was logged at its end
  kFlagStacksRefused = 4  // and the filter refuses what stacks need: none were taken from there on
};

struct Section {
  std::uint32_t offset;  // from the start of the file
  std::uint32_t rows;
  std::uint32_t row_bytes;
  std::uint32_t used;  // rows handed out (frames, modules, shards, locks); may exceed `rows`
};

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t file_bytes;
  std::uint32_t flags;
  std::uint32_t pid;
  std::uint64_t start_realtime_ns;
  std::uint64_t start_monotonic_ns;
  std::uint64_t last_monotonic_ns;  // of the latest sample, log or finish
  Section sections[kSectionCount];
  std::uint64_t drops[kDropCount];
  std::uint64_t stacks_taken;
  std::uint64_t waits_unsampled;  // waits that were offered and not drawn
  std::uint64_t samples;          // waits that were drawn
  std::uint32_t samples_per_s;    // the configured bound on stacks
  std::uint32_t stacks_wanted;    // 0: counts and times only
  std::uint32_t module_generation;
  std::uint32_t nodes;  // NUMA nodes that hand-offs are told apart by; 1: all are within one
  // The threads of the process and the sum of their lifetimes since the start above, as of
  // last_monotonic_ns: what the waits are a share of. Counted at waits, in between taken as steady.
  std::uint64_t thread_ns;
  std::uint64_t waiting_threads;  // threads that have waited at least once
  std::uint32_t threads;          // at the last count, the main thread included
  std::uint32_t threads_most;
  char comm[16];  // these are all terminated by a zero byte
  char mutex_lock[24];
  char spin_lock[24];
  char rwlock[24];
  char wait[24];
  char exe[1024];
  char command_line[2048];  // arguments separated by single spaces, cut when longer
};

// One lock, or several that lived one after the other at one address and were initialised at one
// place. key: address | (kind + 1) << 56, 0 when the row is free. Readers and writers of one lock
// have a row each. A row may be there for its acquisitions alone, with no wait (contended 0).
struct LockRow {
  // Read at each wait, seldom written.
  std::uint64_t key;
  std::uint32_t retired;  // 1: destroyed; a new lock at the address gets a new row
  std::uint32_t objects;
  std::uint64_t init_site;          // return address of the init call, 0 unknown
  std::uint32_t first_stack;        // of the first sampled wait, 0 none
  std::uint32_t shards;             // its first row in kSectionShards plus 1, 0 none
  std::uint64_t expected_ns;        // the mean wait of those that do not sleep, roughly
  std::uint64_t expected_sleep_ns;  // and of those that do
  std::uint64_t timeouts;
  std::uint64_t cancelled;
  // The latest release that was sampled: it explains waits whose own release was not seen.
  std::uint64_t released_ns;
  std::uint32_t releasing_stack;
  std::uint32_t reserved_too;
  std::uint64_t acquisitions;         // of the current object, as of its last recorded event
  std::uint64_t acquisitions_before;  // of the objects before it
  std::uint64_t try_failures;
  std::uint64_t samples;  // waits that were drawn for stacks
  // Of the waits; to each of these the lock's kShardsPerLock rows of kSectionShards are added, and
  // the greatest is the longest wait.
  std::uint64_t contended;
  std::uint64_t wait_ns;
  std::uint64_t max_wait_ns;
  // Waits that ended with the lock, by whether its owner before ran on the waiter's node. Their sum
  // is less than `contended` where waits timed out or the owner before is not known. Not counted
  // with one node (Header::nodes): all that did not time out or get cancelled are within it.
  std::uint64_t handoffs_within;
  std::uint64_t handoffs_across;
  std::uint32_t histogram[kHistogramBuckets];
  // Hold times, sampled among all acquisitions from the first wait on. The mean is
  // hold_weighted_ns / hold_weighted; that times the acquisitions is the time held.
  std::uint64_t hold_samples;
  std::uint64_t hold_ns;  // of the samples themselves, as are the next two
  std::uint64_t max_hold_ns;
  std::uint64_t hold_weighted;     // acquisitions that the samples stand for
  std::uint64_t hold_weighted_ns;  // each sample's time multiplied with what it stands for
  std::uint32_t hold_histogram[kHistogramBuckets];
};

// Counts of a lock's waits by some of its threads. A lock that is waited for often gets
// kShardsPerLock of these, so that threads on different CPUs do not write the same cache lines.
struct ShardRow {
  std::uint64_t contended;
  std::uint64_t wait_ns;
  std::uint64_t max_wait_ns;
  std::uint64_t handoffs_within;
  std::uint64_t handoffs_across;
  std::uint64_t reserved[3];
  std::uint32_t histogram[kHistogramBuckets];
  std::uint64_t reserved_too[4];
};

// A stack is named by its row + 1, so that 0 means none. Frames are addresses inside the calling
// instruction, innermost first; the innermost may be the start of a function that jumped on.
struct StackRow {
  std::uint64_t hash;  // 0 when the row is free
  std::uint32_t first_frame;
  std::uint32_t frames;      // written last; 0 while the row is being filled or had no room
  std::uint32_t generation;  // which modules were loaded, see ModuleRow
  std::uint32_t reserved;
};

// Waits of one lock in one stack because of one stack. key: lock row << 32 | waiter's stack << 16 |
// blocker's stack, with bit 63 set so that it is never 0.
struct PairRow {
  std::uint64_t key;
  std::uint64_t samples;
  std::uint64_t wait_ns;           // of the samples themselves
  std::uint64_t weighted_wait_ns;  // each divided by the probability that it was drawn
  std::uint64_t weighted_samples;  // 8 fractional bits
  std::uint64_t reserved;
};

// A sampled wait under way. state: generation << 8 | TicketFlags, 0 when free.
enum TicketFlags : std::uint32_t {
  kTicketBegun = 1,
  kTicketReleasing = 2,  // the blocker's stack is being taken
  kTicketReleased = 4,
  kTicketEnded = 8,
  kTicketClaimed = 16  // being filled, or being moved to the pairs
};
struct TicketRow {
  std::uint64_t state;
  std::uint32_t lock;  // row of the lock
  std::uint32_t waiter_stack;
  std::uint32_t blocker_stack;
  std::uint32_t weight;  // 8 fractional bits
  std::uint64_t begin_ns;
  std::uint64_t wait_ns;
  std::uint64_t reserved[3];
};

// A loaded object. Rows are never removed, so that addresses in a library that was closed still
// get their names; an object that later takes another's place starts a new generation, and a
// stack belongs to the object whose generations include its own.
struct ModuleRow {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t load_bias;  // address in memory minus address in the file
  std::uint32_t first_generation;
  std::uint32_t last_generation;  // 0: still there
  std::uint32_t ready;            // written last
  std::uint32_t build_id_bytes;
  std::uint8_t build_id[32];
  char path[440];
};

static_assert(sizeof(Section) == 16 && sizeof(Header) % 8 == 0 && sizeof(Header) <= 4096);
static_assert(sizeof(LockRow) == 512 && sizeof(StackRow) == 24 && sizeof(PairRow) == 48);
static_assert(sizeof(TicketRow) == 64 && sizeof(ModuleRow) == 512 && sizeof(ShardRow) == 256);
static_assert(offsetof(LockRow, released_ns) == 64);
static_assert(kStackRows < 65536 && kLockRows < 65536, "they share a pair's key");

inline constexpr std::uint32_t kRowBytes[kSectionCount] = {
    sizeof(LockRow),   sizeof(StackRow),  sizeof(std::uint64_t), sizeof(PairRow),
    sizeof(TicketRow), sizeof(ModuleRow), sizeof(ShardRow)};
inline constexpr std::uint32_t kRows[kSectionCount] = {
    kLockRows, kStackRows, kFrameWords, kPairRows, kTicketRows, kModuleRows, kShardRows};
inline constexpr std::uint32_t kHeaderBytes = 4096;

// Sections follow the header in the order of SectionIndex, each at a multiple of 4096.
constexpr std::uint32_t section_offset(std::uint32_t index) {
  std::uint32_t offset = kHeaderBytes;
  for (std::uint32_t i = 0; i < index; ++i) {
    offset += (kRows[i] * kRowBytes[i] + 4095) / 4096 * 4096;
  }
  return offset;
}
inline constexpr std::uint32_t kFileBytes = section_offset(kSectionCount);
static_assert(kFileBytes <= 16u << 20);

constexpr std::uint64_t lock_key(std::uint64_t address, std::uint32_t kind) {
  return (address & ((std::uint64_t{1} << 56) - 1)) | (std::uint64_t{kind} + 1) << 56;
}
constexpr std::uint64_t key_address(std::uint64_t key) {
  return key & ((std::uint64_t{1} << 56) - 1);
}
constexpr std::uint32_t key_kind(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 56) - 1;
}

constexpr std::uint64_t pair_key(std::uint32_t lock, std::uint32_t waiter, std::uint32_t blocker) {
  return std::uint64_t{1} << 63 | std::uint64_t{lock} << 32 | std::uint64_t{waiter} << 16 | blocker;
}
constexpr std::uint32_t pair_lock(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 32) & 0x7fffffff;
}
constexpr std::uint32_t pair_waiter(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 16) & 0xffff;
}
constexpr std::uint32_t pair_blocker(std::uint64_t key) {
  return static_cast<std::uint32_t>(key) & 0xffff;
}

}  // namespace relock::profile
