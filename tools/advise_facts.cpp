// From a profile's rows to the locks that one rule would mean.
#include <algorithm>
#include <map>

#include "tools/advise.h"
#include "tools/lock_names.h"

namespace relock {

using namespace profile;

namespace {

struct Place {
  std::string name;     // for people
  std::string pattern;  // "symbol server:g_lock"
};

// A word of a rules file. False: its grammar has no way to write it.
bool as_word(const std::string& text, std::string* word) {
  for (const char c : text) {
    if (c == '"' || static_cast<unsigned char>(c) < 0x20) return false;
  }
  const bool plain = text.find_first_of(" \t#") == std::string::npos;
  *word = plain ? text : "\"" + text + "\"";
  return true;
}

// MODULE:SYMBOL, or MODULE:+0xADDRESS where the symbol is not known; `behind` goes to the address:
// a rule names the address that a call returns to.
bool pattern_of(const ModuleRow& module, const DataName& symbol, std::uint64_t in_file, bool exact,
                std::string* pattern) {
  std::string text = base_name(module.path) + ":";
  if (symbol.symbol.empty() || symbol.symbol.find(':') != std::string::npos) {
    text += "+" + hex(in_file);
  } else {
    text += symbol.symbol;
    if (exact && symbol.offset != 0) text += "+" + hex(symbol.offset);
  }
  return as_word(text, pattern);
}

// The end of the bucket that holds the middle one; 0 of nothing.
std::uint64_t median_of(const Histogram& histogram) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : histogram) all += count;
  std::uint64_t seen = 0;
  for (std::uint32_t i = 0; i < kHistogramBuckets; ++i) {
    seen += histogram[i];
    if (seen * 2 >= all && all != 0) return std::uint64_t{2} << i;
  }
  return 0;
}

class Collector {
 public:
  Collector(const Profile& profile, NameSource& names) : profile_(profile), names_(names) {}

  void add(const LockRow& row) {
    if (key_kind(row.key) >= kCondKind || row.contended == 0) return;
    Place place;
    const bool by_address = at_symbol(row, &place);
    if (!by_address && !at_init(row, &place)) at_site(row, &place);
    if (place.name.empty()) place.name = "at " + hex(key_address(row.key));
    // Readers and writers of one lock have a row each, and one rule.
    const std::uint32_t kind = std::min<std::uint32_t>(key_kind(row.key), 2);
    const std::string key = place.pattern.empty() ? place.name : place.pattern;
    LockFacts& facts = facts_[std::to_string(kind) + key];
    facts.name = place.name;
    facts.pattern = place.pattern;
    facts.kind = kind;
    facts.by_address = by_address;
    add_counts(row, &facts);
  }

  std::vector<LockFacts> finish() {
    std::vector<LockFacts> result;
    for (auto& [key, facts] : facts_) {
      facts.hold_ns = median_of(hold_histograms_[&facts]);
      result.push_back(facts);
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const LockFacts& a, const LockFacts& b) { return a.wait_ns > b.wait_ns; });
    return result;
  }

 private:
  bool at_symbol(const LockRow& row, Place* place) {
    const std::uint64_t address = key_address(row.key);
    const ModuleRow* module = module_at(profile_, address, 0);
    if (module == nullptr) return false;
    const std::uint64_t in_file = address - module->load_bias;
    const DataName symbol = names_.data(module_id(*module), in_file);
    std::string pattern;
    if (!pattern_of(*module, symbol, in_file, true, &pattern)) return false;
    place->pattern = "symbol " + pattern;
    place->name = symbol.name.empty() ? pattern : symbol.name;
    if (symbol.offset != 0 && !symbol.name.empty()) place->name += "+" + hex(symbol.offset);
    return true;
  }

  // `returns`: the address that the call returns to.
  bool at_code(const char* subject, const char* verb, std::uint64_t returns,
               std::uint32_t generation, Place* place) {
    const ModuleRow* module = module_at(profile_, returns - 1, generation);
    if (module == nullptr) return false;
    const std::uint64_t in_file = returns - module->load_bias;
    const DataName symbol = names_.data(module_id(*module), in_file - 1);
    std::string pattern;
    if (!pattern_of(*module, symbol, in_file, false, &pattern)) return false;
    place->pattern = std::string(subject) + " " + pattern;
    place->name = std::string(verb) + " in " + (symbol.name.empty() ? pattern : symbol.name);
    return true;
  }

  bool at_init(const LockRow& row, Place* place) {
    return row.init_site != 0 && at_code("init", "made", row.init_site, 0, place);
  }

  // The frames of a stack lie inside the calling instruction. Without a symbol the address it
  // returns to would have to be known exactly, so such a place can be shown and not ruled.
  bool at_site(const LockRow& row, Place* place) {
    const std::vector<std::uint64_t> frames = profile_.frames(row.first_stack);
    const std::uint32_t generation = profile_.generation(row.first_stack);
    if (frames.empty()) return false;
    std::size_t caller = 0;
    // A function that jumped on is not what the call returns to.
    if (jumped_on(frames[0], generation) && frames.size() > 1) caller = 1;
    if (!at_code("site", "waited for", frames[caller] + 1, generation, place)) return false;
    if (place->pattern.find(":+0x") != std::string::npos) place->pattern.clear();
    return true;
  }

  bool jumped_on(std::uint64_t frame, std::uint32_t generation) {
    const ModuleRow* module = module_at(profile_, frame, generation);
    if (module == nullptr) return false;
    const DataName symbol = names_.data(module_id(*module), frame - module->load_bias);
    return !symbol.symbol.empty() && symbol.offset == 0;
  }

  void add_counts(const LockRow& row, LockFacts* facts) {
    facts->objects += row.objects;
    facts->acquisitions += row.acquisitions + row.acquisitions_before;
    facts->waits += row.contended;
    facts->wait_ns += row.wait_ns;
    facts->max_wait_ns = std::max(facts->max_wait_ns, row.max_wait_ns);
    facts->hold_samples += row.hold_samples;
    Histogram& holds = hold_histograms_[facts];
    for (std::uint32_t i = 0; i < kHistogramBuckets; ++i) holds[i] += row.hold_histogram[i];
    facts->within += row.handoffs_within;
    facts->across += row.handoffs_across;
  }

  const Profile& profile_;
  NameSource& names_;
  std::map<std::string, LockFacts> facts_;
  std::map<const LockFacts*, Histogram> hold_histograms_;
};

}  // namespace

std::vector<LockFacts> collect_facts(const Profile& profile, NameSource& names) {
  Collector collector(profile, names);
  for (const LockProfile& lock : profile.locks()) collector.add(lock.row);
  return collector.finish();
}

}  // namespace relock
