// A profile in memory, written by the recorder's own tables.
#pragma once

#include <cstdlib>
#include <cstring>
#include <vector>

#include "interpose/profile/process_state.h"
#include "interpose/profile/tables.h"

namespace relock::profile {

// A sampled wait whose waiter's stack has been taken.
inline std::uint32_t begin_wait(Header* header, std::uint32_t lock, std::uint32_t waiter_stack,
                                std::uint32_t weight, std::uint64_t now_ns) {
  const std::uint32_t ticket = begin_ticket(header, lock, weight, now_ns);
  set_waiter_stack(header, ticket, waiter_stack);
  return ticket;
}

class ProfileBuilder {
 public:
  ProfileBuilder() : header_(static_cast<Header*>(std::aligned_alloc(4096, kFileBytes))) {
    std::memset(static_cast<void*>(header_), 0, kFileBytes);
    set_up_process();
    std::memset(process, 0, sizeof *process);
    host = RelockHost{};
    host.samples_per_s = 1000;
    std::memcpy(header_->magic, kMagic, sizeof kMagic);
    header_->version = kFormatVersion;
    header_->header_bytes = kHeaderBytes;
    header_->file_bytes = kFileBytes;
    header_->module_generation = 1;
    header_->stacks_wanted = 1;
    header_->pid = 4711;
    for (std::uint32_t i = 0; i < kSectionCount; ++i) {
      header_->sections[i] = {section_offset(i), kRows[i], kRowBytes[i], 0};
    }
    std::strcpy(header_->comm, "server");
    std::strcpy(header_->mutex_lock, "cna");
  }
  ~ProfileBuilder() { std::free(header_); }
  ProfileBuilder(const ProfileBuilder&) = delete;
  ProfileBuilder& operator=(const ProfileBuilder&) = delete;

  Header* header() { return header_; }

  std::uint32_t stack(std::vector<std::uint64_t> frames) {
    return intern_stack(header_, frames.data(), static_cast<std::uint32_t>(frames.size()));
  }
  std::uint32_t lock(std::uint64_t address, int kind = RELOCK_KIND_MUTEX) {
    return find_lock(header_, reinterpret_cast<const void*>(address), kind, true);
  }
  // A sampled wait, counted in the lock as well.
  void wait(std::uint32_t row, std::uint32_t waiter, std::uint32_t blocker, std::uint64_t wait_ns) {
    const std::uint32_t ticket = begin_wait(header_, row, waiter, kWeightOne, 1);
    if (claim_release(header_, ticket)) release_ticket(header_, ticket, blocker, 1);
    LockRow& lock = lock_row(header_, row);
    if (lock.first_stack == 0) lock.first_stack = waiter;
    count(row, wait_ns, RELOCK_WAIT_ACQUIRED, 7);
    end_ticket(header_, ticket, wait_ns, true);
  }
  // A loaded object of this name, with addresses that are those of its file.
  void module(std::uint32_t row, std::uint64_t start, std::uint64_t end, const char* path) {
    ModuleRow& module = table<ModuleRow>(kSectionModules)[row];
    module.start = start;
    module.end = end;
    module.first_generation = 1;
    std::strcpy(module.path, path);
    module.ready = 1;
  }
  // A wait without stacks.
  void count(std::uint32_t row, std::uint64_t wait_ns, RelockWaitOutcome outcome,
             std::uint64_t acquisitions, RelockHandOff hand_off = RELOCK_HANDOFF_UNKNOWN) {
    RelockWaitEnd end{};
    end.wait_ns = wait_ns;
    end.outcome = static_cast<std::uint8_t>(outcome);
    end.acquisitions = acquisitions;
    end.hand_off = static_cast<std::uint8_t>(hand_off);
    count_wait(header_, row, end);
  }
  std::vector<char> bytes() const {
    const char* data = reinterpret_cast<const char*>(header_);
    return std::vector<char>(data, data + kFileBytes);
  }
  template <typename Row>
  Row* table(SectionIndex section) {
    return rows<Row>(header_, section);
  }

 private:
  Header* header_;
};

}  // namespace relock::profile
