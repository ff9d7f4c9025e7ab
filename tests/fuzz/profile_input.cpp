#include "tests/fuzz/profile_input.h"

#include <algorithm>
#include <cstring>

#include "tests/unit/profile_builder.h"

namespace relock::fuzz {

using namespace profile;

namespace {

struct Word {
  std::uint32_t offset;
  bool operator==(const Word&) const = default;
};

void fill(ProfileBuilder& builder) {
  Header* header = builder.header();
  std::strcpy(header->exe, "/usr/bin/server");
  std::strcpy(header->command_line, "server --port 80");
  std::strcpy(header->spin_lock, "tas");
  std::strcpy(header->rwlock, "rwsem");
  std::strcpy(header->wait, "adaptive");
  header->start_realtime_ns = 1700000000000000000;
  header->start_monotonic_ns = 1000000;
  header->last_monotonic_ns = 5000000000;
  header->thread_ns = 20000000000;
  header->threads = header->threads_most = 5;
  header->samples_per_s = 10000;
  header->samples = 40;
  builder.module(0, 0x1000, 0x9000, "/usr/bin/server");
  builder.module(1, 0x10000, 0x20000, "/lib/libc.so.6");
  std::vector<std::uint32_t> stacks;
  for (std::uint64_t i = 0; i < 6; ++i) {
    stacks.push_back(builder.stack({0x1010 + i * 16, 0x1200, 0x10050 + i, 0x99999999}));
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint32_t lock = builder.lock(0x7000 + i * 0x1000, static_cast<int>(i % 5));
    for (std::uint64_t wait = 0; wait < 4; ++wait) {
      builder.wait(lock, stacks[(i + wait) % 6], wait == 3 ? 0 : stacks[i % 6], 1000 << wait);
    }
    LockRow& row = lock_row(header, lock);
    row.init_site = i % 2 == 0 ? 0x1300 : 0;
    row.hold_samples = row.hold_weighted = 3;
    row.hold_ns = row.hold_weighted_ns = 3000;
    row.max_hold_ns = 1500;
    row.hold_histogram[9] = row.hold_histogram[10] = 1;
    row.handoffs_within = 4;
  }
  begin_wait(header, builder.lock(0x7000), stacks[0], kWeightOne, 5);
  const std::uint32_t ended = begin_wait(header, builder.lock(0x7000), stacks[1], kWeightOne, 5);
  end_ticket(header, ended, 700, true);
}

// Where the file says something, and a few places where it does not.
std::vector<std::uint32_t> words_in_use(const std::vector<char>& bytes) {
  std::vector<std::uint32_t> words;
  std::uint32_t gap = 0;
  for (std::uint32_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    gap = word != 0 || at < sizeof(Header) ? 0 : gap + 1;
    if (gap < 64 || gap % 4096 == 0) words.push_back(at);
  }
  return words;
}

void change(const std::uint8_t* data, std::vector<char>* bytes) {
  static const std::vector<std::uint32_t> words = words_in_use(valid_profile());
  const std::uint32_t place = data[0] | data[1] << 8 | data[2] << 16;
  std::uint64_t value = 0;
  std::uint64_t word = 0;
  std::memcpy(&value, data + 4, sizeof value);
  char* target = bytes->data() + words[place % words.size()];
  std::memcpy(&word, target, sizeof word);
  const std::uint64_t changed[] = {value, word ^ value, word + value,
                                   word ^ std::uint64_t{1} << value % 64};
  word = changed[data[3] % 4];
  std::memcpy(target, &word, sizeof word);
}

}  // namespace

const std::vector<char>& valid_profile() {
  static const std::vector<char> bytes = [] {
    ProfileBuilder builder;
    fill(builder);
    return builder.bytes();
  }();
  return bytes;
}

std::vector<char> profile_of(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return {};
  const std::uint8_t kind = data[0];
  if (kind < 16) return std::vector<char>(data + 1, data + size);
  std::vector<char> bytes = valid_profile();
  for (std::size_t at = 1; at + kChangeBytes <= size; at += kChangeBytes) {
    change(data + at, &bytes);
  }
  if (kind >= 240) {
    std::uint32_t length = 0;
    std::memcpy(&length, data + (size - std::min(size, sizeof length)),
                std::min<std::size_t>(size, 4));
    bytes.resize(length % (bytes.size() + 1));
  }
  return bytes;
}

}  // namespace relock::fuzz
