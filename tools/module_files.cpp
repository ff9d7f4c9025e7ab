#include "tools/module_files.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <system_error>

namespace relock {

namespace {

// A profile may name any file; only a regular one with something in it is read. (Files of /proc
// say that they are regular and empty, and some of them wait for data.)
int open_regular(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat file {};
  if (descriptor < 0) return -1;
  if (fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0) return descriptor;
  close(descriptor);
  return -1;
}

struct ElfFacts {
  bool is_elf = false;
  std::string build_id;
  bool has_code = false;
  bool has_debug = false;
};

void look_at_sections(Elf* elf, ElfFacts* facts) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if ((header.sh_flags & SHF_EXECINSTR) != 0 && header.sh_type == SHT_PROGBITS) {
      facts->has_code = true;
    }
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || header.sh_type == SHT_NOBITS) continue;
    if (std::strcmp(name, ".debug_info") == 0 || std::strcmp(name, ".zdebug_info") == 0) {
      facts->has_debug = true;
    }
  }
}

ElfFacts elf_facts(int descriptor) {
  ElfFacts facts;
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(descriptor, ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr) return facts;
  if (elf_kind(elf) == ELF_K_ELF) {
    facts.is_elf = true;
    const void* bits = nullptr;
    const ssize_t length = dwelf_elf_gnu_build_id(elf, &bits);
    if (length > 0) facts.build_id = hex_digits(bits, static_cast<std::size_t>(length));
    look_at_sections(elf, &facts);
  }
  elf_end(elf);
  return facts;
}

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

std::string hex_digits(const void* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

void ModuleFiles::add_file(const std::string& path) {
  const int descriptor = open_regular(path);
  if (descriptor < 0) return;
  char magic[4] = {};
  const bool is_elf = pread(descriptor, magic, sizeof magic, 0) == sizeof magic &&
                      std::memcmp(magic, ELFMAG, SELFMAG) == 0;
  const ElfFacts facts = is_elf ? elf_facts(descriptor) : ElfFacts{};
  close(descriptor);
  if (!facts.is_elf) return;
  if (facts.has_code) by_name_.emplace(name_of(path), path);
  if (!facts.build_id.empty()) {
    by_build_id_.emplace(facts.build_id, File{path, facts.has_code, facts.has_debug});
  }
}

// Links to directories are not followed: they may lead in circles. Links to files are, since that
// is how .build-id/xx/yyyy often names them.
std::string ModuleFiles::add_directory(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return error ? error.message() : std::string("not a directory");
  }
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator entries(directory, options, error);
  if (error) return error.message();
  for (const fs::recursive_directory_iterator end; entries != end; entries.increment(error)) {
    if (error) break;
    std::error_code unreadable;
    if (entries->is_regular_file(unreadable)) add_file(entries->path().string());
  }
  return "";
}

ModuleFiles::Found ModuleFiles::open_module(const ModuleId& id) const {
  const auto [first, last] = by_build_id_.equal_range(id.build_id);
  for (const bool with_code : {true, false}) {
    for (auto file = first; !id.build_id.empty() && file != last; ++file) {
      if (file->second.has_code != with_code) continue;
      const int descriptor = open_regular(file->second.path);
      if (descriptor >= 0) return {descriptor, file->second.path, ""};
    }
  }
  if (id.build_id.empty()) {
    const auto named = by_name_.find(name_of(id.path));
    const int descriptor = named == by_name_.end() ? -1 : open_regular(named->second);
    if (descriptor >= 0) return {descriptor, named->second, ""};
  }
  const int descriptor = open_regular(id.path);
  if (descriptor < 0) return {-1, "", "not found"};
  const ElfFacts facts = elf_facts(descriptor);
  const bool same = id.build_id.empty() || facts.build_id == id.build_id;
  if (facts.is_elf && same) return {descriptor, id.path, ""};
  close(descriptor);
  return {-1, "", facts.is_elf ? "not the file that ran" : "not a program or library"};
}

std::string ModuleFiles::debug_file(const std::string& build_id) const {
  const auto [first, last] = by_build_id_.equal_range(build_id);
  for (auto file = first; file != last; ++file) {
    if (file->second.has_debug) return file->second.path;
  }
  return "";
}

}  // namespace relock
