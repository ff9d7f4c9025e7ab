// The symbols of a loaded module: from its file where that may be read, else as they lie in memory.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace relock {

struct SymbolTable {
  const ElfW(Sym) * symbols = nullptr;
  std::size_t count = 0;
  const char* names = nullptr;
  std::size_t names_size = 0;

  // A symbol's name; "" for one that points outside of the table.
  const char* name(const ElfW(Sym) & symbol) const {
    return symbol.st_name < names_size ? names + symbol.st_name : "";
  }
};

// A module's file in memory, for as long as the object lives.
class MappedFile {
 public:
  explicit MappedFile(const char* path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // The table that the linker leaves unless it is told to strip (.symtab). False: there is none, or
  // the file is not what it says.
  bool symbols(SymbolTable* table) const;

 private:
  const ElfW(Shdr) * section(std::size_t index) const;
  const void* part(std::uint64_t offset, std::uint64_t size) const;

  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// The table of dynamic symbols of a loaded module. Makes no system call.
bool dynamic_symbols(const ElfW(Dyn) * dynamic, std::uintptr_t base, SymbolTable* table);

}  // namespace relock
