#include "tools/module_names.h"

#include <dwarf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "tools/demangle.h"

namespace relock {

namespace {

int find_nothing(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

// A debug file that the user gave comes before those of this machine.
int find_debug_file(Dwfl_Module* module, void** context, const char* name, Dwarf_Addr base,
                    const char* file, const char* link, GElf_Word crc, char** found) {
  const auto* names = static_cast<const ModuleNames*>(*context);
  const std::string path = names == nullptr ? "" : names->debug_file();
  const int descriptor = path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) {
    *found = strdup(path.c_str());
    return descriptor;
  }
  return dwfl_standard_find_debuginfo(module, context, name, base, file, link, crc, found);
}

const Dwfl_Callbacks kCallbacks = {find_nothing, find_debug_file, dwfl_offline_section_address,
                                   nullptr};

struct FreeScopes {
  void operator()(Dwarf_Die* scopes) const { std::free(scopes); }
};
using Scopes = std::unique_ptr<Dwarf_Die, FreeScopes>;

const char* text_attribute(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

std::uint32_t number_attribute(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) != 0) return 0;
  return value > UINT32_MAX ? 0 : static_cast<std::uint32_t>(value);
}

std::string with_directory(Dwarf_Die* unit, const char* file) {
  if (file == nullptr) return "";
  const char* directory = file[0] == '/' ? nullptr : text_attribute(unit, DW_AT_comp_dir);
  if (directory == nullptr || directory[0] == '\0') return file;
  return std::string(directory) + "/" + file;
}

void set_line(Dwarf_Die* unit, std::uint64_t address, CodeName* name) {
  Dwarf_Line* line = dwarf_getsrc_die(unit, address);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0 || number < 0) return;
  name->file = with_directory(unit, dwarf_linesrc(line, nullptr, nullptr));
  name->line = static_cast<std::uint32_t>(number);
}

// Where the inlined call `die` stands in the function around it.
void set_call_line(Dwarf_Die* unit, Dwarf_Die* die, CodeName* name) {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0) return;
  const std::uint32_t file = number_attribute(die, DW_AT_call_file);
  if (file >= count) return;
  name->file = with_directory(unit, dwarf_filesrc(files, file, nullptr, nullptr));
  name->line = number_attribute(die, DW_AT_call_line);
}

constexpr int kDeepest = 256;  // a damaged file may nest without end

bool may_hold_code(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
         tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_lexical_block;
}

// Appends the functions below `die` that the address lies in, each inlined into the one before.
// dwarf_getscopes does this too, but finds nothing for some addresses in what clang writes.
void find_functions(Dwarf_Die* die, std::uint64_t address, int depth,
                    std::vector<Dwarf_Die>* functions) {
  Dwarf_Die child;
  if (depth > kDeepest || dwarf_child(die, &child) != 0) return;
  const std::size_t before = functions->size();
  do {
    const int tag = dwarf_tag(&child);
    const bool is_function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
    if (is_function && dwarf_haspc(&child, address) == 1) {
      functions->push_back(child);
      find_functions(&child, address, depth + 1, functions);
      return;
    }
    if (may_hold_code(tag)) find_functions(&child, address, depth + 1, functions);
    if (functions->size() != before) return;
  } while (dwarf_siblingof(&child, &child) == 0);
}

// The innermost frame of a stack may be the start of a function that had jumped on to the lock's
// function: it is nowhere in its body any more, whatever was inlined at its start. No other frame
// lies there, since a call returns behind the start.
bool starts_at(Dwarf_Die* function, std::uint64_t address) {
  Dwarf_Addr entry = 0;
  return dwarf_entrypc(function, &entry) == 0 && entry == address;
}

void set_declared_line(Dwarf_Die* unit, Dwarf_Die* function, CodeName* name) {
  const char* file = dwarf_decl_file(function);
  if (file == nullptr || name->start_line == 0) return;
  name->file = with_directory(unit, file);
  name->line = name->start_line;
}

// The name with the namespaces and classes around its declaration: functions that were only ever
// inlined have no symbol that would tell them.
std::string qualified(Dwarf_Die* die, const char* name) {
  Dwarf_Die declared = *die;
  for (const unsigned link : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    if (dwarf_attr(&declared, link, &attribute) == nullptr) continue;
    if (dwarf_formref_die(&attribute, &next) != nullptr) declared = next;
  }
  Dwarf_Die* found = nullptr;
  const int depth = dwarf_getscopes_die(&declared, &found);
  const Scopes scopes(found);
  std::string result = name;
  for (int i = 1; i < depth; ++i) {
    const int tag = dwarf_tag(scopes.get() + i);
    if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type) break;
    const char* around = dwarf_diename(scopes.get() + i);
    result = (around == nullptr ? std::string("(anonymous namespace)") : around) + "::" + result;
  }
  return result;
}

CodeName function_name(Dwarf_Die* die) {
  CodeName name;
  const char* symbol = text_attribute(die, DW_AT_linkage_name);
  if (symbol == nullptr) symbol = text_attribute(die, DW_AT_MIPS_linkage_name);
  const char* plain = text_attribute(die, DW_AT_name);
  if (symbol != nullptr) {
    name.symbol = symbol;
    name.name = demangled(symbol);
  } else if (plain != nullptr) {
    name.name = qualified(die, plain);
  }
  name.start_line = number_attribute(die, DW_AT_decl_line);
  return name;
}

}  // namespace

ModuleNames::ModuleNames(const ModuleFiles& files, ModuleId id)
    : files_(files), id_(std::move(id)) {
  const ModuleFiles::Found found = files_.open_module(id_);
  reason_ = found.reason;
  if (found.descriptor < 0) return;
  session_ = dwfl_begin(&kCallbacks);
  if (session_ != nullptr) {
    dwfl_report_begin(session_);
    // From here on the descriptor belongs to libdwfl, unless it fails. Loaded at 0, so that
    // addresses are those of the file.
    module_ =
        dwfl_report_elf(session_, id_.path.c_str(), found.path.c_str(), found.descriptor, 0, true);
    dwfl_report_end(session_, nullptr, nullptr);
  }
  if (module_ == nullptr) {
    close(found.descriptor);
    reason_ = "cannot be read";
    return;
  }
  void** context = nullptr;
  dwfl_module_info(module_, &context, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (context != nullptr) *context = this;
}

ModuleNames::~ModuleNames() {
  if (session_ != nullptr) dwfl_end(session_);
}

bool ModuleNames::has_lines() {
  Dwarf_Addr bias = 0;
  return module_ != nullptr && dwfl_module_getdwarf(module_, &bias) != nullptr;
}

std::string ModuleNames::symbol(std::uint64_t address, std::uint64_t* offset) {
  GElf_Off from_start = 0;
  GElf_Sym entry{};
  const char* name =
      dwfl_module_addrinfo(module_, address, &from_start, &entry, nullptr, nullptr, nullptr);
  // libdwfl also offers the symbol before the address when that has no size, and thread-local ones,
  // whose values are offsets.
  if (name == nullptr || GELF_ST_TYPE(entry.st_info) == STT_TLS) return "";
  if (entry.st_size != 0 && from_start >= entry.st_size) return "";
  *offset = from_start;
  return name;
}

// Compilers other than gcc leave out the table that leads from addresses to units.
void ModuleNames::index_units() {
  indexed_ = true;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;) {
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    for (std::ptrdiff_t next = 0; (next = dwarf_ranges(unit, next, &base, &start, &end)) > 0;) {
      if (start < end) units_.insert_or_assign(start, Unit{end, *unit});
    }
    unit_bias_ = bias;
  }
}

Dwarf_Die* ModuleNames::unit_at(std::uint64_t address, Dwarf_Addr* bias) {
  Dwarf_Die* unit = dwfl_module_addrdie(module_, address, bias);
  if (unit != nullptr) return unit;
  if (!indexed_) index_units();
  *bias = unit_bias_;
  auto after = units_.upper_bound(address - unit_bias_);
  if (after == units_.begin()) return nullptr;
  --after;
  return address - unit_bias_ < after->second.end ? &after->second.die : nullptr;
}

// The function at the address, and before it the calls that were inlined into it. `address` counts
// as the unit does.
std::vector<CodeName> ModuleNames::inlined_chain(Dwarf_Die* unit, std::uint64_t address) {
  std::vector<Dwarf_Die> functions;
  find_functions(unit, address, 0, &functions);
  std::vector<CodeName> chain;
  for (std::size_t i = functions.size(); i-- > 0;) {
    chain.push_back(function_name(&functions[i]));
    if (i + 1 == functions.size()) {
      set_line(unit, address, &chain.back());
    } else {
      set_call_line(unit, &functions[i + 1], &chain.back());
    }
    chain.back().inlined = i > 0;
  }
  if (functions.empty() || !starts_at(&functions[0], address)) return chain;
  chain.erase(chain.begin(), chain.end() - 1);
  set_declared_line(unit, &functions[0], &chain.back());
  return chain;
}

std::vector<CodeName> ModuleNames::code(std::uint64_t address) {
  // Functions that the linker has left out stay in the debug information, at address 0.
  if (module_ == nullptr || address < sizeof(Elf64_Ehdr)) return {};
  const auto known = known_.find(address);
  if (known != known_.end()) return known->second;
  std::vector<CodeName>& names = known_[address];
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = unit_at(address, &bias);
  if (unit != nullptr) names = inlined_chain(unit, address - bias);
  std::uint64_t offset = 0;
  const std::string linked = symbol(address, &offset);
  if (names.empty() && !linked.empty()) {
    names.emplace_back();
    if (unit != nullptr) set_line(unit, address - bias, &names.back());
  }
  // The symbol table knows the parameters of functions whose debug information has a bare name.
  if (!names.empty() && names.back().symbol.empty() && !linked.empty()) {
    CodeName& function = names.back();
    function.symbol = linked;
    const std::string spelled = demangled(linked.c_str());
    if (function.name.empty() || spelled != linked) function.name = spelled;
  }
  return names;
}

DataName ModuleNames::data(std::uint64_t address) {
  DataName result;
  if (module_ == nullptr) return result;
  result.symbol = symbol(address, &result.offset);
  if (!result.symbol.empty()) result.name = demangled(result.symbol.c_str());
  return result;
}

}  // namespace relock
