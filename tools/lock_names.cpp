#include "tools/lock_names.h"

#include <array>
#include <cstdio>

#include "tools/demangle.h"
#include "tools/lock_wrappers.h"

namespace relock {

using namespace profile;

const ModuleRow* module_at(const Profile& profile, std::uint64_t address,
                           std::uint32_t generation) {
  const ModuleRow* found = nullptr;
  for (const ModuleRow& module : profile.modules()) {
    if (address < module.start || address >= module.end) continue;
    const std::uint32_t last = module.last_generation == 0 ? UINT32_MAX : module.last_generation;
    const bool then = generation >= module.first_generation && generation <= last;
    if (generation != 0 && then) return &module;
    found = &module;  // the latest one, when no generation fits
  }
  return found;
}

ModuleId module_id(const ModuleRow& row) {
  return {row.path, hex_digits(row.build_id, row.build_id_bytes)};
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string short_place(const std::string& file, std::uint32_t line) {
  if (file.empty()) return "";
  return base_name(file) + (line == 0 ? "" : ":" + std::to_string(line));
}

bool LockNames::name_by_symbol(const LockRow& row, LockName* name) const {
  const std::uint64_t address = key_address(row.key);
  const ModuleRow* module = module_at(profile_, address, 0);
  if (module == nullptr) return false;
  const ModuleId id = module_id(*module);
  const DataName symbol = names_.data(id, address - module->load_bias);
  if (symbol.name.empty()) {
    name->text = base_name(id.path) + "+" + hex(address - module->load_bias);
    name->identity = name->text + " " + id.build_id;
    return false;
  }
  name->text = symbol.name + (symbol.offset != 0 ? "+" + hex(symbol.offset) : "") + " (" +
               base_name(id.path) + ")";
  name->identity = name->text;
  name->named_by = NamedBy::kSymbol;
  return true;
}

bool LockNames::name_by_code(std::uint64_t address, std::uint32_t generation,
                             LockName* name) const {
  const ModuleRow* module = module_at(profile_, address, generation);
  if (module == nullptr) return false;
  const ModuleId id = module_id(*module);
  const std::uint64_t in_file = address - module->load_bias;
  const std::vector<CodeName> code = names_.code(id, in_file);
  for (const CodeName& function : code) {
    if (is_lock_wrapper(function.name) && &function != &code.back()) continue;
    name->text += function.name;
    name->place = short_place(function.file, function.line);
    return true;
  }
  name->text += base_name(id.path) + "+" + hex(in_file);
  return true;
}

bool LockNames::name_by_init(const LockRow& row, LockName* name) const {
  if (row.init_site == 0) return false;
  *name = {"made in ", "", "", NamedBy::kInit};
  // The site is where the call returns to.
  return name_by_code(row.init_site - 1, 0, name);
}

// The innermost function that is not a mere wrapper.
bool LockNames::name_by_wait(const LockRow& row, LockName* name) const {
  const std::vector<std::uint64_t> frames = profile_.frames(row.first_stack);
  const std::uint32_t generation = profile_.generation(row.first_stack);
  LockName first;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    LockName here{"waited for in ", "", "", NamedBy::kWait};
    const std::size_t prefix = here.text.size();
    if (!name_by_code(frames[i], generation, &here)) continue;
    if (first.text.empty()) first = here;
    if (is_lock_wrapper(here.text.substr(prefix))) continue;
    *name = here;
    return true;
  }
  *name = first;
  return !first.text.empty();
}

LockName LockNames::object_name(const LockRow& row) const {
  LockName in_data;
  if (name_by_symbol(row, &in_data)) return in_data;
  LockName name;
  if (!name_by_init(row, &name) && !name_by_wait(row, &name)) {
    name = {"at " + hex(key_address(row.key)), "", "", NamedBy::kAddress};
    if (!in_data.text.empty()) name = in_data;
  }
  name.identity = in_data.identity;
  return name;
}

LockName LockNames::init_name(const LockRow& row) const {
  LockName name;
  return name_by_init(row, &name) ? name : object_name(row);
}

}  // namespace relock
