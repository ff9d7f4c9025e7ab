#include "tools/symbolize.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace relock {

namespace {

constexpr std::size_t kNoModule = static_cast<std::size_t>(-1);

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

int find_nothing(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

const Dwfl_Callbacks kCallbacks = {find_nothing, dwfl_standard_find_debuginfo,
                                   dwfl_offline_section_address, nullptr};

// A profile may name any file; only a regular one is read.
int open_regular(const char* path) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat file {};
  if (descriptor >= 0 && (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

bool has_build_id(Dwfl_Module* module, const profile::ModuleRow& row) {
  if (row.build_id_bytes == 0) return true;  // nothing to compare with
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int length = dwfl_module_build_id(module, &bits, &address);
  return length == static_cast<int>(row.build_id_bytes) &&
         std::memcmp(bits, row.build_id, row.build_id_bytes) == 0;
}

std::string source_line(Dwfl_Module* module, std::uint64_t address) {
  Dwfl_Line* line = dwfl_module_getsrc(module, address);
  if (line == nullptr) return "";
  int number = 0;
  const char* file = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (file == nullptr) return "";
  return base_name(file) + ":" + std::to_string(number);
}

}  // namespace

std::string demangled(const char* name) {
  // Anything else is read as the code of a type: "m" would become "unsigned long".
  if (name[0] != '_' || name[1] != 'Z') return name;
  int status = -1;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

Symbolizer::~Symbolizer() {
  for (auto& [index, file] : files_) {
    if (file.session != nullptr) dwfl_end(file.session);
  }
}

std::size_t Symbolizer::module_of(std::uint64_t address, std::uint32_t generation) const {
  std::size_t found = kNoModule;
  const auto& modules = profile_.modules();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const profile::ModuleRow& module = modules[i];
    if (address < module.start || address >= module.end) continue;
    const std::uint32_t last = module.last_generation == 0 ? UINT32_MAX : module.last_generation;
    const bool then = generation >= module.first_generation && generation <= last;
    if (generation != 0 && then) return i;
    found = i;  // the latest one, when no generation fits
  }
  return found;
}

const Symbolizer::File& Symbolizer::open(std::size_t index) {
  const auto known = files_.find(index);
  if (known != files_.end()) return known->second;
  File& file = files_[index];
  const profile::ModuleRow& row = profile_.modules()[index];
  const int descriptor = open_regular(row.path);
  if (descriptor < 0) return file;
  file.session = dwfl_begin(&kCallbacks);
  if (file.session == nullptr) {
    close(descriptor);
    return file;
  }
  dwfl_report_begin(file.session);
  // From here on the descriptor belongs to libdwfl, unless it fails.
  file.module = dwfl_report_elf(file.session, row.path, row.path, descriptor, row.load_bias, true);
  if (file.module == nullptr) close(descriptor);
  dwfl_report_end(file.session, nullptr, nullptr);
  if (file.module != nullptr && !has_build_id(file.module, row)) {
    changed_.insert(row.path);
    file.module = nullptr;
  }
  return file;
}

Symbol Symbolizer::name(std::uint64_t address, std::uint32_t generation) {
  Symbol symbol;
  symbol.offset = address;
  const std::size_t index = module_of(address, generation);
  if (index == kNoModule) return symbol;
  const profile::ModuleRow& row = profile_.modules()[index];
  symbol.module = base_name(row.path);
  symbol.offset = address - row.load_bias;
  const File& file = open(index);
  if (file.module == nullptr) return symbol;
  GElf_Off offset = 0;
  GElf_Sym entry{};
  const char* name =
      dwfl_module_addrinfo(file.module, address, &offset, &entry, nullptr, nullptr, nullptr);
  // libdwfl also offers the symbol before the address when that has no size.
  if (name != nullptr && (entry.st_size == 0 || offset < entry.st_size)) {
    symbol.name = demangled(name);
    symbol.offset = offset;
  }
  symbol.source = source_line(file.module, address);
  return symbol;
}

}  // namespace relock
