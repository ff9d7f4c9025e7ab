#include "tools/report_build.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tools/demangle.h"
#include "tools/lock_names.h"
#include "tools/lock_wrappers.h"
#include "tools/report_counts.h"

namespace relock {

using namespace profile;

namespace {

constexpr char kNoStack[] = "(no stack was taken)";

class Builder {
 public:
  Builder(NameSource& names, GroupBy by) : names_(names) { report_.by = by; }

  void add(const NamedProfile& named);
  Report finish();

 private:
  struct Origin {
    std::uint64_t address;
    std::uint32_t pid;
  };
  using FrameKey =
      std::tuple<std::uint32_t, std::uint64_t, std::string, std::string, std::uint32_t, bool>;
  using ReadingKey = std::tuple<std::uint32_t, std::string, std::string, std::uint32_t, bool>;

  std::uint32_t module_number(const ModuleRow& row);
  std::uint32_t frame_number(Frame frame);
  void add_frames(std::uint64_t address, std::uint32_t generation,
                  std::vector<std::uint32_t>* stack);
  std::uint32_t stack_number(std::uint32_t stack);
  std::vector<PairShare> shares(const LockProfile& row);
  ReportLock& group(const std::string& key, std::uint32_t kind, const LockName& name,
                    std::uint64_t address);
  void add_lock(const LockNames& names, std::size_t row);
  void add_to_sites(const ReportLock& lock);
  LockName site_name(std::uint32_t stack) const;
  void tell_apart(std::vector<ReportLock>* locks) const;
  void number_readings();
  void note_missing_files();
  void sum_up();

  NameSource& names_;
  Report report_;
  const Profile* profile_ = nullptr;
  std::map<ModuleId, std::uint32_t> modules_;
  std::map<FrameKey, std::uint32_t> frames_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> stacks_;
  std::map<std::uint32_t, std::uint32_t> stacks_of_profile_;  // its number to the report's
  std::map<std::string, std::size_t> group_numbers_;
  std::vector<ReportLock> groups_;
  std::vector<Origin> origins_;  // of each group's first object, by the group's id
};

std::uint32_t Builder::module_number(const ModuleRow& row) {
  const ModuleId id = module_id(row);
  const auto next = static_cast<std::uint32_t>(report_.modules.size());
  const auto [known, is_new] = modules_.emplace(id, next);
  if (is_new) {
    ReportModule module;
    module.id = {valid_utf8(id.path), id.build_id};
    module.start = row.start;
    module.end = row.end;
    module.load_bias = row.load_bias;
    module.is_program = id.path == profile_->header().exe;
    report_.modules.push_back(std::move(module));
  }
  return known->second;
}

std::uint32_t Builder::frame_number(Frame frame) {
  frame.name = valid_utf8(frame.name);
  frame.symbol = valid_utf8(frame.symbol);
  frame.file = valid_utf8(frame.file);
  const auto next = static_cast<std::uint32_t>(report_.frames.size());
  const FrameKey key(frame.module, frame.address, frame.name, frame.file, frame.line,
                     frame.inlined);
  const auto [known, is_new] = frames_.emplace(key, next);
  if (is_new) report_.frames.push_back(std::move(frame));
  return known->second;
}

void Builder::add_frames(std::uint64_t address, std::uint32_t generation,
                         std::vector<std::uint32_t>* stack) {
  Frame frame;
  const ModuleRow* row = module_at(*profile_, address, generation);
  frame.address = address;
  if (row == nullptr) {
    frame.name = hex(address);
    stack->push_back(frame_number(std::move(frame)));
    return;
  }
  frame.module = module_number(*row);
  frame.address = address - row->load_bias;
  const ModuleId id = module_id(*row);
  const std::vector<CodeName> code = names_.code(id, frame.address);
  for (const CodeName& function : code) {
    frame.name = function.name.empty() ? "(unnamed function)" : function.name;
    frame.symbol = function.symbol;
    frame.file = function.file;
    frame.line = function.line;
    frame.start_line = function.start_line;
    frame.inlined = function.inlined;
    frame.named = true;
    report_.modules[frame.module].has_names = true;
    stack->push_back(frame_number(frame));
  }
  if (!code.empty()) return;
  frame.name = base_name(id.path) + "+" + hex(frame.address);
  stack->push_back(frame_number(std::move(frame)));
}

std::uint32_t Builder::stack_number(std::uint32_t stack) {
  if (stack == 0) return kNone;
  const auto known = stacks_of_profile_.find(stack);
  if (known != stacks_of_profile_.end()) return known->second;
  std::vector<std::uint32_t> frames;
  const std::uint32_t generation = profile_->generation(stack);
  for (const std::uint64_t address : profile_->frames(stack)) {
    add_frames(address, generation, &frames);
  }
  std::uint32_t number = kNone;
  if (!frames.empty()) {
    const auto next = static_cast<std::uint32_t>(report_.stacks.size());
    const auto [place, is_new] = stacks_.emplace(frames, next);
    if (is_new) report_.stacks.push_back(std::move(frames));
    number = place->second;
  }
  return stacks_of_profile_[stack] = number;
}

std::vector<PairShare> Builder::shares(const LockProfile& lock) {
  std::vector<PairShare> pairs;
  std::vector<std::uint64_t> ns;
  std::vector<std::uint64_t> waits;
  for (const StackPair& pair : lock.pairs) {
    pairs.push_back({stack_number(pair.waiter), stack_number(pair.blocker), 0, 0, pair.samples});
    ns.push_back(pair.weighted_ns);
    waits.push_back(pair.weighted_samples);
  }
  if (pairs.empty()) {
    if (lock.row.contended == 0) return pairs;
    pairs.emplace_back();
    ns.push_back(1);
    waits.push_back(1);
  }
  share_out(lock.row.wait_ns, &ns);
  share_out(lock.row.contended, &waits);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].ns = ns[i];
    pairs[i].waits = waits[i];
  }
  return pairs;
}

ReportLock& Builder::group(const std::string& key, std::uint32_t kind, const LockName& name,
                           std::uint64_t address) {
  const auto [place, is_new] = group_numbers_.emplace(key, groups_.size());
  if (!is_new) return groups_[place->second];
  ReportLock lock;
  lock.id = static_cast<std::uint32_t>(groups_.size());
  lock.name = valid_utf8(name.text);
  lock.place = valid_utf8(name.place);
  lock.named_by = name.named_by;
  lock.kind = kind;
  lock.exact = report_.by != GroupBy::kSite;
  groups_.push_back(std::move(lock));
  origins_.push_back({address, report_.processes.back().pid});
  return groups_.back();
}

// Objects on the heap are the process's own, whatever their address; those in a module's data go
// by their name.
void Builder::add_lock(const LockNames& names, std::size_t row) {
  const LockProfile& lock = profile_->locks()[row];
  ReportLock counts;
  fill_counts(lock.row, &counts);
  counts.kind = key_kind(lock.row.key);
  counts.under_way = lock.under_way;
  counts.pairs = shares(lock);
  for (const PairShare& pair : counts.pairs) counts.samples = add_up(counts.samples, pair.samples);
  if (report_.by == GroupBy::kSite) return add_to_sites(counts);
  const bool by_init = report_.by == GroupBy::kInit;
  const LockName name = by_init ? names.init_name(lock.row) : names.object_name(lock.row);
  std::string key = kind_name(counts.kind);
  if (by_init) {
    key += "\n" + name.text + "\n" + name.place;
  } else if (!name.identity.empty()) {
    key += "\n" + name.identity;
  } else {
    key += "\n" + std::to_string(report_.processes.size()) + "\n" + std::to_string(row);
  }
  add_counts(counts, &group(key, counts.kind, name, key_address(lock.row.key)));
}

LockName Builder::site_name(std::uint32_t stack) const {
  if (stack == kNone) return {kNoStack, "", "", NamedBy::kWait};
  const std::vector<std::uint32_t>& frames = report_.stacks[stack];
  const Frame* site = &report_.frames[frames[0]];
  for (const std::uint32_t number : frames) {
    const Frame& frame = report_.frames[number];
    if (!frame.named || is_lock_wrapper(frame.name)) continue;
    site = &frame;
    break;
  }
  return {site->name, short_place(site->file, site->line), "", NamedBy::kWait};
}

void Builder::add_to_sites(const ReportLock& lock) {
  std::set<std::string> touched;
  for (const PairShare& pair : lock.pairs) {
    const LockName name = site_name(pair.waiter);
    const std::string key =
        std::string(kind_name(lock.kind)) + "\n" + name.text + "\n" + name.place;
    ReportLock& site = group(key, lock.kind, name, 0);
    site.wait_ns = add_up(site.wait_ns, pair.ns);
    site.waits = add_up(site.waits, pair.waits);
    site.samples = add_up(site.samples, pair.samples);
    site.pairs.push_back(pair);
    if (touched.insert(key).second) site.objects = add_up(site.objects, lock.objects);
  }
}

void Builder::add(const NamedProfile& named) {
  profile_ = &named.profile;
  stacks_of_profile_.clear();
  report_.processes.push_back(process_of(named));
  for (std::size_t i = 0; i < report_.dropped.size(); ++i) {
    report_.dropped[i] = add_up(report_.dropped[i], named.profile.header().drops[i]);
  }
  const LockNames names(named.profile, names_);
  for (std::size_t i = 0; i < named.profile.locks().size(); ++i) add_lock(names, i);
}

// Two locks may be made at one place; their addresses tell them apart.
void Builder::tell_apart(std::vector<ReportLock>* locks) const {
  std::map<std::pair<std::uint32_t, std::string>, int> seen;
  for (const ReportLock& lock : *locks) ++seen[{lock.kind, lock.name + lock.place}];
  for (ReportLock& lock : *locks) {
    if (seen[{lock.kind, lock.name + lock.place}] > 1) {
      const Origin& origin = origins_[lock.id];
      lock.address = hex(origin.address);
      if (report_.processes.size() > 1) lock.address += " of " + std::to_string(origin.pid);
    }
  }
}

void Builder::number_readings() {
  std::map<ReadingKey, std::uint32_t> frame_readings;
  std::vector<std::uint32_t> reading_of_frame;
  for (const Frame& frame : report_.frames) {
    const auto next = static_cast<std::uint32_t>(frame_readings.size());
    const ReadingKey key(frame.module, frame.name, frame.file, frame.line, frame.inlined);
    reading_of_frame.push_back(frame_readings.emplace(key, next).first->second);
  }
  std::map<std::vector<std::uint32_t>, std::uint32_t> stack_readings;
  for (const std::vector<std::uint32_t>& stack : report_.stacks) {
    std::vector<std::uint32_t> reading;
    for (const std::uint32_t frame : stack) reading.push_back(reading_of_frame[frame]);
    const auto number = static_cast<std::uint32_t>(report_.reads_as.size());
    report_.reads_as.push_back(stack_readings.emplace(reading, number).first->second);
  }
}

void Builder::sum_up() {
  ReportTotals& totals = report_.totals;
  bool thread_time_known = !report_.processes.empty();
  std::uint64_t thread_ns = 0;
  for (const ReportProcess& process : report_.processes) {
    totals.duration_ns = add_up(totals.duration_ns, process.duration_ns);
    thread_time_known = thread_time_known && process.thread_ns.has_value();
    thread_ns = add_up(thread_ns, process.thread_ns.value_or(0));
  }
  if (thread_time_known) totals.thread_ns = thread_ns;
  for (const ReportLock& lock : report_.locks) {
    totals.wait_ns = add_up(totals.wait_ns, lock.wait_ns);
    totals.waits = add_up(totals.waits, lock.waits);
    totals.acquisitions = add_up(totals.acquisitions, lock.acquisitions);
  }
  for (const ReportLock& lock : report_.conditions) {
    totals.condition_wait_ns = add_up(totals.condition_wait_ns, lock.wait_ns);
    totals.condition_waits = add_up(totals.condition_waits, lock.waits);
  }
  totals.locks = report_.locks.size();
  totals.conditions = report_.conditions.size();
}

Report Builder::finish() {
  number_readings();
  report_.differences = setting_differences(report_.processes);
  for (ReportLock& lock : groups_) {
    std::stable_sort(lock.pairs.begin(), lock.pairs.end(),
                     [](const PairShare& a, const PairShare& b) { return a.ns > b.ns; });
    (lock.kind == kCondKind ? report_.conditions : report_.locks).push_back(std::move(lock));
  }
  for (std::vector<ReportLock>* locks : {&report_.locks, &report_.conditions}) {
    std::stable_sort(locks->begin(), locks->end(), [](const ReportLock& a, const ReportLock& b) {
      return std::tuple(a.wait_ns, a.waits, a.try_failures) >
             std::tuple(b.wait_ns, b.waits, b.try_failures);
    });
    tell_apart(locks);
  }
  sum_up();
  note_missing_files();
  return std::move(report_);
}

void Builder::note_missing_files() {
  report_.missing_modules = names_.missing();
  for (const auto& [id, number] : modules_) {
    const ReportModule& module = report_.modules[number];
    const bool is_missing =
        std::any_of(report_.missing_modules.begin(), report_.missing_modules.end(),
                    [&id = id](const MissingModule& missing) { return missing.id == id; });
    const bool has_file = id.path.find('/') != std::string::npos;
    if (has_file && !is_missing && !names_.has_lines(id)) {
      report_.modules_without_lines.push_back(module.id.path);
    }
  }
  for (MissingModule& missing : report_.missing_modules) {
    missing.id.path = valid_utf8(missing.id.path);
  }
}

}  // namespace

Report build_report(const std::vector<NamedProfile>& profiles, NameSource& names, GroupBy by) {
  Builder builder(names, by);
  for (const NamedProfile& profile : profiles) builder.add(profile);
  return builder.finish();
}

}  // namespace relock
