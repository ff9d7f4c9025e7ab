// What an ELF file says about itself, as far as it decides whether relock can work on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace relock {

struct ElfFacts {
  enum class State : std::uint8_t {
    kNotElf,    // something else, a script for instance
    kBroken,    // begins like ELF and cannot be read to the end
    kForeign,   // another architecture: nothing below is filled in
    kReadable,  // everything below is filled in
  };

  State state = State::kNotElf;
  std::string architecture;  // as people call it
  bool shared_object = false;
  bool position_independent_program = false;  // DF_1_PIE
  std::string interpreter;                    // the dynamic linker it asks for, or empty
  std::string soname;
  std::vector<std::string> needed;
  std::string rpath;
  std::string runpath;
  bool has_symbols = false;  // a table of dynamic symbols was found
  bool imports_locks = false;
  bool imports_dlopen = false;
  std::string sanitizer;  // AddressSanitizer, ..., or empty
  bool is_go = false;
};

ElfFacts read_elf(const std::string& path);

// Whether a symbol of this name is one of the calls that relock takes over.
bool is_lock_call(const std::string& symbol);

}  // namespace relock
