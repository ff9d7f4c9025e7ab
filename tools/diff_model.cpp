#include "tools/diff_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "tools/report_build.h"
#include "tools/report_stacks.h"

namespace relock {

namespace {

constexpr double kSameRatio = 0.05;     // closer than this is no change
constexpr double kSameOfTotal = 0.001;  // nor is less than this part of all waiting
constexpr double kLikeness = 0.5;       // of the places where two locks are waited for

using Sites = std::map<std::string, std::uint64_t>;  // time waited by function

// A lock as one run knows it.
struct Entry {
  std::string name;
  std::uint32_t kind = 0;
  bool by_wait = false;  // named by where it was waited for
  DiffSide side;
  Sites sites;
};

void add(const ReportLock& lock, DiffSide* side) {
  side->acquisitions = add_up(side->acquisitions, lock.acquisitions);
  side->waits = add_up(side->waits, lock.waits);
  side->wait_ns = add_up(side->wait_ns, lock.wait_ns);
  side->max_wait_ns = std::max(side->max_wait_ns, lock.max_wait_ns);
}

Sites sites_of(const Report& report, const StackText& text, const ReportLock& lock) {
  Sites sites;
  for (const StackShare& share : waiters_of(report, lock)) {
    if (share.stack != kNone) {
      std::uint64_t& total = sites[text.function(share.stack)];
      total = add_up(total, share.ns);
    }
  }
  return sites;
}

// Locks with one name are one. A lock that has no name of its own is called by where it was waited
// for first, which differs from run to run; where it is waited for most differs less.
std::vector<Entry> entries_of(const Report& report, const std::vector<ReportLock>& locks) {
  const StackText text(report);
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> places;
  std::vector<Entry> entries;
  for (const ReportLock& lock : locks) {
    const Sites sites = sites_of(report, text, lock);
    const bool by_wait = lock.named_by == NamedBy::kWait && lock.exact;
    const auto most =
        std::max_element(sites.begin(), sites.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool renamed = by_wait && most != sites.end();
    const std::string name = renamed ? "waited for in " + most->first : lock.name;
    const auto [place, is_new] = places.emplace(std::pair(lock.kind, name), entries.size());
    if (is_new) entries.push_back({name, lock.kind, by_wait, {}, {}});
    Entry& entry = entries[place->second];
    add(lock, &entry.side);
    for (const auto& [site, ns] : sites) entry.sites[site] = add_up(entry.sites[site], ns);
  }
  return entries;
}

// From 0 to 1: how much of the waiting happens in the same functions.
double likeness(const Entry& a, const Entry& b) {
  if (a.kind != b.kind || !a.by_wait || !b.by_wait) return 0;
  double total_a = 0;
  double total_b = 0;
  for (const auto& site : a.sites) total_a += static_cast<double>(site.second);
  for (const auto& site : b.sites) total_b += static_cast<double>(site.second);
  double common = 0;
  for (const auto& [site, ns] : a.sites) {
    const auto other = b.sites.find(site);
    if (other == b.sites.end() || total_a == 0 || total_b == 0) continue;
    common +=
        std::min(static_cast<double>(ns) / total_a, static_cast<double>(other->second) / total_b);
  }
  return common;
}

class Matcher {
 public:
  Matcher(const Report& before, const std::vector<ReportLock>& locks_before, const Report& after,
          const std::vector<ReportLock>& locks_after)
      : before_(entries_of(before, locks_before)), after_(entries_of(after, locks_after)) {
    partner_.assign(before_.size(), kNone);
    taken_.assign(after_.size(), false);
  }

  std::vector<DiffRow> rows() {
    match_names();
    match_alike();
    std::vector<DiffRow> rows;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      DiffRow row;
      row.name = before_[i].name;
      row.kind = before_[i].kind;
      row.before = before_[i].side;
      if (partner_[i] != kNone) row.after = after_[partner_[i]].side;
      rows.push_back(std::move(row));
    }
    for (std::size_t i = 0; i < after_.size(); ++i) {
      if (taken_[i]) continue;
      DiffRow row;
      row.name = after_[i].name;
      row.kind = after_[i].kind;
      row.after = after_[i].side;
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  void match(std::size_t before, std::size_t after) {
    partner_[before] = static_cast<std::uint32_t>(after);
    taken_[after] = true;
  }

  void match_names() {
    std::map<std::pair<std::uint32_t, std::string>, std::size_t> places;
    for (std::size_t i = 0; i < after_.size(); ++i) {
      places.emplace(std::pair(after_[i].kind, after_[i].name), i);
    }
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const auto place = places.find(std::pair(before_[i].kind, before_[i].name));
      if (place != places.end()) match(i, place->second);
    }
  }

  // Locks without a name of their own whose most frequent place changed.
  void match_alike() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (partner_[i] != kNone || !before_[i].by_wait) continue;
      std::size_t best = after_.size();
      double most = kLikeness;
      for (std::size_t j = 0; j < after_.size(); ++j) {
        const double like = taken_[j] ? 0 : likeness(before_[i], after_[j]);
        if (like <= most) continue;
        most = like;
        best = j;
      }
      if (best < after_.size()) match(i, best);
    }
  }

  std::vector<Entry> before_;
  std::vector<Entry> after_;
  std::vector<std::uint32_t> partner_;  // of each in before_; kNone
  std::vector<bool> taken_;             // each in after_
};

std::int64_t rounded(double ns) {
  constexpr double kMost = 9.2e18;
  return static_cast<std::int64_t>(std::llround(std::clamp(ns, -kMost, kMost)));
}

// What the second run would have waited at the first one's rate.
double expected_ns(const DiffRow& row, const DiffRun& before, const DiffRun& after) {
  if (!row.before.has_value()) return 0;
  const auto waited = static_cast<double>(row.before->wait_ns);
  if (row.after.has_value() && row.before->acquisitions != 0 && row.after->acquisitions != 0) {
    return waited / static_cast<double>(row.before->acquisitions) *
           static_cast<double>(row.after->acquisitions);
  }
  if (before.duration_ns == 0) return waited;
  return waited / static_cast<double>(before.duration_ns) * static_cast<double>(after.duration_ns);
}

void judge(const DiffRun& before, const DiffRun& after, DiffRow* row) {
  const double expected = expected_ns(*row, before, after);
  const double waited = row->after.has_value() ? static_cast<double>(row->after->wait_ns) : 0;
  row->change_ns = rounded(waited - expected);
  if (!row->before.has_value()) {
    row->verdict = Verdict::kNew;
  } else if (!row->after.has_value()) {
    row->verdict = Verdict::kGone;
  } else {
    const auto all = static_cast<double>(std::max(before.total.wait_ns, after.total.wait_ns));
    const double change = std::abs(waited - expected);
    const bool same = change <= kSameRatio * expected || change <= kSameOfTotal * all;
    row->verdict = same ? Verdict::kSame : waited < expected ? Verdict::kBetter : Verdict::kWorse;
  }
}

DiffRun run_of(const Report& report) {
  DiffRun run;
  if (!report.processes.empty()) run.process = report.processes[0];
  run.processes = report.processes.size();
  run.duration_ns = report.totals.duration_ns;
  for (const ReportLock& lock : report.locks) add(lock, &run.total);
  return run;
}

std::vector<DiffRow> judged(const Diff& diff, std::vector<DiffRow> rows) {
  for (DiffRow& row : rows) judge(diff.before, diff.after, &row);
  std::stable_sort(rows.begin(), rows.end(), [](const DiffRow& a, const DiffRow& b) {
    return std::abs(a.change_ns) > std::abs(b.change_ns);
  });
  return rows;
}

}  // namespace

Diff diff_reports(const Report& before, const Report& after) {
  Diff diff;
  diff.before = run_of(before);
  diff.after = run_of(after);
  std::vector<ReportProcess> both = before.processes;
  both.insert(both.end(), after.processes.begin(), after.processes.end());
  diff.differences = setting_differences(both);
  diff.total.before = diff.before.total;
  diff.total.after = diff.after.total;
  judge(diff.before, diff.after, &diff.total);
  diff.locks = judged(diff, Matcher(before, before.locks, after, after.locks).rows());
  diff.conditions =
      judged(diff, Matcher(before, before.conditions, after, after.conditions).rows());
  return diff;
}

std::optional<double> wait_per_s(const std::optional<DiffSide>& side, std::uint64_t duration_ns) {
  if (!side.has_value() || duration_ns == 0) return std::nullopt;
  return static_cast<double>(side->wait_ns) / static_cast<double>(duration_ns) * 1e9;
}

std::optional<double> wait_per_acquisition(const std::optional<DiffSide>& side) {
  if (!side.has_value() || side->acquisitions == 0) return std::nullopt;
  return static_cast<double>(side->wait_ns) / static_cast<double>(side->acquisitions);
}

const char* verdict_word(Verdict verdict) {
  constexpr std::array kWords = {"better", "worse", "same", "new", "gone"};
  return kWords[static_cast<std::size_t>(verdict)];
}

}  // namespace relock
