// Names for addresses of a profile, from the files that were loaded and their debug information.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tools/profile_reader.h"

struct Dwfl;
struct Dwfl_Module;

namespace relock {

struct Symbol {
  std::string name;          // demangled; empty when there is none
  std::uint64_t offset = 0;  // of the address in it, or in the module when there is no name
  std::string module;        // without directories; empty when the address is in none
  std::string source;        // file:line, without directories; empty when unknown
};

// Where a report gets names from.
class NameSource {
 public:
  virtual ~NameSource() = default;
  // generation: of the stack that the address is from; 0: whatever was loaded last.
  virtual Symbol name(std::uint64_t address, std::uint32_t generation) = 0;
};

class Symbolizer : public NameSource {
 public:
  explicit Symbolizer(const Profile& profile) : profile_(profile) {}
  ~Symbolizer() override;
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  Symbol name(std::uint64_t address, std::uint32_t generation) override;
  // Files that are no longer the ones that ran, so that they give no names.
  const std::set<std::string>& changed_files() const { return changed_; }

 private:
  struct File {
    Dwfl* session = nullptr;
    Dwfl_Module* module = nullptr;
  };
  std::size_t module_of(std::uint64_t address, std::uint32_t generation) const;
  const File& open(std::size_t module);

  const Profile& profile_;
  std::map<std::size_t, File> files_;  // by index of the module
  std::set<std::string> changed_;
};

// The name that a person wrote, if this is a C++ name.
std::string demangled(const char* name);

}  // namespace relock
