#include "tools/advise.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tools/message.h"
#include "tools/report_cmd.h"
#include "tools/text_format.h"

namespace relock {

namespace {

constexpr std::size_t kShown = 20;  // locks that are spoken of; the rest is counted
constexpr std::size_t kColumns = 98;

const char* kind_word(std::uint32_t kind) {
  return kind == 0 ? "mutex" : kind == 1 ? "spinlock" : "rwlock";
}

// Comment lines of at most 100 columns.
std::string comment(const std::string& text, const char* indent) {
  std::string result;
  std::string line = indent;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(at, end - at);
    if (line.size() > std::strlen(indent) && line.size() + 1 + word.size() > kColumns) {
      result += "#" + line + "\n";
      line = indent;
    }
    line += " " + word;
    at = end + 1;
  }
  return result + "#" + line + "\n";
}

std::string heading(const std::string& file, const RunFacts& run) {
  std::string text = "relock advise " + printable(file, 200) + ": mutex " + run.mutex +
                     ", spinlock " + run.spin + ", rwlock " + run.rwlock + ", wait " + run.wait;
  text += format("; %u CPU%s, %u NUMA node%s", run.cpus, run.cpus == 1 ? "" : "s", run.nodes,
                 run.nodes == 1 ? "" : "s");
  if (run.threads != 0) text += format(", at most %u threads", run.threads);
  return comment(text, "");
}

std::string numbers(const LockFacts& lock, const RunFacts& run) {
  std::string text = kind_word(lock.kind);
  text += " " + printable(lock.name, 120) + ": " + counted(lock.waits, "wait");
  if (lock.acquisitions > lock.waits) {
    text += " in " + short_count(lock.acquisitions) + " acquisitions";
  }
  text += ", " + duration_text(lock.wait_ns) + " in all";
  if (run.thread_ns != 0) {
    text += format(" (%.1f %% of the threads' time)", percent(lock.wait_ns, run.thread_ns));
  }
  if (lock.objects > 1) text += ", " + counted(lock.objects, "object");
  return text;
}

std::string rule_text(const LockFacts& lock, const LockAdvice& advice) {
  std::string text = lock.pattern + " " + advice.lock;
  if (!advice.wait.empty()) text += " wait=" + advice.wait;
  if (lock.by_address)
    text += std::string(" kind=") + (lock.kind == 1 ? "spin" : kind_word(lock.kind));
  return text + "\n";
}

RunFacts run_facts(const profile::Header& header, std::uint32_t cpus) {
  RunFacts run;
  run.mutex = header.mutex_lock;
  run.spin = header.spin_lock;
  run.rwlock = header.rwlock;
  run.wait = header.wait;
  run.cpus = cpus;
  run.nodes = header.nodes == 0 ? 1 : header.nodes;
  run.threads = header.threads_most;
  run.thread_ns = header.thread_ns;
  run.duration_ns = header.last_monotonic_ns - header.start_monotonic_ns;
  return run;
}

int read_cpus(const std::string& text, std::uint32_t* cpus) {
  if (text.empty()) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    *cpus = online < 1 ? 1 : static_cast<std::uint32_t>(online);
    return kOk;
  }
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 10);
  if (*end != '\0' || text[0] == '-' || value < 1 || value > 65536) {
    return fail(kUsage, "--cpus " + printable(text, 80), "accepted: 1 to 65536");
  }
  *cpus = static_cast<std::uint32_t>(value);
  return kOk;
}

}  // namespace

std::string advice_text(const std::string& file, const std::vector<LockFacts>& locks,
                        const RunFacts& run, int* rules) {
  *rules = 0;
  std::string text = heading(file, run);
  std::size_t shown = 0;
  std::size_t others = 0;
  for (const LockFacts& lock : locks) {
    const LockAdvice advice = judge_lock(lock, run);
    if (!advice.gains() && shown >= kShown) {
      ++others;
      continue;
    }
    ++shown;
    text += "\n" + comment(std::to_string(shown) + ". " + numbers(lock, run), "");
    if (!advice.gains()) {
      text += comment("stays: " + advice.why + ".", "   ");
      continue;
    }
    ++*rules;
    text += comment((advice.wait.empty() ? advice.lock : advice.lock + ", wait=" + advice.wait) +
                        " instead of " +
                        (lock.kind == 0   ? run.mutex
                         : lock.kind == 1 ? run.spin
                                          : run.rwlock) +
                        ": " + advice.why + ".",
                    "   ");
    text += rule_text(lock, advice);
  }
  text += "\n";
  if (others != 0) text += comment(counted(others, "more lock") + " would not gain.", "");
  if (locks.empty()) text += comment("No lock was waited for.", "");
  text +=
      *rules == 0
          ? comment("No lock would gain from another backend, as far as this profile tells.", "")
          : comment(
                "Whether it helps, a run tells: relock compare, or relock record again with "
                "RELOCK_RULES and relock diff.",
                "");
  return text;
}

int advise_command(const AdviseOptions& options) {
  std::uint32_t cpus = 1;
  if (const int status = read_cpus(options.cpus, &cpus); status != kOk) return status;
  if (const int status = check_output(options.rules, {options.file}); status != kOk) return status;
  std::vector<NamedProfile> profiles;
  if (const int status = load_profiles({options.file}, &profiles); status != kOk) return status;
  ModuleFiles files;
  if (const int status = find_binaries(options.binaries, &files); status != kOk) return status;
  Symbolizer symbolizer(files);
  const Profile& profile = profiles[0].profile;
  const std::vector<LockFacts> locks = collect_facts(profile, symbolizer);
  int rules = 0;
  const std::string text =
      advice_text(options.file, locks, run_facts(profile.header(), cpus), &rules);
  if (const int status = write_result(text, ""); status != kOk) return status;
  if (options.rules.empty()) return kOk;
  if (const int status = write_result(text, options.rules); status != kOk) return status;
  fprintf(stderr, "relock: %s in %s%s\n",
          counted(static_cast<std::uint64_t>(rules), "rule").c_str(), options.rules.c_str(),
          rules == 0 ? ": it changes nothing" : "; set RELOCK_RULES to it, or run --rules");
  return kOk;
}

}  // namespace relock
