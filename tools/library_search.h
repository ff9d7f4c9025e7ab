// Finds a program's libraries where the dynamic linker would, without running anything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/elf_file.h"

namespace relock {

// The paths that ld.so.cache knows for each soname. A file that is missing or damaged gives none.
std::multimap<std::string, std::string> read_library_cache(const std::string& path);

// Replaces $ORIGIN and ${ORIGIN}, and $LIB with what Debian and others use, in one directory.
std::string expand_origin(std::string directory, const std::string& origin);

class LibrarySearch {
 public:
  // `library_path` is LD_LIBRARY_PATH's value, `cache` the path of ld.so.cache.
  LibrarySearch(const std::string& library_path, const std::string& cache);

  struct Object {
    std::string path;
    ElfFacts facts;
  };

  // The program and every library it needs, directly or through others, each once. A library that
  // is not found is left out.
  std::vector<Object> load(const std::string& program) const;

 private:
  struct Waiting {
    std::string name;
    std::size_t requester;                 // index of the object that needs it
    std::vector<std::string> rpath_chain;  // RPATHs of the requester and of those that loaded it
  };

  std::string find(const Waiting& wanted, const Object& requester) const;

  std::vector<std::string> library_path_;
  std::multimap<std::string, std::string> cache_;
};

}  // namespace relock
