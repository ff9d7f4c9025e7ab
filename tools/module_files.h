// Finds the files that a profile's modules were loaded from, by build id, and the debug files that
// belong to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace relock {

// What a profile knows of a loaded object.
struct ModuleId {
  std::string path;
  std::string build_id;  // as hexadecimal digits; empty: it has none
  auto operator<=>(const ModuleId&) const = default;
};

// Bytes as hexadecimal digits.
std::string hex_digits(const void* bytes, std::size_t count);

class ModuleFiles {
 public:
  // Looks through the directory and all below it. Returns an empty string, or what is wrong.
  std::string add_directory(const std::string& directory);

  struct Found {
    int descriptor = -1;  // the caller's, unless -1
    std::string path;
    std::string reason;  // why there is none
  };
  // The file that ran: among the directories' by build id, else the one at the module's own path
  // if its build id is the module's or that has none.
  Found open_module(const ModuleId& id) const;
  // A file with debug information for this build id, among the directories'; empty when none.
  std::string debug_file(const std::string& build_id) const;

 private:
  struct File {
    std::string path;
    bool has_code = false;   // not stripped down to debug information
    bool has_debug = false;  // lines and inlined calls
  };
  void add_file(const std::string& path);

  std::multimap<std::string, File> by_build_id_;
  std::multimap<std::string, std::string> by_name_;  // for modules without a build id
};

}  // namespace relock
