#include "tools/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include "policy/options.h"
#include "tools/elf_file.h"
#include "tools/library_search.h"
#include "tools/message.h"

namespace relock {

namespace {

constexpr int kInterpreterDepth = 4;  // as many #! lines in a row as the kernel follows

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

std::string privileges_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  if ((info.st_mode & S_ISUID) != 0) return "setuid";
  if ((info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0) return "setgid";
  if (getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) return "given capabilities";
  return "";
}

// Every glibc names its dynamic linker ld-linux*, wherever it is installed.
std::string foreign_libc(const ElfFacts& facts) {
  const std::string linker = base_name(facts.interpreter);
  if (starts_with(linker, "ld-musl")) return "musl";
  if (starts_with(linker, "ld-uClibc") || starts_with(linker, "ld64-uClibc")) return "uClibc";
  if (starts_with(linker, "linker")) return "Android's bionic";
  if (!starts_with(linker, "ld-linux")) return "an unknown C library (" + facts.interpreter + ")";
  for (const std::string& name : facts.needed) {
    if (starts_with(name, "libc.musl-")) return "musl";
    if (name == "libc.so") return "another C library (" + name + ")";
  }
  return "";
}

std::string sanitizer_in(const std::vector<LibrarySearch::Object>& objects) {
  for (const LibrarySearch::Object& object : objects) {
    if (!object.facts.sanitizer.empty()) return object.facts.sanitizer;
  }
  return "";
}

// The C library's own files define the locks; what counts is who calls them.
bool is_libc(const ElfFacts& facts) {
  return starts_with(facts.soname, "libc.so.") || starts_with(facts.soname, "libpthread.so.") ||
         starts_with(facts.soname, "ld-linux");
}

Finding static_finding(const ElfFacts& facts) {
  if (facts.is_go) {
    return {Verdict::kStatic, false,
            "a statically linked Go program; its locks are its own, not the C library's", ""};
  }
  return {Verdict::kStatic, false,
          "statically linked, so no library can be put in front of its locks",
          "link it dynamically"};
}

Finding judge_libraries(const std::string& path) {
  const LibrarySearch search(foreign_variable("LD_LIBRARY_PATH"), "/etc/ld.so.cache");
  const auto objects = search.load(path);
  const std::string sanitizer = sanitizer_in(objects);
  if (!sanitizer.empty()) {
    return {Verdict::kSanitizer, false,
            "built with " + sanitizer + ", which must see the locks itself",
            "build it without the sanitizer"};
  }
  bool opens_libraries = false;
  for (const LibrarySearch::Object& object : objects) {
    if (is_libc(object.facts)) continue;
    // Without a table of symbols nothing speaks against it.
    if (object.facts.imports_locks || !object.facts.has_symbols)
      return {Verdict::kWorks, false, "relock can work on it", ""};
    opens_libraries |= object.facts.imports_dlopen;
  }
  std::string sentence = "neither it nor its libraries import a pthread lock";
  if (objects[0].facts.is_go) {
    sentence += " (a Go program has its own locks)";
  } else if (opens_libraries) {
    sentence += ", though it may open libraries that do";
  }
  return {Verdict::kNoLocks, false, sentence, ""};
}

Finding judge_elf(const std::string& path, const ElfFacts& facts) {
  if (facts.state == ElfFacts::State::kForeign) {
    return {Verdict::kArchitecture, false,
            "built for another architecture (" + facts.architecture + ")",
            "use a relock built for that architecture"};
  }
  if (facts.state == ElfFacts::State::kBroken) {
    return {Verdict::kNotAProgram, false, "a damaged or incomplete ELF file", ""};
  }
  if (facts.interpreter.empty()) {
    const bool library = facts.shared_object && !facts.position_independent_program;
    if (!library) return static_finding(facts);
    return {Verdict::kNotAProgram, false, "a shared library, not a program", ""};
  }
  const std::string libc = foreign_libc(facts);
  if (!libc.empty()) {
    return {Verdict::kLibc, false, "linked against " + libc + "; relock works with glibc",
            "link it against glibc"};
  }
  const std::string privileges = privileges_of(path);
  if (!privileges.empty()) {
    return {Verdict::kPrivileged, false,
            privileges + ", so the dynamic linker ignores preloaded libraries",
            "use a copy of it without those rights"};
  }
  return judge_libraries(path);
}

// The program that a first line "#!..." names. /usr/bin/env is looked through, since it only
// finds the real one.
std::string interpreter_of(const std::string& line) {
  std::istringstream words(line.substr(2));
  std::string program;
  words >> program;
  if (base_name(program) != "env") return program;
  std::string word;
  while (words >> word) {
    if (word[0] == '-' || word.find('=') != std::string::npos) continue;
    int status = 0;
    const std::string found = find_program(word, &status);
    return status == 0 ? found : word;
  }
  return program;
}

Finding examine(const std::string& path, int depth);

Finding examine_script(const std::string& path, int depth) {
  std::ifstream file(path, std::ios::binary);
  char head[256] = {};
  file.read(head, sizeof head - 1);
  const std::string text(head, static_cast<std::size_t>(file.gcount()));
  if (text.find('\0') != std::string::npos) {
    return {Verdict::kNotAProgram, false, "neither an ELF program nor a script", ""};
  }
  // Without a #! line the kernel refuses it and the caller's execvp hands it to /bin/sh.
  const bool has_line = starts_with(text, "#!");
  const std::string interpreter =
      has_line ? interpreter_of(text.substr(0, text.find('\n'))) : "/bin/sh";
  if (depth == 0 || access(interpreter.c_str(), X_OK) != 0) {
    return {Verdict::kNotAProgram, true,
            "a script whose interpreter " + interpreter + " cannot be run", ""};
  }
  Finding finding = examine(interpreter, depth - 1);
  finding.is_script = true;
  finding.sentence = "a script for " + interpreter + ": " + finding.sentence;
  return finding;
}

Finding examine(const std::string& path, int depth) {
  if (access(path.c_str(), R_OK) != 0) {
    return {Verdict::kNotAProgram, false, "not readable, so nothing is known about it", ""};
  }
  const ElfFacts facts = read_elf(path);
  if (facts.state == ElfFacts::State::kNotElf) return examine_script(path, depth);
  return judge_elf(path, facts);
}

bool is_runnable(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

Finding examine_program(const std::string& path) { return examine(path, kInterpreterDepth); }

std::string find_program(const std::string& name, int* status) {
  *status = 127;
  if (name.empty()) return "";
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), F_OK) == 0) *status = is_runnable(name) ? 0 : 126;
    return name;
  }
  const std::string path = foreign_variable("PATH");
  std::istringstream directories(path.empty() ? "/bin:/usr/bin" : path);
  std::string directory;
  while (std::getline(directories, directory, ':')) {
    std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (access(candidate.c_str(), F_OK) != 0) continue;
    *status = is_runnable(candidate) ? 0 : 126;
    if (*status == 0) return candidate;
  }
  return name;
}

int check_command(const std::string& name) {
  int status = 0;
  std::string path = find_program(name, &status);
  // A file in the current directory is what somebody means who names one that PATH does not have.
  if (status == 127 && access(name.c_str(), F_OK) == 0) path = name;
  if (access(path.c_str(), F_OK) != 0) return fail(kUsage, name, "no such program");
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return fail(kUsage, name, "not a file");
  }
  if (access(path.c_str(), R_OK) != 0) return fail(kUsage, name, "cannot be read");
  const Finding finding = examine_program(path);
  if (finding.verdict == Verdict::kWorks && !is_runnable(path)) {
    return fail(kUsage, name, "not an executable file");
  }
  printf("%s: %s\n", name.c_str(), finding.sentence.c_str());
  return finding.verdict == Verdict::kWorks ? kOk : kFailed;
}

}  // namespace relock
