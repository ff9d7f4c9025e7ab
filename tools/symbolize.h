// Names for addresses of a profile, from the files that were loaded and their debug information.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/module_files.h"

namespace relock {

// One function that was being executed at an address.
struct CodeName {
  std::string name;    // demangled; empty when unknown
  std::string symbol;  // as in the symbol table; empty when unknown
  std::string file;    // with its directory where that is known; empty when unknown
  std::uint32_t line = 0;
  std::uint32_t start_line = 0;  // of the function; 0 unknown
  bool inlined = false;          // into the next one
};

struct DataName {
  std::string name;  // demangled; empty when the address lies in no symbol
  std::uint64_t offset = 0;
  std::string symbol{};  // as in the symbol table
};

struct MissingModule {
  ModuleId id;
  std::string reason;
};

// Where a report gets names from. Addresses are the module's own: as in its file.
class NameSource {
 public:
  virtual ~NameSource() = default;
  // The functions at an address in the code, the innermost first; one after another inlined into
  // the next. Empty when the address has no name.
  virtual std::vector<CodeName> code(const ModuleId& module, std::uint64_t address) = 0;
  virtual DataName data(const ModuleId& module, std::uint64_t address) = 0;
  // Modules that were asked for and whose files could not be found.
  virtual std::vector<MissingModule> missing() const = 0;
  // Whether any line number is known for the module.
  virtual bool has_lines(const ModuleId& module) = 0;
};

class ModuleNames;

class Symbolizer : public NameSource {
 public:
  explicit Symbolizer(const ModuleFiles& files);
  ~Symbolizer() override;
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  std::vector<CodeName> code(const ModuleId& module, std::uint64_t address) override;
  DataName data(const ModuleId& module, std::uint64_t address) override;
  std::vector<MissingModule> missing() const override { return missing_; }
  bool has_lines(const ModuleId& module) override;

 private:
  ModuleNames& names_of(const ModuleId& module);

  const ModuleFiles& files_;
  std::map<ModuleId, std::unique_ptr<ModuleNames>> modules_;
  std::vector<MissingModule> missing_;
};

}  // namespace relock
