#include "tools/symbolize.h"

#include "tools/module_names.h"

namespace relock {

Symbolizer::Symbolizer(const ModuleFiles& files) : files_(files) {}
Symbolizer::~Symbolizer() = default;

ModuleNames& Symbolizer::names_of(const ModuleId& module) {
  std::unique_ptr<ModuleNames>& names = modules_[module];
  if (names == nullptr) {
    names = std::make_unique<ModuleNames>(files_, module);
    // The kernel's own object has no file.
    const bool has_file = module.path.find('/') != std::string::npos;
    if (has_file && !names->reason().empty()) missing_.push_back({module, names->reason()});
  }
  return *names;
}

std::vector<CodeName> Symbolizer::code(const ModuleId& module, std::uint64_t address) {
  return names_of(module).code(address);
}

DataName Symbolizer::data(const ModuleId& module, std::uint64_t address) {
  return names_of(module).data(address);
}

bool Symbolizer::has_lines(const ModuleId& module) { return names_of(module).has_lines(); }

}  // namespace relock
