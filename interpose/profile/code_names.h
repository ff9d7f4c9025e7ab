// Names of functions and variables from the symbol tables of the files they were loaded from, for
// the log. dladdr takes the loader's lock, which the thread that waits may not; this does not, and
// it allocates nothing.
#pragma once

#include <cstdint>

#include "interpose/profile/profile_format.h"
#include "interpose/profile/text.h"

namespace relock::profile {

// The names that one log needs, looked up together: each file is read once.
class CodeNames {
 public:
  void clear() { count_ = 0; }
  void want(std::uint64_t address);
  void look_up(const Header* header);

  // "name+offset" or "file+offset" or the bare address, at most `width` characters. `may_allocate`:
  // C++ names are shown as they were written.
  Text<200> name(std::uint64_t address, std::size_t width, bool may_allocate) const;
  // The symbol alone when the address lies in a module's data or code; empty otherwise.
  bool has_symbol(std::uint64_t address) const;

 private:
  static constexpr std::uint32_t kCapacity = 512;
  struct Entry {
    std::uint64_t address;
    std::uint64_t symbol_address;  // 0: none found
    const ModuleRow* module;
    char symbol[256];
  };
  const Entry* find(std::uint64_t address) const;
  void read_file(const ModuleRow& module);
  void read_table(const ModuleRow& module, const unsigned char* file, std::uint64_t bytes);
  void try_symbol(const ModuleRow& module, std::uint64_t start, std::uint64_t size,
                  const char* name, std::size_t longest);

  Entry entries_[kCapacity];
  std::uint32_t count_ = 0;
};

}  // namespace relock::profile
