#include "tools/report_text.h"

#include <algorithm>
#include <map>

#include "tools/lock_names.h"
#include "tools/lock_wrappers.h"
#include "tools/report_stacks.h"
#include "tools/text_format.h"

namespace relock {

namespace {

constexpr std::size_t kStacksShown = 4;  // of a lock
constexpr std::size_t kOthersShown = 3;  // of a stack
constexpr std::size_t kProcessesShown = 8;
constexpr std::size_t kTableColumns = 55;  // before the name
constexpr std::size_t kModulesShown = 6;

class TextReport {
 public:
  TextReport(const Report& report, const TextOptions& options)
      : report_(report), options_(options), stacks_(report) {}

  std::string text() {
    write_head();
    write_section(false);
    write_section(true);
    write_missing();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += printable(text, kReportColumns) + "\n"; }
  void head(const char* label, const std::string& text) { line(format("  %-10s", label) + text); }

  void write_head() {
    const std::vector<ReportProcess>& processes = report_.processes;
    if (processes.size() == 1) {
      const ReportProcess& process = processes[0];
      line("relock profile of " + process.comm + "[" + std::to_string(process.pid) +
           "], first contention at " + date_text(process.start_unix_ns));
      head("command", process.command.empty() ? process.exe : process.command);
    } else {
      line("relock profile of " + counted(processes.size(), "file"));
      write_processes();
    }
    if (!processes.empty()) write_settings(processes[0]);
    for (const std::string& difference : report_.differences) {
      head("note", "the files differ in " + difference);
    }
    write_filters();
    write_loss();
    write_sampling();
    write_drops();
    write_advice();
  }

  void write_processes() {
    const std::size_t shown = std::min(report_.processes.size(), kProcessesShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const ReportProcess& process = report_.processes[i];
      head(i == 0 ? "processes" : "",
           process.comm + "[" + std::to_string(process.pid) + "], " +
               date_text(process.start_unix_ns) + ", " + duration_text(process.duration_ns) + ": " +
               (process.command.empty() ? process.exe : process.command));
    }
    if (shown < report_.processes.size()) {
      head("", counted(report_.processes.size() - shown, "more file"));
    }
  }

  void write_settings(const ReportProcess& process) {
    head("locks", format("mutex %s, spinlock %s, rwlock %s; waiting %s", process.mutex.c_str(),
                         process.spin.c_str(), process.rwlock.c_str(), process.wait.c_str()));
    const std::string lasted = duration_text(report_.totals.duration_ns);
    const auto killed = static_cast<std::uint64_t>(
        std::count_if(report_.processes.begin(), report_.processes.end(),
                      [](const ReportProcess& p) { return !p.finished; }));
    if (report_.processes.size() > 1) {
      head("recorded",
           lasted + " together" +
               (killed == 0 ? ", until the programs ended"
                            : ", " + count_text(killed) + " of them killed or still running"));
    } else {
      head("recorded",
           lasted + (killed == 0 ? ", until the program ended" : ", then killed or still running"));
    }
  }

  void write_filters() {
    for (const ReportProcess& process : report_.processes) {
      if (!process.filtered) continue;
      head("note", process.comm + "[" + std::to_string(process.pid) + "] entered a seccomp filter" +
                       (process.stacks_refused ? ", which refuses stacks from there on" : ""));
    }
  }

  void write_loss() {
    const ReportTotals& totals = report_.totals;
    std::string text = duration_text(totals.wait_ns) + " waiting for locks";
    if (totals.thread_ns.has_value() && *totals.thread_ns != 0) {
      text +=
          format(": %.1f%% of the threads' time (", percent(totals.wait_ns, *totals.thread_ns)) +
          duration_text(*totals.thread_ns) + ")";
    } else if (totals.duration_ns != 0) {
      text += format(": on average %.2f threads waited",
                     percent(totals.wait_ns, totals.duration_ns) / 100);
    }
    head("lost", text);
  }

  void write_sampling() {
    std::uint64_t samples = 0;
    std::uint64_t offered = report_.dropped[profile::kDropBudget];
    bool wanted = false;
    std::uint32_t rate = 0;
    for (const ReportProcess& process : report_.processes) {
      samples = add_up(samples, process.samples);
      offered = add_up(offered, add_up(process.samples, process.waits_unsampled));
      wanted = wanted || process.stacks_wanted;
      rate = std::max(rate, process.samples_per_s);
    }
    if (!wanted) return head("sampling", "no stacks were asked for");
    head("sampling", count_text(samples) + " of " + count_text(offered) +
                         " waits have stacks (at most " + count_text(rate) +
                         " stacks per second);");
    head("", report_.by == GroupBy::kSite
                 ? "shares of places and stacks are estimates"
                 : "counts and times of locks are exact, shares of stacks are estimates");
  }

  void write_drops() {
    bool any = false;
    for (std::uint32_t i = 0; i < profile::kDropCount; ++i) {
      if (report_.dropped[i] == 0) continue;
      const char* what = drop_text(i);
      head(any ? "" : "dropped",
           count_text(report_.dropped[i]) + " " + (what != nullptr ? what : "other events"));
      any = true;
    }
    if (!any) head("dropped", "nothing");
  }

  // Where to look first: the function that held locks during most of the waiting.
  void write_advice() {
    std::map<std::string, std::uint64_t> held;
    for (const ReportLock& lock : report_.locks) {
      for (const StackShare& blocker : blockers_of(report_, lock)) {
        if (blocker.stack == kNone) continue;
        std::uint64_t& total = held[stacks_.function(blocker.stack)];
        total = add_up(total, blocker.ns);
      }
    }
    const auto most = std::max_element(
        held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == held.end() || most->second == 0) return;
    head("look at", most->first);
    head("", format("it held a lock during %.0f%% of all waiting for locks",
                    percent(most->second, report_.totals.wait_ns)));
  }

  const char* section_title(bool conditions) const {
    if (conditions) {
      return "CONDITION VARIABLES, by total wait (waits for a signal, not for a lock)";
    }
    if (report_.by == GroupBy::kSite) return "PLACES THAT WAIT FOR LOCKS, by total wait";
    if (report_.by == GroupBy::kInit) return "LOCKS BY WHERE THEY WERE MADE, by total wait";
    return "LOCKS, by total wait";
  }

  void write_section(bool conditions) {
    std::vector<ReportLock> locks;
    for (const ReportLock& lock : conditions ? report_.conditions : report_.locks) {
      if (lock.waits + lock.try_failures + lock.under_way != 0) locks.push_back(lock);
    }
    out_ += "\n";
    if (conditions && locks.empty()) return line("No thread waited for a condition variable.");
    if (locks.empty()) return line("No thread waited for a lock.");
    line(section_title(conditions));
    write_table(locks, conditions);
    const std::size_t shown = std::min<std::size_t>(locks.size(), options_.top);
    for (std::size_t i = 0; i < shown; ++i) write_lock(i + 1, locks[i], conditions);
  }

  void write_table(const std::vector<ReportLock>& locks, bool conditions) {
    const ReportTotals& totals = report_.totals;
    const std::uint64_t total = conditions ? totals.condition_wait_ns : totals.wait_ns;
    const bool exact = locks[0].exact;
    const char* what = !exact ? "waiting in" : conditions ? "object" : "lock";
    line(format("%3s %8s %6s %8s %8s %6s %8s  %s", "#", "waited", "share", "mean",
                exact ? "longest" : "", "waits", conditions || !exact ? "" : "acquired", what));
    const std::size_t shown = std::min<std::size_t>(locks.size(), options_.top);
    for (std::size_t i = 0; i < shown; ++i) {
      const ReportLock& lock = locks[i];
      const std::string longest = exact ? duration_text(lock.max_wait_ns) : "";
      const std::string taken = conditions || !exact ? "" : acquisitions_text(lock);
      line(format("%3zu %8s %5.1f%% %8s %8s %6s %8s  ", i + 1, duration_text(lock.wait_ns).c_str(),
                  percent(lock.wait_ns, total),
                  duration_text(lock.waits == 0 ? 0 : lock.wait_ns / lock.waits).c_str(),
                  longest.c_str(), short_count(lock.waits).c_str(), taken.c_str()) +
           table_name(lock));
    }
    if (shown < locks.size()) {
      std::uint64_t rest = 0;
      for (std::size_t i = shown; i < locks.size(); ++i) rest = add_up(rest, locks[i].wait_ns);
      line(format("    %8s %5.1f%% in %zu more (--top %zu shows them)", duration_text(rest).c_str(),
                  percent(rest, total), locks.size() - shown, locks.size()));
    }
    if (!conditions && exact) {
      line("    acquired: as of the lock's last recorded wait, so at least that many");
    }
  }

  static std::string acquisitions_text(const ReportLock& lock) {
    if (lock.acquisitions == 0) return "?";
    return std::string(">=").append(short_count(lock.acquisitions));
  }

  static std::string lock_text(const ReportLock& lock) {
    std::string text = std::string(kind_name(lock.kind)) + " " + lock.name;
    if (!lock.address.empty()) text += " at " + lock.address;
    if (!lock.place.empty()) text += " " + lock.place;
    if (lock.objects > 1) text += ", " + count_text(lock.objects) + " objects";
    return text;
  }

  // The end of a name says more than its beginning.
  static std::string table_name(const ReportLock& lock) {
    std::string name = without_parameters(lock.name);
    if (!lock.exact && !lock.place.empty()) name += " " + lock.place;
    const std::string kind = std::string(kind_name(lock.kind)) + " ";
    return kind + printable_end(name, kReportColumns - kTableColumns - kind.size());
  }

  void write_lock(std::size_t rank, const ReportLock& lock, bool condition) {
    out_ += "\n";
    line(std::to_string(rank) + ". " + lock_text(lock));
    write_facts(lock);
    const std::vector<StackTree> trees = stacks_.trees(lock, options_.blockers_first);
    if (lock.samples == 0) return line("   no stack was taken");
    const std::size_t shown = std::min(trees.size(), kStacksShown);
    for (std::size_t i = 0; i < shown; ++i) write_tree(trees[i], lock, condition);
    std::uint64_t rest = 0;
    for (std::size_t i = shown; i < trees.size(); ++i) rest = add_up(rest, trees[i].ns);
    if (shown < trees.size()) {
      line(format("   %5.1f%%  in %s", percent(rest, lock.wait_ns),
                  counted(trees.size() - shown, "more stack").c_str()));
    }
  }

  void write_facts(const ReportLock& lock) {
    std::string facts;
    const auto add = [&facts](const std::string& fact) {
      facts += (facts.empty() ? "   " : ", ") + fact;
    };
    if (lock.exact && lock.waits != 0) add("half the waits under " + median_text(lock));
    if (lock.timeouts != 0) add(count_text(lock.timeouts) + " timed out");
    if (lock.cancelled != 0) add(count_text(lock.cancelled) + " cancelled");
    if (lock.try_failures != 0) add(counted(lock.try_failures, "failed trylock"));
    if (lock.under_way != 0) add(count_text(lock.under_way) + " still waiting");
    if (!facts.empty()) line(facts);
    if (lock.hold.has_value() && lock.hold->samples != 0) {
      line("   held for " + duration_text(mean_hold_ns(lock)) + " on average, " +
           duration_text(lock.hold->max_ns) + " at most (" + counted(lock.hold->samples, "sample") +
           ")");
    }
    if (lock.hand_offs.has_value() && lock.hand_offs->across != 0) {
      const std::uint64_t all = add_up(lock.hand_offs->within, lock.hand_offs->across);
      line(format("   %.1f%% of ", percent(lock.hand_offs->across, all)) +
           counted(all, "hand-off") + " went to another NUMA node");
    }
  }

  // The histogram's bucket that holds the middle wait.
  static std::string median_text(const ReportLock& lock) {
    std::uint64_t seen = 0;
    for (std::uint32_t bucket = 0; bucket < profile::kHistogramBuckets; ++bucket) {
      seen = add_up(seen, lock.histogram[bucket]);
      if (seen >= lock.waits - lock.waits / 2) return duration_text(std::uint64_t{2} << bucket);
    }
    return duration_text(lock.max_wait_ns);
  }

  void write_tree(const StackTree& tree, const ReportLock& lock, bool condition) {
    const char* blocker_word = condition ? "woken by" : "because of";
    const char* first = !options_.blockers_first ? "waits in"
                        : condition              ? "woken by"
                                                 : "blocked by";
    line(format("   %5.1f%%  %s, %s: %s", percent(tree.ns, lock.wait_ns),
                duration_text(tree.ns).c_str(), counted(tree.samples, "sample").c_str(), first));
    write_frames(tree.stack, 11);
    const std::size_t shown = std::min(tree.others.size(), kOthersShown);
    for (std::size_t i = 0; i < shown; ++i) {
      line(format("           %5.1f%%  %s", percent(tree.others[i].ns, tree.ns),
                  options_.blockers_first ? "while waiting in" : blocker_word));
      write_frames(tree.others[i].stack, 19);
    }
    if (shown == tree.others.size()) return;
    std::uint64_t rest = 0;
    for (std::size_t i = shown; i < tree.others.size(); ++i) rest = add_up(rest, tree.others[i].ns);
    line(format("           %5.1f%%  %s", percent(rest, tree.ns),
                counted(tree.others.size() - shown, "more stack").c_str()));
  }

  void write_frames(std::uint32_t stack, std::size_t indent) {
    const std::string margin(indent, ' ');
    for (const std::string& frame : stacks_.lines(stack, kReportColumns - indent)) {
      line(margin + frame);
    }
  }

  void write_missing() {
    if (!report_.missing_modules.empty() || !report_.modules_without_lines.empty()) out_ += "\n";
    for (const MissingModule& module : report_.missing_modules) {
      const std::string id = module.id.build_id.empty() ? "" : ", build id " + module.id.build_id;
      line("no names from " + module.id.path + ": " + module.reason + id);
    }
    if (!report_.missing_modules.empty()) {
      line("  relock report --binaries DIRECTORY looks for them there");
    }
    const std::vector<std::string>& bare = report_.modules_without_lines;
    if (bare.empty()) return;
    std::string text = "no lines for ";
    for (std::size_t i = 0; i < std::min(bare.size(), kModulesShown); ++i) {
      text += (i == 0 ? "" : ", ") + base_name(bare[i]);
    }
    if (bare.size() > kModulesShown) text += ", ...";
    line(text + ": no debug information");
  }

  const Report& report_;
  TextOptions options_;
  StackText stacks_;
  std::string out_;
};

}  // namespace

std::string report_text(const Report& report, const TextOptions& options) {
  return TextReport(report, options).text();
}

}  // namespace relock
