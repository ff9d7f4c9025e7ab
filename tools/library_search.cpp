#include "tools/library_search.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

namespace relock {

namespace {

// Layout of the cache that ldconfig writes: a magic text, then a header and entries whose string
// offsets count from the magic text. Older files carry another table in front of it.
constexpr char kCacheMagic[] = "glibc-ld.so.cache1.1";
constexpr std::size_t kCacheHeaderSize = 48;
constexpr std::size_t kCacheEntrySize = 24;

std::uint32_t word_at(const std::string& data, std::size_t offset) {
  std::uint32_t word = 0;
  memcpy(&word, data.data() + offset, sizeof word);
  return word;
}

// The text at an offset, or nothing when it runs out of the file.
std::optional<std::string> text_at(const std::string& data, std::size_t offset) {
  if (offset >= data.size()) return std::nullopt;
  const std::size_t end = data.find('\0', offset);
  if (end == std::string::npos) return std::nullopt;
  return data.substr(offset, end - offset);
}

// Directories of a search path. An empty one means the current directory, as for the linker.
std::vector<std::string> split_path(const std::string& path, const char* separators) {
  std::vector<std::string> parts;
  if (path.empty()) return parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = path.find_first_of(separators, begin);
    const std::string part = path.substr(begin, end - begin);
    parts.push_back(part.empty() ? "." : part);
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

std::string directory_of(const std::string& path) {
  char resolved[PATH_MAX];
  const std::string real = realpath(path.c_str(), resolved) != nullptr ? resolved : path;
  const std::size_t slash = real.rfind('/');
  return slash == std::string::npos ? "." : real.substr(0, slash);
}

std::vector<std::string> expand_all(const std::string& path, const std::string& origin) {
  std::vector<std::string> directories = split_path(path, ":");
  for (std::string& directory : directories) directory = expand_origin(directory, origin);
  return directories;
}

// The linker passes over files of another architecture, and so does this.
bool loadable(const std::string& path) {
  return access(path.c_str(), R_OK) == 0 && read_elf(path).state == ElfFacts::State::kReadable;
}

std::string find_in(const std::vector<std::string>& directories, const std::string& name) {
  for (std::string candidate : directories) {
    candidate += "/";
    candidate += name;
    if (loadable(candidate)) return candidate;
  }
  return "";
}

#if defined(__x86_64__)
constexpr char kLib[] = "lib/x86_64-linux-gnu";
#else
constexpr char kLib[] = "lib/aarch64-linux-gnu";
#endif

// Where the linker looks without being told to.
std::vector<std::string> standard_directories() {
  return {std::string("/") + kLib,
          std::string("/usr/") + kLib,
          "/lib64",
          "/usr/lib64",
          "/lib",
          "/usr/lib"};
}

}  // namespace

std::multimap<std::string, std::string> read_library_cache(const std::string& path) {
  std::multimap<std::string, std::string> cache;
  std::ifstream file(path, std::ios::binary);
  std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t start = data.find(kCacheMagic);
  if (start == std::string::npos) return cache;
  data.erase(0, start);
  if (data.size() < kCacheHeaderSize) return cache;
  const std::size_t entries = word_at(data, sizeof kCacheMagic - 1);
  if (entries > (data.size() - kCacheHeaderSize) / kCacheEntrySize) return cache;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = kCacheHeaderSize + i * kCacheEntrySize;
    const auto soname = text_at(data, word_at(data, entry + 4));
    const auto location = text_at(data, word_at(data, entry + 8));
    if (soname && location) cache.emplace(*soname, *location);
  }
  return cache;
}

std::string expand_origin(std::string directory, const std::string& origin) {
  const std::pair<const char*, std::string> tokens[] = {
      {"${ORIGIN}", origin}, {"$ORIGIN", origin}, {"${LIB}", kLib}, {"$LIB", kLib}};
  for (const auto& [token, value] : tokens) {
    std::size_t at = 0;
    while ((at = directory.find(token, at)) != std::string::npos) {
      directory.replace(at, strlen(token), value);
      at += value.size();
    }
  }
  return directory;
}

LibrarySearch::LibrarySearch(const std::string& library_path, const std::string& cache)
    : library_path_(split_path(library_path, ":;")), cache_(read_library_cache(cache)) {}

std::string LibrarySearch::find(const Waiting& wanted, const Object& requester) const {
  const std::string origin = directory_of(requester.path);
  if (wanted.name.find('/') != std::string::npos) {
    const std::string path = expand_origin(wanted.name, origin);
    return loadable(path) ? path : "";
  }
  // RUNPATH, where there is one, replaces RPATH and counts for this object's own needs only.
  std::string found;
  if (requester.facts.runpath.empty()) found = find_in(wanted.rpath_chain, wanted.name);
  if (found.empty()) found = find_in(library_path_, wanted.name);
  if (found.empty()) found = find_in(expand_all(requester.facts.runpath, origin), wanted.name);
  if (!found.empty()) return found;
  const auto [first, last] = cache_.equal_range(wanted.name);
  for (auto entry = first; entry != last; ++entry) {
    if (loadable(entry->second)) return entry->second;
  }
  return find_in(standard_directories(), wanted.name);
}

std::vector<LibrarySearch::Object> LibrarySearch::load(const std::string& program) const {
  std::vector<Object> objects = {{program, read_elf(program)}};
  std::vector<std::vector<std::string>> chains(1);
  std::set<std::string> seen;
  std::deque<Waiting> queue;
  // Breadth first, as the linker does it.
  for (std::size_t i = 0; i < objects.size(); ++i) {
    std::vector<std::string> chain = chains[i];
    if (objects[i].facts.runpath.empty()) {
      const auto own = expand_all(objects[i].facts.rpath, directory_of(objects[i].path));
      chain.insert(chain.begin(), own.begin(), own.end());
    }
    for (const std::string& name : objects[i].facts.needed) queue.push_back({name, i, chain});
    for (; !queue.empty(); queue.pop_front()) {
      const Waiting& wanted = queue.front();
      if (!seen.insert(wanted.name).second) continue;
      const std::string path = find(wanted, objects[wanted.requester]);
      if (path.empty()) continue;
      objects.push_back({path, read_elf(path)});
      chains.push_back(wanted.rpath_chain);
    }
  }
  return objects;
}

}  // namespace relock
