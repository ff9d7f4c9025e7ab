// Reads a profile file and checks every number in it that another one is looked up by. What has
// been read may have been written by anybody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interpose/profile/profile_format.h"

namespace relock {

// Waits of one lock in one stack because of another one. Stacks are numbered from 1; 0: unknown.
struct StackPair {
  std::uint32_t waiter = 0;
  std::uint32_t blocker = 0;
  std::uint64_t samples = 0;
  std::uint64_t weighted_ns = 0;
  std::uint64_t weighted_samples = 0;  // 8 fractional bits
};

struct LockProfile {
  profile::LockRow row;
  std::vector<StackPair> pairs;
  std::uint64_t under_way = 0;                  // sampled waits that had not ended
  std::vector<std::uint64_t> waiting_since_ns;  // when those began, on the monotonic clock
};

class Profile {
 public:
  // Returns an empty string, or in a few words what is wrong with the file.
  std::string load(const std::string& path);
  // The same from memory.
  std::string parse(std::vector<char> bytes);

  const profile::Header& header() const { return header_; }
  bool finished() const { return (header_.flags & profile::kFlagFinished) != 0; }
  const std::vector<LockProfile>& locks() const { return locks_; }
  const std::vector<profile::ModuleRow>& modules() const { return modules_; }
  // The frames of a stack, innermost first; empty for 0 and for a stack that was not kept.
  std::vector<std::uint64_t> frames(std::uint32_t stack) const;
  // Which modules were loaded when the stack was taken.
  std::uint32_t generation(std::uint32_t stack) const;

 private:
  template <typename Row>
  Row row(profile::SectionIndex section, std::uint32_t index) const;
  std::string check_header() const;
  std::string read_modules();
  std::string check_stacks() const;
  void add_shards(profile::LockRow& lock) const;
  std::string read_locks();
  std::string read_pairs();
  std::string read_tickets();
  void add_pair(std::uint32_t lock, const StackPair& pair);

  std::vector<char> bytes_;
  profile::Header header_{};
  std::vector<LockProfile> locks_;
  std::vector<std::uint32_t> lock_index_;  // by row; kNone for free rows
  std::vector<profile::ModuleRow> modules_;
};

}  // namespace relock
