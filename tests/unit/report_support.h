// Reports of profiles in memory, with made-up names.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/profile_builder.h"
#include "tools/report_build.h"

namespace relock {

struct TestNames : NameSource {
  std::map<std::uint64_t, std::vector<CodeName>> functions;  // by address in the module's file
  std::map<std::uint64_t, std::string> objects;
  std::set<std::string> lost;  // paths of modules that cannot be found
  std::vector<MissingModule> found_missing;

  void function(std::uint64_t address, const std::string& name, const std::string& file = "",
                std::uint32_t line = 0) {
    functions[address].push_back({name, "", file, line, line, false});
  }
  // Before what is at the address already.
  void inlined(std::uint64_t address, const std::string& name, const std::string& file,
               std::uint32_t line) {
    auto& there = functions[address];
    there.insert(there.begin(), {name, "", file, line, line, true});
  }

  std::vector<CodeName> code(const ModuleId& module, std::uint64_t address) override {
    if (is_lost(module)) return {};
    const auto known = functions.find(address);
    return known == functions.end() ? std::vector<CodeName>{} : known->second;
  }
  DataName data(const ModuleId& module, std::uint64_t address) override {
    const auto next = objects.upper_bound(address);
    if (is_lost(module) || next == objects.begin()) return {};
    const auto known = std::prev(next);
    if (address - known->first >= 64) return {};
    return {known->second, address - known->first};
  }
  std::vector<MissingModule> missing() const override { return found_missing; }
  bool has_lines(const ModuleId&) override { return true; }

 private:
  bool is_lost(const ModuleId& module) {
    if (lost.count(module.path) == 0) return false;
    for (const MissingModule& known : found_missing) {
      if (known.id == module) return true;
    }
    found_missing.push_back({module, "not found"});
    return true;
  }
};

inline Report report_of(std::vector<std::vector<char>> files, NameSource& names,
                        GroupBy by = GroupBy::kLock) {
  std::vector<NamedProfile> profiles(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    profiles[i].file = "file" + std::to_string(i) + ".prof";
    REQUIRE(profiles[i].profile.parse(std::move(files[i])) == "");
  }
  return build_report(profiles, names, by);
}

inline Report report_of(const profile::ProfileBuilder& builder, NameSource& names,
                        GroupBy by = GroupBy::kLock) {
  std::vector<std::vector<char>> files(1, builder.bytes());
  return report_of(std::move(files), names, by);
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace relock
