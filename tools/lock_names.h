// What the locks of one profile are called.
#pragma once

#include <string>
#include <vector>

#include "tools/profile_reader.h"
#include "tools/report_model.h"

namespace relock {

// Finds the module of an address, as the profile recorded it.
const profile::ModuleRow* module_at(const Profile& profile, std::uint64_t address,
                                    std::uint32_t generation);
ModuleId module_id(const profile::ModuleRow& row);

struct LockName {
  std::string text;
  std::string place;     // file:line that goes with it; may be empty
  std::string identity;  // the same for the same object of another process; empty on the heap
  NamedBy named_by = NamedBy::kAddress;
};

class LockNames {
 public:
  LockNames(const Profile& profile, NameSource& names) : profile_(profile), names_(names) {}

  // Its symbol if it lies in a module's data, else where it was made, else where it was first
  // waited for, else its address.
  LockName object_name(const profile::LockRow& row) const;
  // The same, but where it was made comes before its symbol.
  LockName init_name(const profile::LockRow& row) const;

 private:
  bool name_by_symbol(const profile::LockRow& row, LockName* name) const;
  bool name_by_init(const profile::LockRow& row, LockName* name) const;
  bool name_by_wait(const profile::LockRow& row, LockName* name) const;
  bool name_by_code(std::uint64_t address, std::uint32_t generation, LockName* name) const;

  const Profile& profile_;
  NameSource& names_;
};

// "cache.cpp:120", without directories; empty when unknown.
std::string short_place(const std::string& file, std::uint32_t line);
std::string base_name(const std::string& path);
std::string hex(std::uint64_t value);

}  // namespace relock
