#include "tools/report_text.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <map>

namespace relock {

using namespace profile;

namespace {

constexpr std::size_t kStacksShown = 4;    // waiting stacks of a lock
constexpr std::size_t kBlockersShown = 3;  // blocking stacks of a waiting stack
constexpr std::size_t kFramesShown = 10;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  const int length = std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return std::string(text, std::min<std::size_t>(length < 0 ? 0 : length, sizeof text - 1));
}

// Names come from files and from the program: no control characters reach the terminal.
std::string printable(const std::string& text, std::size_t width) {
  std::string result;
  for (const char c : text) result += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  if (result.size() > width) result = result.substr(0, width - 3) + "...";
  return result;
}

const char* kind_word(std::uint32_t kind) {
  constexpr std::array kWords = {"mutex", "spinlock", "rwlock read", "rwlock write", "cond"};
  return kWords[kind];
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string hex(std::uint64_t value) {
  return format("0x%llx", static_cast<unsigned long long>(value));
}

// A count with thousands apart: 1,234,567.
std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

// At most five characters: 12345, 123k, 4.56M.
std::string short_count(std::uint64_t count) {
  if (count < 100000) return std::to_string(count);
  constexpr std::array kUnits = {"k", "M", "G", "T", "P", "E"};
  double value = static_cast<double>(count) / 1000;
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return format("%.*f%s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, kUnits[unit]);
}

std::string counted(std::uint64_t count, const char* noun) {
  return count_text(count) + " " + noun + (count == 1 ? "" : "s");
}

// Where threads and programs begin: nothing below these tells more.
bool is_start(const std::string& name) {
  return name == "main" || name == "start_thread" || name.rfind("__libc_start_call_main", 0) == 0;
}

std::string symbol_text(const Symbol& symbol, std::uint64_t address) {
  if (!symbol.name.empty()) return symbol.name;
  if (!symbol.module.empty()) return symbol.module + "+" + hex(symbol.offset);
  return hex(address);
}

// One stack that waited, and those that it waited for. Stacks that read alike are one.
struct WaitingStack {
  std::uint32_t waiter = 0;
  std::uint64_t samples = 0;
  std::uint64_t weighted_ns = 0;
  std::vector<StackPair> blockers;
};

template <typename Item>
void sort_by_weight(std::vector<Item>* items) {
  std::stable_sort(items->begin(), items->end(),
                   [](const Item& a, const Item& b) { return a.weighted_ns > b.weighted_ns; });
}

class Report {
 public:
  Report(const Profile& profile, NameSource& names, std::uint32_t top)
      : profile_(profile), names_(names), top_(top) {}

  std::string text() {
    write_head();
    write_section(false);
    write_section(true);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += printable(text, kReportColumns) + "\n"; }
  void head(const char* label, const std::string& text) { line(format("  %-10s", label) + text); }

  void write_head() {
    const Header& header = profile_.header();
    const auto start = static_cast<std::time_t>(header.start_realtime_ns / 1000000000);
    char day[64] = "";
    std::tm broken{};
    if (gmtime_r(&start, &broken) != nullptr) {
      std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S UTC", &broken);
    }
    line("relock profile of " + std::string(header.comm) + "[" + std::to_string(header.pid) +
         "], first contention at " + day);
    head("command", header.command_line[0] != '\0' ? header.command_line : header.exe);
    head("locks", format("mutex %s, spinlock %s, rwlock %s; waiting %s", header.mutex_lock,
                         header.spin_lock, header.rwlock, header.wait));
    const std::uint64_t lasted = header.last_monotonic_ns > header.start_monotonic_ns
                                     ? header.last_monotonic_ns - header.start_monotonic_ns
                                     : 0;
    head("recorded",
         duration_text(lasted) + (profile_.finished() ? ", until the program ended"
                                                      : ", then killed or still running"));
    write_sampling();
    write_drops();
  }

  void write_sampling() {
    const Header& header = profile_.header();
    if (header.stacks_wanted == 0) return head("sampling", "no stacks were asked for");
    const std::uint64_t offered =
        header.samples + header.waits_unsampled + header.drops[kDropBudget];
    head("sampling", count_text(header.samples) + " of " + count_text(offered) +
                         " waits that slept have stacks (at most " +
                         count_text(header.samples_per_s) + " stacks per second);");
    head("", "counts and times of locks are exact, shares of stacks are estimates");
  }

  void write_drops() {
    constexpr std::array<const char*, 8> kWhat = {"waits for locks beyond the table",
                                                  "stacks beyond the table",
                                                  "pairs of stacks beyond the table",
                                                  "samples beyond the waits under way",
                                                  "modules beyond the table",
                                                  "calls inside another recording",
                                                  "stacks not taken, the unwinder was busy",
                                                  "samples over the rate"};
    bool any = false;
    for (std::size_t i = 0; i < kWhat.size(); ++i) {
      const std::uint64_t count = profile_.header().drops[i];
      if (count == 0) continue;
      head(any ? "" : "dropped", count_text(count) + " " + kWhat[i]);
      any = true;
    }
    if (!any) head("dropped", "nothing");
  }

  std::vector<const LockProfile*> sorted_locks(bool conditions) const {
    std::vector<const LockProfile*> locks;
    for (const LockProfile& lock : profile_.locks()) {
      if ((key_kind(lock.row.key) == kCondKind) == conditions) locks.push_back(&lock);
    }
    std::stable_sort(locks.begin(), locks.end(), [](const LockProfile* a, const LockProfile* b) {
      return a->row.wait_ns > b->row.wait_ns;
    });
    return locks;
  }

  void write_section(bool conditions) {
    const std::vector<const LockProfile*> locks = sorted_locks(conditions);
    out_ += "\n";
    if (conditions && locks.empty()) return line("No thread waited for a condition variable.");
    if (locks.empty()) return line("No thread waited for a lock.");
    line(conditions ? "CONDITION VARIABLES, by total wait (waits for a signal, not for a lock)"
                    : "LOCKS, by total wait");
    write_table(locks, conditions);
    const std::size_t shown = std::min<std::size_t>(locks.size(), top_);
    for (std::size_t i = 0; i < shown; ++i) write_lock(i + 1, *locks[i], conditions);
  }

  void write_table(const std::vector<const LockProfile*>& locks, bool conditions) {
    std::uint64_t total = 0;
    for (const LockProfile* lock : locks) total += lock->row.wait_ns;
    line(format("%3s %8s %6s %8s %8s %6s %8s  %s", "#", "waited", "share", "mean", "longest",
                "waits", conditions ? "" : "acquired", conditions ? "object" : "lock"));
    const std::size_t shown = std::min<std::size_t>(locks.size(), top_);
    for (std::size_t i = 0; i < shown; ++i) {
      const LockRow& row = locks[i]->row;
      const std::string taken = conditions ? "" : acquisitions_text(row);
      line(format("%3zu %8s %5.1f%% %8s %8s %6s %8s  ", i + 1, duration_text(row.wait_ns).c_str(),
                  percent(row.wait_ns, total),
                  duration_text(row.contended == 0 ? 0 : row.wait_ns / row.contended).c_str(),
                  duration_text(row.max_wait_ns).c_str(), short_count(row.contended).c_str(),
                  taken.c_str()) +
           lock_name(row, true));
    }
    if (shown < locks.size()) {
      std::uint64_t rest = 0;
      for (std::size_t i = shown; i < locks.size(); ++i) rest += locks[i]->row.wait_ns;
      line(format("    %8s %5.1f%% in %zu more (--top %zu shows them)", duration_text(rest).c_str(),
                  percent(rest, total), locks.size() - shown, locks.size()));
    }
    if (!conditions) {
      line("    acquired: as of the lock's last recorded wait, so at least that many");
    }
  }

  static std::string acquisitions_text(const LockRow& row) {
    const std::uint64_t taken = row.acquisitions + row.acquisitions_before;
    return taken == 0 ? "?" : std::string(">=").append(short_count(taken));
  }

  // The symbol if it lies in a module's data, else where it was made, else where it was waited for.
  // `brief`: without source lines.
  std::string lock_name(const LockRow& row, bool brief) {
    const std::string kind = kind_word(key_kind(row.key)) + std::string(" ");
    const std::uint64_t address = key_address(row.key);
    const Symbol own = names_.name(address, 0);
    std::string name;
    if (!own.name.empty()) {
      name = own.name + (own.offset != 0 ? "+" + hex(own.offset) : "") + " (" + own.module + ")";
    } else if (row.init_site != 0) {
      name = "made in " + place(row.init_site - 1, 0, brief);
    } else if (const auto frames = profile_.frames(row.first_stack); !frames.empty()) {
      name = "waited for in " + place(frames[0], profile_.generation(row.first_stack), brief);
    } else {
      name = symbol_text(own, address);
    }
    if (row.objects > 1) name += ", " + count_text(row.objects) + " objects";
    return kind + name;
  }

  std::string place(std::uint64_t address, std::uint32_t generation, bool brief) {
    const Symbol symbol = names_.name(address, generation);
    const bool bare = brief || symbol.source.empty();
    return symbol_text(symbol, address) + (bare ? "" : " " + symbol.source);
  }

  std::vector<WaitingStack> waiting_stacks(const LockProfile& lock) {
    std::vector<WaitingStack> stacks;
    for (const StackPair& pair : lock.pairs) {
      const std::uint32_t waiter = same_reading(pair.waiter);
      auto stack = std::find_if(stacks.begin(), stacks.end(),
                                [&](const WaitingStack& s) { return s.waiter == waiter; });
      if (stack == stacks.end()) {
        stacks.emplace_back();
        stack = stacks.end() - 1;
        stack->waiter = waiter;
      }
      stack->samples += pair.samples;
      stack->weighted_ns += pair.weighted_ns;
      const std::uint32_t blocker = same_reading(pair.blocker);
      auto known = std::find_if(stack->blockers.begin(), stack->blockers.end(),
                                [&](const StackPair& p) { return p.blocker == blocker; });
      if (known == stack->blockers.end()) {
        stack->blockers.push_back({waiter, blocker, pair.samples, pair.weighted_ns});
      } else {
        known->samples += pair.samples;
        known->weighted_ns += pair.weighted_ns;
      }
    }
    for (WaitingStack& stack : stacks) sort_by_weight(&stack.blockers);
    sort_by_weight(&stacks);
    return stacks;
  }

  // The first stack with the same lines.
  std::uint32_t same_reading(std::uint32_t stack) {
    const auto known = readings_.find(stack);
    if (known != readings_.end()) return known->second;
    std::string text;
    for (const std::string& frame : frame_lines(stack, kReportColumns)) text += frame + "\n";
    const std::uint32_t first = stack_by_text_.emplace(text, stack).first->second;
    return readings_[stack] = first;
  }

  void write_lock(std::size_t rank, const LockProfile& lock, bool condition) {
    const LockRow& row = lock.row;
    out_ += "\n";
    line(std::to_string(rank) + ". " + lock_name(row, false));
    std::string facts = "   half the waits under " + median_text(row);
    if (row.timeouts != 0) facts += ", " + count_text(row.timeouts) + " timed out";
    if (row.cancelled != 0) facts += ", " + count_text(row.cancelled) + " cancelled";
    if (row.try_failures != 0) facts += ", " + counted(row.try_failures, "failed trylock");
    if (lock.under_way != 0) facts += ", " + count_text(lock.under_way) + " still waiting";
    if (row.contended != 0 || row.try_failures != 0) line(facts);
    const std::vector<WaitingStack> stacks = waiting_stacks(lock);
    std::uint64_t total = 0;
    for (const WaitingStack& stack : stacks) total += stack.weighted_ns;
    if (stacks.empty()) line("   no stack was taken");
    const std::size_t shown = std::min(stacks.size(), kStacksShown);
    for (std::size_t i = 0; i < shown; ++i) write_stack(stacks[i], total, row, condition);
    write_rest(stacks, shown, total);
  }

  // The histogram's bucket that holds the middle wait.
  static std::string median_text(const LockRow& row) {
    std::uint64_t seen = 0;
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
      seen += row.histogram[bucket];
      if (seen * 2 >= row.contended) return duration_text(std::uint64_t{2} << bucket);
    }
    return duration_text(row.max_wait_ns);
  }

  void write_stack(const WaitingStack& stack, std::uint64_t total, const LockRow& row,
                   bool condition) {
    const double share = percent(stack.weighted_ns, total);
    const auto estimate =
        static_cast<std::uint64_t>(share / 100 * static_cast<double>(row.wait_ns));
    line(format("   %5.1f%%  %s, %s: waits in", share, duration_text(estimate).c_str(),
                counted(stack.samples, "sample").c_str()));
    write_frames(stack.waiter, 11);
    const std::size_t shown = std::min(stack.blockers.size(), kBlockersShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const StackPair& pair = stack.blockers[i];
      line(format("           %5.1f%%  %s", percent(pair.weighted_ns, stack.weighted_ns),
                  condition ? "woken by" : "because of"));
      write_frames(pair.blocker, 19);
    }
    if (shown < stack.blockers.size()) {
      std::uint64_t rest = 0;
      for (std::size_t i = shown; i < stack.blockers.size(); ++i) {
        rest += stack.blockers[i].weighted_ns;
      }
      line(format("           %5.1f%%  %zu more stacks", percent(rest, stack.weighted_ns),
                  stack.blockers.size() - shown));
    }
  }

  void write_rest(const std::vector<WaitingStack>& stacks, std::size_t shown, std::uint64_t total) {
    if (shown >= stacks.size()) return;
    std::uint64_t rest = 0;
    for (std::size_t i = shown; i < stacks.size(); ++i) rest += stacks[i].weighted_ns;
    line(format("   %5.1f%%  in %zu more stacks", percent(rest, total), stacks.size() - shown));
  }

  void write_frames(std::uint32_t stack, std::size_t indent) {
    const std::string margin(indent, ' ');
    for (const std::string& frame : frame_lines(stack, kReportColumns - indent)) {
      line(margin + frame);
    }
  }

  std::vector<std::string> frame_lines(std::uint32_t stack, std::size_t room) {
    const std::vector<std::uint64_t> frames = profile_.frames(stack);
    std::vector<std::string> lines;
    if (frames.empty()) return {"(unknown)"};
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (i == kFramesShown) {
        lines.push_back(format("... %zu more", frames.size() - i));
        break;
      }
      const Symbol symbol = names_.name(frames[i], profile_.generation(stack));
      const std::string where = symbol.source.empty() ? symbol.module : symbol.source;
      const std::size_t name_room = where.size() + 12 < room ? room - where.size() - 2 : room;
      std::string text = printable(symbol_text(symbol, frames[i]), name_room);
      if (!symbol.name.empty() && name_room != room) text += "  " + where;
      lines.push_back(text);
      if (is_start(symbol.name)) break;
    }
    return lines;
  }

  const Profile& profile_;
  NameSource& names_;
  std::uint32_t top_;
  std::string out_;
  std::map<std::uint32_t, std::uint32_t> readings_;
  std::map<std::string, std::uint32_t> stack_by_text_;
};

}  // namespace

std::string duration_text(std::uint64_t ns) {
  constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  auto value = static_cast<double>(ns);
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return format("%.*f %s", digits, value, kUnits[unit]);
}

std::string report_text(const Profile& profile, NameSource& names, std::uint32_t top) {
  return Report(profile, names, top).text();
}

}  // namespace relock
