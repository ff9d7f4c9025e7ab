#include "tools/profile_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace relock {

using namespace profile;

namespace {

constexpr std::uint32_t kNone = 0xffffffff;

std::string corrupt(const char* what, std::uint64_t index) {
  return "corrupt profile: " + std::string(what) + " " + std::to_string(index);
}

template <std::size_t N>
bool terminated(const char (&text)[N]) {
  return std::memchr(text, '\0', N) != nullptr;
}

std::string read_file(const std::string& path, std::vector<char>* bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for somebody to write into it.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return std::strerror(errno);
  struct stat file {};
  std::string wrong;
  if (fstat(descriptor, &file) != 0) {
    wrong = std::strerror(errno);
  } else if (!S_ISREG(file.st_mode)) {
    wrong = "not a regular file";
  } else if (file.st_size > static_cast<off_t>(kFileBytes)) {
    wrong = "not a relock profile: too long";
  } else {
    bytes->resize(static_cast<std::size_t>(file.st_size));
    std::size_t done = 0;
    while (done < bytes->size()) {
      const ssize_t got = read(descriptor, bytes->data() + done, bytes->size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) wrong = std::strerror(errno);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    bytes->resize(done);
  }
  close(descriptor);
  return wrong;
}

// Counters are written one after another, also while the file is read, so they may be apart by as
// many events as happen meanwhile; but not by more.
std::uint64_t slack_of(std::uint64_t count) { return 65536 + count / 8; }

bool near_each_other(std::uint64_t a, std::uint64_t b) {
  return (a > b ? a - b : b - a) <= slack_of(std::max(a, b));
}

using Wide = unsigned __int128;

// Whether a count, a total and a maximum may belong to the values that the histogram counted.
bool fits_histogram(const std::uint32_t (&histogram)[kHistogramBuckets], std::uint64_t count,
                    std::uint64_t total_ns, std::uint64_t max_ns) {
  std::uint64_t events = 0;
  Wide least_ns = 0;
  for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
    events += histogram[bucket];
    if (bucket > 0) least_ns += Wide{histogram[bucket]} << bucket;
  }
  const Wide lag_ns = Wide{slack_of(std::max(events, count))} * max_ns;
  return near_each_other(events, count) && total_ns <= Wide{count} * max_ns + lag_ns &&
         least_ns <= total_ns + lag_ns;
}

// A turned bit in a counter would be a wrong number in every report; most of them show.
bool counts_fit(const LockRow& lock) {
  const std::uint64_t most = lock.contended + slack_of(lock.contended);
  return lock.contended <= UINT64_MAX / 2 &&
         fits_histogram(lock.histogram, lock.contended, lock.wait_ns, lock.max_wait_ns) &&
         fits_histogram(lock.hold_histogram, lock.hold_samples, lock.hold_ns, lock.max_hold_ns) &&
         lock.timeouts <= most && lock.cancelled <= most && lock.samples <= most &&
         lock.handoffs_within <= most && lock.handoffs_across <= most;
}

}  // namespace

template <typename Row>
Row Profile::row(SectionIndex section, std::uint32_t index) const {
  Row result;
  std::memcpy(&result, bytes_.data() + section_offset(section) + std::size_t{index} * sizeof(Row),
              sizeof(Row));
  return result;
}

std::string Profile::load(const std::string& path) {
  std::vector<char> bytes;
  std::string wrong = read_file(path, &bytes);
  if (!wrong.empty()) return wrong;
  return parse(std::move(bytes));
}

std::string Profile::parse(std::vector<char> bytes) {
  bytes_ = std::move(bytes);
  locks_.clear();
  modules_.clear();
  if (bytes_.empty()) return "not a relock profile: empty";
  const std::size_t magic_bytes = std::min(bytes_.size(), sizeof kMagic);
  if (std::memcmp(bytes_.data(), kMagic, magic_bytes) != 0) return "not a relock profile";
  if (bytes_.size() < kHeaderBytes) return "truncated profile";
  std::memcpy(&header_, bytes_.data(), sizeof header_);
  std::string wrong = check_header();
  if (wrong.empty()) wrong = read_modules();
  if (wrong.empty()) wrong = check_stacks();
  if (wrong.empty()) wrong = read_locks();
  if (wrong.empty()) wrong = read_pairs();
  if (wrong.empty()) wrong = read_tickets();
  return wrong;
}

// One version has one layout, so the sizes in the header are there to be compared.
std::string Profile::check_header() const {
  if (header_.version != kFormatVersion) {
    return "profile of format " + std::to_string(header_.version) + ", this relock reads format " +
           std::to_string(kFormatVersion);
  }
  if (header_.header_bytes != kHeaderBytes || header_.file_bytes != kFileBytes) {
    return "corrupt profile: wrong sizes in its header";
  }
  for (std::uint32_t i = 0; i < kSectionCount; ++i) {
    const Section& section = header_.sections[i];
    if (section.offset != section_offset(i) || section.rows != kRows[i] ||
        section.row_bytes != kRowBytes[i]) {
      return corrupt("wrong place of section", i);
    }
  }
  if (bytes_.size() < kFileBytes) return "truncated profile";
  if (bytes_.size() > kFileBytes) return "corrupt profile: data after its end";
  const bool strings_end = terminated(header_.comm) && terminated(header_.mutex_lock) &&
                           terminated(header_.spin_lock) && terminated(header_.rwlock) &&
                           terminated(header_.wait) && terminated(header_.exe) &&
                           terminated(header_.command_line);
  return strings_end ? "" : "corrupt profile: text without an end in its header";
}

std::string Profile::read_modules() {
  for (std::uint32_t i = 0; i < kModuleRows; ++i) {
    const auto module = row<ModuleRow>(kSectionModules, i);
    if (module.ready == 0) continue;
    if (module.ready != 1 || module.start >= module.end ||
        module.build_id_bytes > sizeof module.build_id || !terminated(module.path)) {
      return corrupt("module", i);
    }
    modules_.push_back(module);
  }
  return "";
}

std::string Profile::check_stacks() const {
  for (std::uint32_t i = 0; i < kStackRows; ++i) {
    const auto stack = row<StackRow>(kSectionStacks, i);
    if (stack.frames == 0) continue;  // free, under construction, or without room
    if (stack.hash == 0 || stack.frames > kMaxFrames || stack.first_frame > kFrameWords ||
        stack.frames > kFrameWords - stack.first_frame) {
      return corrupt("stack", i);
    }
  }
  return "";
}

// A lock's waits lie in its row and in its shards; what is shown is their sum.
void Profile::add_shards(LockRow& lock) const {
  for (std::uint32_t i = 0; lock.shards != 0 && i < kShardsPerLock; ++i) {
    const auto shard = row<ShardRow>(kSectionShards, lock.shards - 1 + i);
    lock.contended += shard.contended;
    lock.wait_ns += shard.wait_ns;
    lock.max_wait_ns = std::max(lock.max_wait_ns, shard.max_wait_ns);
    lock.handoffs_within += shard.handoffs_within;
    lock.handoffs_across += shard.handoffs_across;
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
      lock.histogram[bucket] += shard.histogram[bucket];
    }
  }
  const std::uint64_t without = lock.timeouts + lock.cancelled;
  const bool hands_over = key_kind(lock.key) != kCondKind && lock.contended > without;
  if (header_.nodes == 1 && hands_over) lock.handoffs_within = lock.contended - without;
}

std::string Profile::read_locks() {
  lock_index_.assign(kLockRows, kNone);
  for (std::uint32_t i = 0; i < kLockRows; ++i) {
    auto lock = row<LockRow>(kSectionLocks, i);
    if (lock.key == 0) continue;
    if (key_kind(lock.key) >= kKinds || lock.retired > 1 || lock.first_stack > kStackRows ||
        lock.shards > kShardRows - kShardsPerLock + 1) {
      return corrupt("lock", i);
    }
    add_shards(lock);
    if (!counts_fit(lock)) return corrupt("counts that do not fit together, lock", i);
    lock_index_[i] = static_cast<std::uint32_t>(locks_.size());
    locks_.push_back({lock, {}, 0, {}});
  }
  return "";
}

void Profile::add_pair(std::uint32_t lock, const StackPair& pair) {
  for (StackPair& known : locks_[lock].pairs) {
    if (known.waiter != pair.waiter || known.blocker != pair.blocker) continue;
    known.samples += pair.samples;
    known.weighted_ns += pair.weighted_ns;
    known.weighted_samples += pair.weighted_samples;
    return;
  }
  locks_[lock].pairs.push_back(pair);
}

std::string Profile::read_pairs() {
  for (std::uint32_t i = 0; i < kPairRows; ++i) {
    const auto pair = row<PairRow>(kSectionPairs, i);
    if (pair.key == 0) continue;
    const std::uint32_t lock = pair_lock(pair.key);
    const bool fits = pair.key >> 63 == 1 && lock < kLockRows && lock_index_[lock] != kNone &&
                      pair_waiter(pair.key) <= kStackRows && pair_blocker(pair.key) <= kStackRows;
    if (!fits) return corrupt("pair of stacks", i);
    const std::uint64_t waits = locks_[lock_index_[lock]].row.contended;
    if (pair.samples > waits + slack_of(waits)) {
      return corrupt("more samples than waits, pair of stacks", i);
    }
    locks_[lock_index_[lock]].pairs.push_back({pair_waiter(pair.key), pair_blocker(pair.key),
                                               pair.samples, pair.weighted_wait_ns,
                                               pair.weighted_samples});
  }
  return "";
}

// Waits that were under way, or whose release had not been reported, when the process was killed
// or the file was read.
std::string Profile::read_tickets() {
  for (std::uint32_t i = 0; i < kTicketRows; ++i) {
    const auto ticket = row<TicketRow>(kSectionTickets, i);
    const std::uint64_t flags = ticket.state & 0xff;
    const bool in_use = (flags & kTicketBegun) != 0 && (flags & kTicketClaimed) == 0;
    if (!in_use) continue;
    const bool fits = ticket.lock < kLockRows && lock_index_[ticket.lock] != kNone &&
                      ticket.waiter_stack <= kStackRows && ticket.blocker_stack <= kStackRows;
    if (!fits) return corrupt("wait under way", i);
    const std::uint32_t lock = lock_index_[ticket.lock];
    if ((flags & kTicketEnded) == 0) {
      ++locks_[lock].under_way;
      locks_[lock].waiting_since_ns.push_back(ticket.begin_ns);
      continue;
    }
    const auto weighted = static_cast<unsigned __int128>(ticket.wait_ns) * ticket.weight;
    const std::uint32_t blocker = (flags & kTicketReleased) != 0 ? ticket.blocker_stack : 0;
    add_pair(lock, {ticket.waiter_stack, blocker, 1,
                    static_cast<std::uint64_t>(weighted / kWeightOne), ticket.weight});
  }
  return "";
}

std::vector<std::uint64_t> Profile::frames(std::uint32_t stack) const {
  std::vector<std::uint64_t> result;
  if (stack == 0) return result;
  const auto kept = row<StackRow>(kSectionStacks, stack - 1);
  for (std::uint32_t i = 0; i < kept.frames; ++i) {
    result.push_back(row<std::uint64_t>(kSectionFrames, kept.first_frame + i));
  }
  return result;
}

std::uint32_t Profile::generation(std::uint32_t stack) const {
  return stack == 0 ? 0 : row<StackRow>(kSectionStacks, stack - 1).generation;
}

}  // namespace relock
