#include "tools/report_counts.h"

#include <algorithm>
#include <map>

#include "tools/demangle.h"

namespace relock {

using namespace profile;

void share_out(std::uint64_t whole, std::vector<std::uint64_t>* parts) {
  std::uint64_t total = 0;
  for (const std::uint64_t part : *parts) total = add_up(total, part);
  if (parts->empty()) return;
  if (total == 0) std::fill(parts->begin(), parts->end(), 1), total = parts->size();
  const auto largest = std::max_element(parts->begin(), parts->end()) - parts->begin();
  std::uint64_t given = 0;
  for (std::uint64_t& part : *parts) {
    part = std::min(scaled(part, whole, total), whole - given);
    given += part;
  }
  (*parts)[static_cast<std::size_t>(largest)] += whole - given;
}

void fill_counts(const LockRow& row, ReportLock* lock) {
  lock->objects = row.objects;
  lock->acquisitions = add_up(row.acquisitions, row.acquisitions_before);
  lock->waits = row.contended;
  lock->wait_ns = row.wait_ns;
  lock->max_wait_ns = row.max_wait_ns;
  lock->timeouts = row.timeouts;
  lock->cancelled = row.cancelled;
  lock->try_failures = row.try_failures;
  std::copy(std::begin(row.histogram), std::end(row.histogram), lock->histogram.begin());
  if (key_kind(row.key) == kCondKind) return;
  lock->hand_offs = {row.handoffs_within, row.handoffs_across};
  lock->hold.emplace();
  lock->hold->samples = row.hold_samples;
  lock->hold->total_ns = row.hold_ns;
  lock->hold->max_ns = row.max_hold_ns;
  lock->hold->stands_for = row.hold_weighted;
  lock->hold->stands_for_ns = row.hold_weighted_ns;
  std::copy(std::begin(row.hold_histogram), std::end(row.hold_histogram),
            lock->hold->histogram.begin());
}

namespace {

void add_histogram(const Histogram& from, Histogram* to) {
  for (std::size_t i = 0; i < to->size(); ++i) (*to)[i] = add_up((*to)[i], from[i]);
}

void add_hold(const ReportLock& from, ReportLock* to) {
  if (from.hand_offs.has_value()) {
    const HandOffs known = to->hand_offs.value_or(HandOffs{});
    to->hand_offs = {add_up(known.within, from.hand_offs->within),
                     add_up(known.across, from.hand_offs->across)};
  }
  if (!from.hold.has_value()) return;
  if (!to->hold.has_value()) to->hold.emplace();
  HoldTimes& hold = *to->hold;
  hold.samples = add_up(hold.samples, from.hold->samples);
  hold.total_ns = add_up(hold.total_ns, from.hold->total_ns);
  hold.max_ns = std::max(hold.max_ns, from.hold->max_ns);
  hold.stands_for = add_up(hold.stands_for, from.hold->stands_for);
  hold.stands_for_ns = add_up(hold.stands_for_ns, from.hold->stands_for_ns);
  add_histogram(from.hold->histogram, &hold.histogram);
}

}  // namespace

void add_counts(const ReportLock& from, ReportLock* to) {
  to->objects = add_up(to->objects, from.objects);
  to->acquisitions = add_up(to->acquisitions, from.acquisitions);
  to->waits = add_up(to->waits, from.waits);
  to->wait_ns = add_up(to->wait_ns, from.wait_ns);
  to->max_wait_ns = std::max(to->max_wait_ns, from.max_wait_ns);
  to->timeouts = add_up(to->timeouts, from.timeouts);
  to->cancelled = add_up(to->cancelled, from.cancelled);
  to->try_failures = add_up(to->try_failures, from.try_failures);
  to->under_way = add_up(to->under_way, from.under_way);
  to->samples = add_up(to->samples, from.samples);
  add_histogram(from.histogram, &to->histogram);
  add_hold(from, to);
  to->pairs.insert(to->pairs.end(), from.pairs.begin(), from.pairs.end());
}

ReportProcess process_of(const NamedProfile& named) {
  const Header& header = named.profile.header();
  ReportProcess process;
  process.file = valid_utf8(named.file);
  process.comm = valid_utf8(header.comm);
  process.exe = valid_utf8(header.exe);
  process.command = valid_utf8(header.command_line);
  process.pid = header.pid;
  process.start_unix_ns = header.start_realtime_ns;
  if (header.last_monotonic_ns > header.start_monotonic_ns) {
    process.duration_ns = header.last_monotonic_ns - header.start_monotonic_ns;
  }
  process.finished = named.profile.finished();
  process.mutex = valid_utf8(header.mutex_lock);
  process.spin = valid_utf8(header.spin_lock);
  process.rwlock = valid_utf8(header.rwlock);
  process.wait = valid_utf8(header.wait);
  process.samples_per_s = header.samples_per_s;
  process.stacks_wanted = header.stacks_wanted != 0;
  process.samples = header.samples;
  process.waits_unsampled = header.waits_unsampled;
  process.stacks_taken = header.stacks_taken;
  process.filtered = (header.flags & kFlagFiltered) != 0;
  process.stacks_refused = (header.flags & kFlagStacksRefused) != 0;
  process.waiting_threads = header.waiting_threads;
  if (header.thread_ns != 0) process.thread_ns = header.thread_ns;
  if (header.threads_most != 0) process.threads = header.threads_most;
  return process;
}

// Two files may have been recorded in different ways; their sum then mixes what is not alike.
std::vector<std::string> setting_differences(const std::vector<ReportProcess>& processes) {
  std::vector<std::string> differences;
  struct Setting {
    const char* what;
    std::string (*text)(const ReportProcess&);
  };
  const Setting settings[] = {
      {"mutex lock", [](const ReportProcess& p) { return p.mutex; }},
      {"spinlock", [](const ReportProcess& p) { return p.spin; }},
      {"rwlock", [](const ReportProcess& p) { return p.rwlock; }},
      {"waiting", [](const ReportProcess& p) { return p.wait; }},
      {"stacks",
       [](const ReportProcess& p) { return std::string(p.stacks_wanted ? "on" : "off"); }},
      {"stacks per second", [](const ReportProcess& p) { return std::to_string(p.samples_per_s); }},
  };
  for (const Setting& setting : settings) {
    std::map<std::string, std::string> files;
    for (const ReportProcess& process : processes) {
      files.emplace(setting.text(process), process.comm + "[" + std::to_string(process.pid) + "]");
    }
    if (files.size() < 2) continue;
    std::string text = std::string(setting.what) + ":";
    for (const auto& [value, file] : files) {
      text += (text.back() == ':' ? " " : ", ") + value + " in " + file;
    }
    differences.push_back(text);
  }
  return differences;
}

}  // namespace relock
