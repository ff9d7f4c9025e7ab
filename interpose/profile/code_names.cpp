#include "interpose/profile/code_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "interpose/profile/process_state.h"
#include "interpose/profile/system.h"

namespace relock::profile {

namespace {

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// A table of `count` items of `size` bytes at `offset` that lies inside the file, or null.
const unsigned char* inside(const unsigned char* file, std::uint64_t bytes, std::uint64_t offset,
                            std::uint64_t size, std::uint64_t count) {
  if (offset > bytes || size == 0 || count > (bytes - offset) / size) return nullptr;
  return file + offset;
}

}  // namespace

void CodeNames::want(std::uint64_t address) {
  if (address == 0 || count_ == kCapacity || find(address) != nullptr) return;
  entries_[count_++] = {address, 0, nullptr, ""};
}

const CodeNames::Entry* CodeNames::find(std::uint64_t address) const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].address == address) return &entries_[i];
  }
  return nullptr;
}

void CodeNames::look_up(const Header* header) {
  const auto* modules = rows<const ModuleRow>(const_cast<Header*>(header), kSectionModules);
  std::uint32_t used = read(header->sections[kSectionModules].used);
  if (used > kModuleRows) used = kModuleRows;
  for (std::uint32_t i = 0; i < used; ++i) {
    const ModuleRow& module = modules[i];
    if (read_acquire(module.ready) == 0 || module.last_generation != 0) continue;
    bool needed = false;
    for (std::uint32_t j = 0; j < count_; ++j) {
      Entry& entry = entries_[j];
      if (entry.address < module.start || entry.address >= module.end) continue;
      if (entry.module != nullptr) continue;
      entry.module = &module;
      needed = true;
    }
    if (needed) read_file(module);
  }
}

void CodeNames::read_file(const ModuleRow& module) {
  const int descriptor = sys_open(module.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat file {};
  void* memory = MAP_FAILED;
  if (fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0) {
    memory = mmap(nullptr, static_cast<std::size_t>(file.st_size), PROT_READ, MAP_PRIVATE,
                  descriptor, 0);
  }
  sys_close(descriptor);
  if (memory == MAP_FAILED) return;
  const auto bytes = static_cast<std::uint64_t>(file.st_size);
  read_table(module, static_cast<const unsigned char*>(memory), bytes);
  munmap(memory, bytes);
}

void CodeNames::read_table(const ModuleRow& module, const unsigned char* file,
                           std::uint64_t bytes) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file);
  if (bytes < sizeof *header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return;
  }
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(
      inside(file, bytes, header->e_shoff, sizeof(Elf64_Shdr), header->e_shnum));
  if (sections == nullptr) return;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& table = sections[i];
    const bool names_symbols = table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM;
    if (!names_symbols || table.sh_link >= header->e_shnum) continue;
    const Elf64_Shdr& strings = sections[table.sh_link];
    const std::uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(
        inside(file, bytes, table.sh_offset, sizeof(Elf64_Sym), count));
    const auto* text =
        reinterpret_cast<const char*>(inside(file, bytes, strings.sh_offset, 1, strings.sh_size));
    if (symbols == nullptr || text == nullptr) continue;
    for (std::uint64_t j = 0; j < count; ++j) {
      const Elf64_Sym& symbol = symbols[j];
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      const bool named = type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC;
      if (!named || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings.sh_size) continue;
      try_symbol(module, module.load_bias + symbol.st_value, symbol.st_size, text + symbol.st_name,
                 strings.sh_size - symbol.st_name);
    }
  }
}

void CodeNames::try_symbol(const ModuleRow& module, std::uint64_t start, std::uint64_t size,
                           const char* name, std::size_t longest) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    Entry& entry = entries_[i];
    if (entry.module != &module || entry.address < start || entry.address - start >= size) continue;
    if (entry.symbol_address > start) continue;  // the closest one wins, and the first of those
    if (entry.symbol_address == start && entry.symbol[0] != '\0') continue;
    entry.symbol_address = start;
    const std::size_t length =
        strnlen(name, longest < sizeof entry.symbol ? longest : sizeof entry.symbol - 1);
    std::memcpy(entry.symbol, name, length);
    entry.symbol[length] = '\0';
  }
}

bool CodeNames::has_symbol(std::uint64_t address) const {
  const Entry* entry = find(address);
  return entry != nullptr && entry->symbol_address != 0;
}

Text<200> CodeNames::name(std::uint64_t address, std::size_t width, bool may_allocate) const {
  Text<200> tail;
  Text<200> text;
  const Entry* entry = find(address);
  if (entry == nullptr || entry->module == nullptr) {
    text.hex(address);
    return text;
  }
  if (entry->symbol_address != 0) {
    char* written = may_allocate && std::strncmp(entry->symbol, "_Z", 2) == 0
                        ? abi::__cxa_demangle(entry->symbol, nullptr, nullptr, nullptr)
                        : nullptr;
    text << (written != nullptr ? written : entry->symbol);
    std::free(written);
    if (address != entry->symbol_address) tail << "+";
    if (address != entry->symbol_address) tail.hex(address - entry->symbol_address);
    tail << " (" << base_name(entry->module->path) << ")";
  } else {
    text << base_name(entry->module->path);
    tail << "+";
    tail.hex(address - entry->module->load_bias);
  }
  if (tail.size() < width) text.cut(width - tail.size());
  text << tail.c_str();
  text.cut(width);
  return text;
}

}  // namespace relock::profile
