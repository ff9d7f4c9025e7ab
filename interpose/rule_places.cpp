#include "interpose/rule_places.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>

#include "interpose/message.h"
#include "interpose/rule_symbols.h"
#include "interpose/runtime.h"

namespace relock {

RuleSet g_rules;

namespace {

constexpr int kMostRanges = 8192;
constexpr int kMostModules = 512;
constexpr std::size_t kMostPath = 4096;

// A module as the rules have seen it. Libraries that come and go leave their entry behind; one that
// is not what lies at its address now does not count.
struct Module {
  const void* map;  // its link map; null: there from the start and never unloaded
  std::uintptr_t start;
  std::uintptr_t end;
  std::uint64_t path_hash;
  int first_range;
  int last_range;  // one behind
};

struct Range {
  std::uintptr_t start;
  std::uintptr_t end;
  int rule;
};

// Both tables only grow. A counter is stored (release) after what it counts, and read (acquire)
// before.
Range g_ranges[kMostRanges];
Module g_modules[kMostModules];
LinuxAtomic32 g_range_count;
LinuxAtomic32 g_module_count;
std::uint32_t g_start_modules;
std::uintptr_t g_lowest = UINTPTR_MAX;  // of the objects that rules meant at start
std::uintptr_t g_highest = 0;
LinuxAtomic32 g_resolver;  // tid of the thread that adds to them, or 0
bool g_full_said;
char g_program[kMostPath];

using FindObject = int (*)(void*, dl_find_object*);
FindObject g_find_object;

std::uint64_t hash_of(const char* text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return hash;
}

const char* path_of(const char* name) { return *name == '\0' ? g_program : name; }

void add_range(std::uintptr_t start, std::uintptr_t end, int rule) {
  const std::uint32_t count = g_range_count.load(MemoryOrder::kRelaxed);
  if (count < kMostRanges) {
    g_ranges[count] = Range{start, end, rule};
    g_range_count.store(count + 1, MemoryOrder::kRelease);
    return;
  }
  if (g_full_said) return;
  g_full_said = true;
  LineBuffer line;
  line.add("relock: warning: RELOCK_RULES: line ");
  line.add_number(g_rules.rules[rule].line);
  line.add(": more than 8192 symbols match the rules: the rest is not seen");
  say(line.data);
}

bool wants_code(const Rule& rule) {
  return rule.subject == RuleSubject::kInit || rule.subject == RuleSubject::kSite;
}

bool suits(const Rule& rule, const ElfW(Sym) & symbol) {
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) return false;
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (wants_code(rule)) return type == STT_FUNC || type == STT_GNU_IFUNC;
  return type == STT_OBJECT || type == STT_NOTYPE || type == STT_COMMON;
}

// A call returns behind itself: a return address is looked up one byte before.
void add_symbol(int number, std::uintptr_t base, const ElfW(Sym) & symbol) {
  const Rule& rule = g_rules.rules[number];
  const std::uintptr_t start = base + symbol.st_value;
  if (!rule.has_offset) return add_range(start, start + symbol.st_size, number);
  if (rule.offset > symbol.st_size) return;
  const std::uintptr_t exact = start + rule.offset - (wants_code(rule) ? 1 : 0);
  add_range(exact, exact + 1, number);
}

// What a rule means in a module without a look at its symbols. False: the symbols decide.
bool add_without_symbols(int number, std::uintptr_t base, const Module& module) {
  const Rule& rule = g_rules.rules[number];
  if (*rule.name == '\0') {
    const std::uintptr_t exact = base + rule.offset - (wants_code(rule) ? 1 : 0);
    add_range(exact, exact + 1, number);
    return true;
  }
  if (std::strcmp(rule.name, "*") != 0 || rule.has_offset) return false;
  add_range(module.start, module.end, number);
  return true;
}

void add_symbols(int number, std::uintptr_t base, const SymbolTable& table) {
  const Rule& rule = g_rules.rules[number];
  const char first = *rule.name;
  const bool any_first = first == '*' || first == '?';
  for (std::size_t i = 0; i < table.count; ++i) {
    const ElfW(Sym)& symbol = table.symbols[i];
    if (!suits(rule, symbol)) continue;
    const char* name = table.name(symbol);
    if ((any_first || *name == first) && matches_pattern(rule.name, name)) {
      add_symbol(number, base, symbol);
    }
  }
}

// `from_file`: the file may be opened.
void resolve_module(const char* name, std::uintptr_t base, const ElfW(Dyn) * dynamic,
                    bool from_file, Module* module) {
  module->first_range = static_cast<int>(g_range_count.load(MemoryOrder::kRelaxed));
  const char* path = path_of(name);
  bool undecided[RuleSet::kMost] = {};
  bool any = false;
  for (int i = 0; i < g_rules.count; ++i) {
    const Rule& rule = g_rules.rules[i];
    if (rule.subject == RuleSubject::kModule) {
      if (matches_module(rule.module, path)) add_range(module->start, module->end, i);
      continue;
    }
    undecided[i] = matches_module(rule.module, path) && !add_without_symbols(i, base, *module);
    any = any || undecided[i];
  }
  if (any) {
    const MappedFile file(from_file ? (*name == '\0' ? "/proc/self/exe" : name) : "");
    SymbolTable table;
    if (file.symbols(&table) || dynamic_symbols(dynamic, base, &table)) {
      for (int i = 0; i < g_rules.count; ++i) {
        if (undecided[i]) add_symbols(i, base, table);
      }
    }
  }
  module->last_range = static_cast<int>(g_range_count.load(MemoryOrder::kRelaxed));
}

int resolve_loaded(dl_phdr_info* info, std::size_t, void*) {
  const std::uint32_t count = g_module_count.load(MemoryOrder::kRelaxed);
  if (count == kMostModules) return 0;
  Module module{};
  module.start = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
    if (header.p_type != PT_LOAD) continue;
    if (start < module.start) module.start = start;
    if (start + header.p_memsz > module.end) module.end = start + header.p_memsz;
  }
  resolve_module(info->dlpi_name, info->dlpi_addr, dynamic, true, &module);
  g_modules[count] = module;
  g_module_count.store(count + 1, MemoryOrder::kRelease);
  return 0;
}

// ---- modules that came later --------------------------------------------------------------

struct Found {
  const link_map* map;
  std::uintptr_t start;
  std::uintptr_t end;
};

bool find_object(const void* address, Found* found) {
  dl_find_object object{};
  if (g_find_object == nullptr || g_find_object(const_cast<void*>(address), &object) != 0) {
    return false;
  }
  found->map = object.dlfo_link_map;
  found->start = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
  found->end = reinterpret_cast<std::uintptr_t>(object.dlfo_map_end);
  return true;
}

bool is_module(const Module& module, const Found& found) {
  return module.map == found.map && module.start == found.start &&
         module.path_hash == hash_of(path_of(found.map->l_name));
}

// One thread adds at a time. False: a signal handler has interrupted it, or it does not come back
// (it may be a thread of the process that forked this one); then the caller goes without.
bool begin_resolving() {
  constexpr int kNaps = 50;
  constexpr int kPauses = 1000;
  constexpr std::uint64_t kNap_ns = 1'000'000;
  for (int tries = 0; tries < kPauses + kNaps; ++tries) {
    std::uint32_t holder = 0;
    if (g_resolver.compare_exchange(holder, thread_id(), MemoryOrder::kAcquire)) return true;
    if (holder == thread_id()) return false;
    if (tries < kPauses) {
      LinuxPlatform::pause();
      continue;
    }
    const Deadline until = LinuxPlatform::after_ns(kNap_ns);
    (void)LinuxPlatform::futex_wait(g_resolver, holder, kAnyBit, &until);
  }
  return false;
}
void end_resolving() { g_resolver.store(0, MemoryOrder::kRelease); }

const Module* known_module(const Found& found) {
  const std::uint32_t count = g_module_count.load(MemoryOrder::kAcquire);
  for (std::uint32_t i = g_start_modules; i < count; ++i) {
    if (is_module(g_modules[i], found)) return &g_modules[i];
  }
  return nullptr;
}

const Module* add_module(const Found& found, bool from_file) {
  const std::uint32_t count = g_module_count.load(MemoryOrder::kRelaxed);
  if (count == kMostModules) return nullptr;
  Module& module = g_modules[count];
  module.map = found.map;
  module.start = found.start;
  module.end = found.end;
  module.path_hash = hash_of(path_of(found.map->l_name));
  resolve_module(found.map->l_name, found.map->l_addr, found.map->l_ld, from_file, &module);
  g_module_count.store(count + 1, MemoryOrder::kRelease);
  return &module;
}

const Module* later_module(const void* address) {
  Found found{};
  if (!find_object(address, &found)) return nullptr;
  const Module* module = known_module(found);
  if (module != nullptr || !begin_resolving()) return module;
  module = known_module(found);
  if (module == nullptr) module = add_module(found, false);
  end_resolving();
  return module;
}

int visit_loaded(dl_phdr_info* info, std::size_t, void*) {
  Found found{};
  // Any address of the module tells its link map.
  if (info->dlpi_phnum == 0 || !find_object(info->dlpi_phdr, &found)) return 0;
  for (std::uint32_t i = 0; i < g_start_modules; ++i) {
    if (g_modules[i].start <= found.start && found.start < g_modules[i].end) return 0;
  }
  if (known_module(found) == nullptr) (void)add_module(found, true);
  return 0;
}

// ---- look-ups -----------------------------------------------------------------------------

bool fits(const Rule& rule, RuleSubject subject, std::uint8_t kind) {
  return rule.subject == subject && (rule.objects & kind) != 0;
}

int first_rule(const Module& module, RuleSubject subject, std::uint8_t kind, std::uintptr_t at) {
  int best = kNoRule;
  for (int i = module.first_range; i < module.last_range; ++i) {
    const Range& range = g_ranges[i];
    if (at >= range.start && at < range.end && range.rule < best &&
        fits(g_rules.rules[range.rule], subject, kind)) {
      best = range.rule;
    }
  }
  return best;
}

const Module* start_module(std::uintptr_t at) {
  for (std::uint32_t i = 0; i < g_start_modules; ++i) {
    if (at >= g_modules[i].start && at < g_modules[i].end) return &g_modules[i];
  }
  return nullptr;
}

std::uintptr_t place(RuleSubject subject, const void* address) {
  const bool code = subject == RuleSubject::kInit || subject == RuleSubject::kSite;
  return reinterpret_cast<std::uintptr_t>(address) - (code ? 1 : 0);
}

}  // namespace

void resolve_rules_at_start() {
  const ssize_t length = readlink("/proc/self/exe", g_program, sizeof g_program - 1);
  g_program[length > 0 ? length : 0] = '\0';
  g_find_object = reinterpret_cast<FindObject>(dlsym(RTLD_NEXT, "_dl_find_object"));
  dl_iterate_phdr(resolve_loaded, nullptr);
  g_start_modules = g_module_count.load(MemoryOrder::kRelaxed);
  const std::uint32_t count = g_range_count.load(MemoryOrder::kRelaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (wants_code(g_rules.rules[g_ranges[i].rule])) continue;
    if (g_ranges[i].start < g_lowest) g_lowest = g_ranges[i].start;
    if (g_ranges[i].end > g_highest) g_highest = g_ranges[i].end;
  }
}

void forget_resolving_thread() { g_resolver.store(0, MemoryOrder::kRelaxed); }

void resolve_rules_of_new_modules() {
  if (!begin_resolving()) return;
  dl_iterate_phdr(visit_loaded, nullptr);
  end_resolving();
}

int rule_for_address(RuleSubject subject, std::uint8_t kind, const void* address) {
  const std::uintptr_t at = place(subject, address);
  const Module* module = start_module(at);
  if (module == nullptr) module = later_module(reinterpret_cast<const void*>(at));
  return module == nullptr ? kNoRule : first_rule(*module, subject, kind, at);
}

int fixed_rule_for_object(RuleSubject subject, std::uint8_t kind, const void* address) {
  const std::uintptr_t at = place(subject, address);
  if (at < g_lowest || at >= g_highest) return kNoRule;
  const Module* module = start_module(at);
  return module == nullptr ? kNoRule : first_rule(*module, subject, kind, at);
}

bool lies_in_module(const void* address) {
  Found found{};
  return start_module(reinterpret_cast<std::uintptr_t>(address)) != nullptr ||
         find_object(address, &found);
}

int resolved_ranges() { return static_cast<int>(g_range_count.load(MemoryOrder::kRelaxed)); }

}  // namespace relock
