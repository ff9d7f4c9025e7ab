#include "tools/top_target.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "interpose/profile/profile_format.h"
#include "policy/options.h"

namespace relock {

namespace {

constexpr char kProfilePrefix[] = "/relock.";
constexpr char kNotRecorded[] =
    "is not recorded by relock: start it with relock record, or with RELOCK_PROFILE=1 and "
    "librelock.so preloaded";

std::string proc(pid_t pid, const char* entry) {
  return "/proc/" + std::to_string(pid) + "/" + entry;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The header of a profile, unless the file is none.
bool read_header(const std::string& path, profile::Header* header) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return false;
  struct stat file {};
  const bool whole = fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) &&
                     pread(descriptor, header, sizeof *header, 0) == sizeof *header;
  close(descriptor);
  return whole && std::memcmp(header->magic, profile::kMagic, sizeof profile::kMagic) == 0;
}

// The process's number as it sees itself, which a container makes another one.
std::uint32_t own_number(pid_t pid) {
  std::istringstream lines(read_text(proc(pid, "status")));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("NSpid:", 0) != 0) continue;
    const std::size_t last = line.find_last_of("\t ");
    return static_cast<std::uint32_t>(std::strtoul(line.c_str() + last + 1, nullptr, 10));
  }
  return static_cast<std::uint32_t>(pid);
}

struct Mapping {
  std::string range;  // as the kernel names it: start-end
  std::string path;
};

// A line of /proc/PID/maps: range, rights, offset, device, inode, path. A newline in the path is
// written as \012.
Mapping parse_mapping(const std::string& line) {
  Mapping mapping;
  std::istringstream words(line);
  std::string skipped;
  words >> mapping.range >> skipped >> skipped >> skipped >> skipped >> std::ws;
  std::getline(words, mapping.path);
  for (std::size_t at = 0; (at = mapping.path.find("\\012", at)) != std::string::npos; ++at) {
    mapping.path.replace(at, 4, "\n");
  }
  return mapping;
}

std::vector<Mapping> mappings(pid_t pid, const char* holding) {
  std::vector<Mapping> found;
  std::istringstream lines(read_text(proc(pid, "maps")));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(holding) != std::string::npos) found.push_back(parse_mapping(line));
  }
  return found;
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  DIR* entries = opendir("/proc");
  if (entries == nullptr) return children;
  while (const dirent* entry = readdir(entries)) {
    const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    // The name in parentheses may hold anything; state and parent follow the last one.
    const std::string stat = read_text(proc(pid, "stat"));
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 > stat.size()) continue;
    children.emplace(static_cast<pid_t>(std::atoi(stat.c_str() + end + 4)), pid);
  }
  closedir(entries);
  return children;
}

// The process itself, then those that it started, parents first.
std::vector<pid_t> family(pid_t pid) {
  const std::multimap<pid_t, pid_t> children = children_by_parent();
  std::vector<pid_t> all = {pid};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [first, last] = children.equal_range(all[i]);
    for (auto child = first; child != last; ++child) all.push_back(child->second);
  }
  return all;
}

bool will_be_recorded(pid_t pid) {
  const std::string environment = '\0' + read_text(proc(pid, "environ"));
  return environment.find(std::string("\0RELOCK_PROFILE=1", 17) + '\0') != std::string::npos &&
         !mappings(pid, "librelock.so").empty();
}

// The profile that a process left which has ended: the only file of its number here.
std::string left_behind(pid_t pid) {
  std::string directory = foreign_variable("RELOCK_PROFILE_DIR");
  if (directory.empty()) directory = ".";
  const std::string pattern = directory + "/relock.*." + std::to_string(pid) + ".prof";
  glob_t found{};
  std::string path;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc == 1) {
    path = found.gl_pathv[0];
  }
  globfree(&found);
  return path;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

bool is_running(pid_t pid) {
  const std::string stat = read_text(proc(pid, "stat"));
  const std::size_t end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] != 'Z' &&
         stat[end + 2] != 'X';
}

std::string profile_of_process(pid_t pid) {
  const std::uint32_t number = own_number(pid);
  std::string newest;
  std::uint64_t newest_start = 0;
  for (const Mapping& mapping : mappings(pid, kProfilePrefix)) {
    // As it is called here; as the process calls it after a chroot; a file that was deleted.
    for (const std::string& path : {mapping.path, proc(pid, "root") + mapping.path,
                                    proc(pid, "map_files/") + mapping.range}) {
      profile::Header header;
      if (!read_header(path, &header) || header.pid != number) continue;
      if (newest.empty() || header.start_monotonic_ns > newest_start) newest = path;
      newest_start = std::max(newest_start, header.start_monotonic_ns);
      break;
    }
  }
  return newest;
}

std::string TopTarget::open(const std::string& argument) {
  if (!is_number(argument)) return open_file(argument);
  const unsigned long long number = std::strtoull(argument.c_str(), nullptr, 10);
  if (number == 0 || number > 1u << 30) return "not a process ID";
  return open_process(static_cast<pid_t>(number));
}

std::string TopTarget::open_process(pid_t pid) {
  given_pid_ = true;
  if (!is_running(pid)) {
    file_ = left_behind(pid);
    return file_.empty() ? "no such process, and no profile of it here" : "";
  }
  if (access(proc(pid, "maps").c_str(), R_OK) != 0 ||
      std::ifstream(proc(pid, "maps")).peek() == EOF) {
    return "this process may not be looked at: use sudo, or name its profile";
  }
  // `relock record` stands in for the program that it started, and so does a shell.
  const std::vector<pid_t> processes = family(pid);
  for (const pid_t process : processes) {
    file_ = profile_of_process(process);
    pid_ = process;
    if (!file_.empty()) return "";
  }
  for (const pid_t process : processes) {
    pid_ = process;
    if (will_be_recorded(process)) return "";
  }
  return kNotRecorded;
}

std::string TopTarget::open_file(const std::string& path) {
  profile::Header header;
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return std::strerror(errno);
  file_ = path;
  if (!read_header(path, &header)) return "";  // its reader says in detail what is wrong
  const auto writer = static_cast<pid_t>(header.pid);
  if (same_file(profile_of_process(writer), path)) pid_ = writer;
  return "";
}

bool TopTarget::running() const { return pid_ != 0 && is_running(pid_); }

void TopTarget::follow() {
  if (!running()) return;
  const std::string now = profile_of_process(pid_);
  if (given_pid_ && !now.empty()) file_ = now;
  if (!given_pid_ && !same_file(now, file_)) pid_ = 0;  // it has become another program
}

std::string TopTarget::title() const {
  std::string name = read_text(proc(pid_, "comm"));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name + "[" + std::to_string(pid_) + "]";
}

}  // namespace relock
