#include "interpose/profile/stacks.h"

#include <ucontext.h>

#include <cstddef>
#include <cstring>

#include "interpose/profile/frame_rules.h"
#include "interpose/profile/modules.h"
#include "interpose/profile/stack_bounds.h"

#ifndef __x86_64__
#error "stacks are read on x86-64 alone"
#endif

namespace relock::profile {

namespace {

constexpr std::uint32_t kMaxSteps = 512;
constexpr std::uint64_t kLargestGuessedFrame = 16384;

struct Range {
  std::uint64_t start, end;
  bool holds(std::uint64_t address) const { return address >= start && address < end; }
};
Range recorder_code;    // this library
Range interposer_code;  // librelock.so; empty when something else calls the recorder
bool unwinder_open;

// Collects what take_stack returns: the innermost frames are relock's own and are left out.
struct Collector {
  std::uint64_t* frames;
  std::uint32_t capacity;
  std::uint32_t count;

  bool take(std::uint64_t address) {
    if (count == 0 && (recorder_code.holds(address) || interposer_code.holds(address))) {
      return true;
    }
    frames[count++] = address;
    return count < capacity;
  }
};

bool take_frame(void* context, std::uint64_t address) {
  return static_cast<Collector*>(context)->take(address);
}

// The registers that a walk goes on with, and the address to show for the frame.
struct Position {
  std::uint64_t rip, rsp, rbp;
  bool exact;  // rip is where the frame was interrupted, not where it will be returned to
  std::uint64_t address() const { return exact ? rip : rip - 1; }
};

bool step_by_rule(const FrameRule& rule, StackReader& reader, Position& position) {
  const std::uint64_t base = rule.kind == FrameKind::kFromStack ? position.rsp : position.rbp;
  const std::uint64_t frame = base + static_cast<std::int64_t>(rule.frame_offset);
  std::uint64_t caller = 0;
  std::uint64_t saved = position.rbp;
  if (frame <= position.rsp || !reader.read_word(frame - 8, &caller)) return false;
  if (rule.base_saved &&
      !reader.read_word(frame + static_cast<std::int64_t>(rule.base_offset), &saved)) {
    return false;
  }
  position = {caller, frame, saved, false};
  return true;
}

// Past a signal: the interrupted registers are in the context that the kernel left on the stack.
bool step_over_signal(StackReader& reader, Position& position) {
  const std::uint64_t registers = position.rsp + offsetof(ucontext_t, uc_mcontext.gregs);
  Position interrupted{};
  if (!reader.read_word(registers + REG_RIP * 8, &interrupted.rip) ||
      !reader.read_word(registers + REG_RSP * 8, &interrupted.rsp) ||
      !reader.read_word(registers + REG_RBP * 8, &interrupted.rbp)) {
    return false;
  }
  interrupted.exact = true;
  position = interrupted;
  reader.move_to(position.rsp);
  return true;
}

// Code without unwind information (made at run time, mostly): taken to keep a frame pointer if
// what follows from that looks right.
bool step_by_guess(StackReader& reader, Position& position) {
  std::uint64_t caller = 0;
  std::uint64_t saved = 0;
  LoadedObject object;
  if (position.rbp < position.rsp || position.rbp - position.rsp > kLargestGuessedFrame ||
      !reader.read_word(position.rbp + 8, &caller) || !reader.read_word(position.rbp, &saved) ||
      !find_object(caller, &object)) {
    return false;
  }
  position = {caller, position.rbp + 16, saved, false};
  return true;
}

enum class Outcome { kDone, kNeedsUnwinder };

// `rule_of(address, &rule)`: false when there is no rule to be had now.
template <class RuleOf>
Outcome walk_by_rules(const Registers& start, Collector& collector, RuleOf rule_of) {
  StackReader reader(start.rsp);
  Position position{start.rip, start.rsp, start.rbp, true};
  for (std::uint32_t step = 0; step < kMaxSteps; ++step) {
    if (position.rip < 4096 || !collector.take(position.address())) return Outcome::kDone;
    FrameRule rule;
    if (!rule_of(position.address(), &rule)) return Outcome::kNeedsUnwinder;
    bool going_on = false;
    switch (rule.kind) {
      case FrameKind::kFromStack:
      case FrameKind::kFromBase:
        going_on = step_by_rule(rule, reader, position);
        break;
      case FrameKind::kSignal:
        going_on = step_over_signal(reader, position);
        break;
      case FrameKind::kUnknown:
        going_on = step_by_guess(reader, position);
        break;
      case FrameKind::kComplex:
        return Outcome::kNeedsUnwinder;
      case FrameKind::kOutermost:
        break;
    }
    if (!going_on) return Outcome::kDone;
  }
  return Outcome::kDone;
}

// Whether code begins like a linkage stub: it passes a call on to another library.
bool is_linkage_stub(const unsigned char* code) {
  constexpr unsigned char kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (std::memcmp(code, kEndbr, sizeof kEndbr) == 0) code += sizeof kEndbr;
  if (*code == 0xf2) ++code;
  return code[0] == 0xff && code[1] == 0x25;
}

// A function that ends by unlocking a mutex jumps there instead of calling, and is gone from the
// stack by then, though it is the one to show. What is left is its caller, whose call names it: a
// direct call of a function that is no linkage stub did not lead here by itself.
void restore_jumped_frame(Collector& collector) {
  if (collector.count == 0) return;
  const std::uint64_t returned_to = collector.frames[0] + 1;
  LoadedObject object;
  if (!find_object(collector.frames[0], &object) || returned_to - object.start < 5) return;
  const auto* call = reinterpret_cast<const unsigned char*>(returned_to - 5);
  std::int32_t distance = 0;
  std::memcpy(&distance, call + 1, sizeof distance);
  const std::uint64_t target = returned_to + static_cast<std::int64_t>(distance);
  if (call[0] != 0xe8 || target < object.start || target + 16 > object.end) return;
  if (is_linkage_stub(reinterpret_cast<const unsigned char*>(target))) return;
  const std::uint32_t moved =
      collector.count < collector.capacity ? collector.count++ : collector.count - 1;
  std::memmove(collector.frames + 1, collector.frames, moved * sizeof *collector.frames);
  collector.frames[0] = target;
}

Range range_around(const void* address) {
  LoadedObject object;
  if (!find_object(reinterpret_cast<std::uint64_t>(address), &object)) return {0, 0};
  return {object.start, object.end};
}

}  // namespace

bool set_up_stacks(const void* caller) {
  recorder_code = range_around(reinterpret_cast<const void*>(&set_up_stacks));
  LoadedObject object;
  if (find_object(reinterpret_cast<std::uint64_t>(caller), &object) &&
      std::strstr(object.name, "librelock") != nullptr) {
    interposer_code = {object.start, object.end};
  }
  unwinder_open = open_unwinder();
  return unwinder_open;
}

std::uint32_t take_stack(const Registers& start, std::uint64_t* frames, std::uint32_t capacity,
                         bool* busy) {
  *busy = false;
  if (!unwinder_open || capacity == 0) return 0;
  Collector collector{frames, capacity, 0};
  const auto rule_of = [busy](std::uint64_t address, FrameRule* rule) {
    *rule = frame_rule(address, busy);
    return !*busy;
  };
  const Outcome outcome = walk_by_rules(start, collector, rule_of);
  if (*busy) return 0;
  if (outcome == Outcome::kNeedsUnwinder) {
    collector.count = 0;
    StackReader reader(start.rsp);
    walk_with_unwinder(start, &reader, take_frame, &collector, busy);
  }
  restore_jumped_frame(collector);
  return collector.count;
}

bool take_known_stack(const Registers& start, std::uint64_t* frames, std::uint32_t capacity,
                      std::uint32_t* count) {
  if (!unwinder_open || capacity == 0) return *count = 0, true;
  Collector collector{frames, capacity, 0};
  if (walk_by_rules(start, collector, known_frame_rule) == Outcome::kNeedsUnwinder) return false;
  restore_jumped_frame(collector);
  *count = collector.count;
  return true;
}

}  // namespace relock::profile
