// Names in one program or library, by libdw.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <map>
#include <string>
#include <vector>

#include "tools/module_files.h"
#include "tools/symbolize.h"

namespace relock {

class ModuleNames {
 public:
  ModuleNames(const ModuleFiles& files, ModuleId id);
  ~ModuleNames();
  ModuleNames(const ModuleNames&) = delete;
  ModuleNames& operator=(const ModuleNames&) = delete;

  // Why there are no names; empty when the file was opened.
  const std::string& reason() const { return reason_; }
  std::vector<CodeName> code(std::uint64_t address);
  DataName data(std::uint64_t address);
  bool has_lines();
  std::string debug_file() const { return files_.debug_file(id_.build_id); }

 private:
  struct Unit {
    std::uint64_t end;
    Dwarf_Die die;
  };
  std::string symbol(std::uint64_t address, std::uint64_t* offset);
  Dwarf_Die* unit_at(std::uint64_t address, Dwarf_Addr* bias);
  void index_units();
  std::vector<CodeName> inlined_chain(Dwarf_Die* unit, std::uint64_t address);

  const ModuleFiles& files_;
  ModuleId id_;
  std::string reason_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  bool indexed_ = false;
  Dwarf_Addr unit_bias_ = 0;
  std::map<std::uint64_t, Unit> units_;  // by the start of each range of addresses
  std::map<std::uint64_t, std::vector<CodeName>> known_;
};

}  // namespace relock
