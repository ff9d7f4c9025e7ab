#include "tools/top_model.h"

#include <algorithm>

#include "tools/text_format.h"

namespace relock {

using namespace profile;

namespace {

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

// A lock's row may be another lock's later, in a profile that somebody else has made, too.
TopCounters difference(const TopCounters& now, const TopCounters& before) {
  return {minus(now.wait_ns, before.wait_ns), minus(now.waits, before.waits),
          minus(now.acquisitions, before.acquisitions)};
}

TopCounters counters_of(const LockProfile& lock, std::uint64_t now_ns) {
  TopCounters counters{lock.row.wait_ns, lock.row.contended,
                       lock.row.acquisitions + lock.row.acquisitions_before};
  for (const std::uint64_t begin_ns : lock.waiting_since_ns) {
    counters.wait_ns += minus(now_ns, begin_ns);
  }
  return counters;
}

std::uint64_t weight_before(const std::vector<StackPair>& pairs, const StackPair& wanted) {
  for (const StackPair& pair : pairs) {
    if (pair.waiter == wanted.waiter && pair.blocker == wanted.blocker) return pair.weighted_ns;
  }
  return 0;
}

// Shares of what the pairs have gained, the largest first; empty when they have gained nothing.
std::vector<TopPair> gains(const std::vector<StackPair>& now,
                           const std::vector<StackPair>& before) {
  std::vector<TopPair> pairs;
  double total = 0;
  for (const StackPair& pair : now) {
    const auto gained = static_cast<double>(minus(pair.weighted_ns, weight_before(before, pair)));
    total += gained;
    if (gained > 0) pairs.push_back({pair.waiter, pair.blocker, gained});
  }
  for (TopPair& pair : pairs) pair.share /= total;
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const TopPair& a, const TopPair& b) { return a.share > b.share; });
  return pairs;
}

}  // namespace

void TopModel::restart() {
  before_.clear();
  current_.clear();
  before_ns_ = 0;
  time_ns_ = 0;
}

std::string TopModel::read(const std::string& file, std::uint64_t now_ns) {
  Profile fresh;
  std::string wrong = fresh.load(file);
  if (!wrong.empty()) return wrong;
  const Header& header = fresh.header();
  // Another program of the same process writes another profile: nothing to compare with.
  if (header.start_monotonic_ns != profile_.header().start_monotonic_ns) {
    restart();
    lock_names_.clear();
  }
  profile_ = std::move(fresh);
  const bool first = time_ns_ == 0;
  if (!first) {
    before_ = std::move(current_);
    before_ns_ = time_ns_;
  }
  time_ns_ = std::max<std::uint64_t>(now_ns != 0 ? now_ns : profile_.header().last_monotonic_ns, 1);
  since_start_ns_ = minus(time_ns_, profile_.header().start_monotonic_ns);
  interval_ns_ = first ? since_start_ns_ : minus(time_ns_, before_ns_);
  compare(time_ns_);
  return "";
}

void TopModel::compare(std::uint64_t now_ns) {
  locks_.clear();
  rows_.clear();
  current_.clear();
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> copies;
  for (const LockProfile& lock : profile_.locks()) {
    const LockRow& row = lock.row;
    const TopLockId id{row.key, row.init_site, copies[{row.key, row.init_site}]++};
    const TopCounters total = counters_of(lock, now_ns);
    const auto known = before_.find(id);
    const TopCounters before = known == before_.end() ? TopCounters{} : known->second.counters;
    locks_.push_back({id, key_kind(row.key), total, difference(total, before), row.max_wait_ns,
                      lock.waiting_since_ns.size()});
    current_[id] = {total, lock.pairs};
    rows_[id] = &row;
  }
}

std::string TopModel::name(const TopLock& lock) {
  const LockRow& row = *rows_[lock.id];
  Name& known = lock_names_[lock.id];
  if (known.text.empty() || known.first_stack != row.first_stack) {
    const LockName name = LockNames(profile_, names_).object_name(row);
    known.text = std::string(kind_name(lock.kind)) + " " + name.text;
    if (!name.place.empty()) known.text += " " + name.place;
    known.first_stack = row.first_stack;
  }
  return row.objects > 1 ? known.text + ", " + count_text(row.objects) + " objects" : known.text;
}

std::vector<TopPair> TopModel::pairs(const TopLock& lock) const {
  const auto now = current_.find(lock.id);
  if (now == current_.end()) return {};
  const auto before = before_.find(lock.id);
  if (before != before_.end()) {
    std::vector<TopPair> fresh = gains(now->second.pairs, before->second.pairs);
    if (!fresh.empty()) return fresh;
  }
  return gains(now->second.pairs, {});
}

void TopModel::add_functions(std::uint64_t address, std::uint32_t generation,
                             std::vector<std::string>* lines) {
  const ModuleRow* module = module_at(profile_, address, generation);
  if (module == nullptr) return lines->push_back(hex(address));
  const ModuleId id = module_id(*module);
  const std::uint64_t in_file = address - module->load_bias;
  const std::vector<CodeName> code = names_.code(id, in_file);
  if (code.empty()) return lines->push_back(base_name(id.path) + "+" + hex(in_file));
  for (const CodeName& function : code) {
    const std::string place = short_place(function.file, function.line);
    lines->push_back(function.name + "  " + (place.empty() ? base_name(id.path) : place));
  }
}

std::vector<std::string> TopModel::stack(std::uint32_t stack) {
  std::vector<std::string> lines;
  for (const std::uint64_t address : profile_.frames(stack)) {
    add_functions(address, profile_.generation(stack), &lines);
  }
  if (lines.empty()) lines.emplace_back("(unknown)");
  return lines;
}

}  // namespace relock
