#include "interpose/rule_symbols.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace relock {

namespace {

// The dynamic linker has turned addresses into pointers for most modules, not for all.
const void* pointer(std::uintptr_t base, std::uintptr_t value) {
  return reinterpret_cast<const void*>(value < base ? value + base : value);
}

// How many symbols a GNU hash table speaks of: the last chain of the highest bucket ends the table.
std::size_t count_in_gnu_hash(const std::uint32_t* hash) {
  const std::uint32_t buckets = hash[0];
  const std::uint32_t first = hash[1];
  const std::uint32_t bloom_words = hash[2];
  const std::uint32_t* bucket = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

}  // namespace

MappedFile::MappedFile(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return;
  struct stat info {};
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    const auto size = static_cast<std::size_t>(info.st_size);
    void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      bytes_ = static_cast<const char*>(bytes);
      size_ = size;
    }
  }
  close(file);
}

MappedFile::~MappedFile() {
  if (bytes_ != nullptr) munmap(const_cast<char*>(bytes_), size_);
}

const void* MappedFile::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset || offset % alignof(ElfW(Sym)) != 0) return nullptr;
  return bytes_ + offset;
}

const ElfW(Shdr) * MappedFile::section(std::size_t index) const {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes_);
  if (index >= header->e_shnum) return nullptr;
  return static_cast<const ElfW(Shdr)*>(
      part(header->e_shoff + index * sizeof(ElfW(Shdr)), sizeof(ElfW(Shdr))));
}

bool MappedFile::symbols(SymbolTable* table) const {
  if (size_ < sizeof(ElfW(Ehdr)) || std::memcmp(bytes_, ELFMAG, SELFMAG) != 0) return false;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes_);
  if (header->e_shentsize != sizeof(ElfW(Shdr))) return false;
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const ElfW(Shdr)* found = section(i);
    if (found == nullptr || found->sh_type != SHT_SYMTAB) continue;
    const ElfW(Shdr)* strings = section(found->sh_link);
    if (strings == nullptr || strings->sh_size == 0) return false;
    const void* symbols = part(found->sh_offset, found->sh_size);
    if (symbols == nullptr || strings->sh_offset > size_ ||
        strings->sh_size > size_ - strings->sh_offset) {
      return false;
    }
    table->symbols = static_cast<const ElfW(Sym)*>(symbols);
    table->count = found->sh_size / sizeof(ElfW(Sym));
    table->names = bytes_ + strings->sh_offset;
    table->names_size = strings->sh_size;
    return table->names[table->names_size - 1] == '\0';
  }
  return false;
}

bool dynamic_symbols(const ElfW(Dyn) * dynamic, std::uintptr_t base, SymbolTable* table) {
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* hash = nullptr;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const void* at = pointer(base, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) table->symbols = static_cast<const ElfW(Sym)*>(at);
    if (dynamic->d_tag == DT_STRTAB) table->names = static_cast<const char*>(at);
    if (dynamic->d_tag == DT_STRSZ) table->names_size = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_GNU_HASH) gnu_hash = static_cast<const std::uint32_t*>(at);
    if (dynamic->d_tag == DT_HASH) hash = static_cast<const std::uint32_t*>(at);
  }
  if (table->symbols == nullptr || table->names == nullptr) return false;
  if (hash != nullptr) {
    table->count = hash[1];
  } else if (gnu_hash != nullptr) {
    table->count = count_in_gnu_hash(gnu_hash);
  }
  return table->count != 0;
}

}  // namespace relock
