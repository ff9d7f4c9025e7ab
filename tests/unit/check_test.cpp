// tools/check, tools/elf_file and tools/library_search on files made up here. Real programs are
// looked at by tests/tools/check.sh.

#include "tools/check.h"

#include <elf.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tools/elf_file.h"
#include "tools/library_search.h"

namespace {

using relock::ElfFacts;
using relock::Finding;
using relock::Verdict;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/relock-check.XXXXXX";
    root_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(root_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string put(const std::string& name, const std::string& bytes, mode_t mode = 0755) const {
    const std::string path = root_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#else
constexpr Elf64_Half kMachine = EM_AARCH64;
#endif

template <typename T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

Elf64_Ehdr elf_header(Elf64_Half machine, Elf64_Half type) {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = type;
  header.e_machine = machine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  return header;
}

// A program that asks for a dynamic linker, and is nothing more.
std::string program_with_interpreter(const std::string& interpreter) {
  Elf64_Ehdr header = elf_header(kMachine, ET_DYN);
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr segment = {};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = interpreter.size() + 1;
  return bytes_of(header) + bytes_of(segment) + interpreter + '\0';
}

TEST_CASE("check: another machine, class or byte order is another architecture", "[unit]") {
  const Folder folder;
  Finding finding =
      relock::examine_program(folder.put("riscv", bytes_of(elf_header(EM_RISCV, ET_EXEC))));
  CHECK(finding.verdict == Verdict::kArchitecture);
  CHECK(finding.sentence == "built for another architecture (RISC-V)");
  CHECK(finding.refused());
  Elf64_Ehdr header = elf_header(kMachine, ET_EXEC);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  CHECK(relock::examine_program(folder.put("class", bytes_of(header))).verdict ==
        Verdict::kArchitecture);
  header = elf_header(0, ET_EXEC);
  header.e_ident[EI_DATA] = ELFDATA2MSB;
  header.e_machine = EM_PPC64 << 8;
  finding = relock::examine_program(folder.put("order", bytes_of(header)));
  CHECK(finding.verdict == Verdict::kArchitecture);
  CHECK(finding.sentence.find("PowerPC 64") != std::string::npos);
}

TEST_CASE("check: no interpreter means statically linked", "[unit]") {
  const Folder folder;
  const Finding finding =
      relock::examine_program(folder.put("static", bytes_of(elf_header(kMachine, ET_EXEC))));
  CHECK(finding.verdict == Verdict::kStatic);
  CHECK(finding.refused());
  CHECK_FALSE(finding.advice.empty());
}

TEST_CASE("check: a library is not a program", "[unit]") {
  const Folder folder;
  const Finding finding =
      relock::examine_program(folder.put("lib.so", bytes_of(elf_header(kMachine, ET_DYN))));
  CHECK(finding.verdict == Verdict::kNotAProgram);
}

TEST_CASE("check: the dynamic linker's name tells the C library", "[unit]") {
  const Folder folder;
  const auto verdict_for = [&](const char* interpreter) {
    return relock::examine_program(folder.put("program", program_with_interpreter(interpreter)));
  };
  CHECK(verdict_for("/lib/ld-musl-x86_64.so.1").verdict == Verdict::kLibc);
  CHECK(verdict_for("/lib/ld-musl-x86_64.so.1").sentence ==
        "linked against musl; relock works with glibc");
  CHECK(verdict_for("/system/bin/linker64").verdict == Verdict::kLibc);
  CHECK(verdict_for("/lib/ld64-uClibc.so.0").verdict == Verdict::kLibc);
  CHECK(verdict_for("/opt/strange/loader").verdict == Verdict::kLibc);
  // Sections are stripped away here: what it imports is unknown, which is no reason to refuse it.
  CHECK(verdict_for("/lib64/ld-linux-x86-64.so.2").verdict == Verdict::kWorks);
  CHECK(verdict_for("/opt/other-glibc/lib/ld-linux-x86-64.so.2").verdict == Verdict::kWorks);
}

TEST_CASE("check: rights that switch preloading off are named", "[unit]") {
  const Folder folder;
  const std::string bytes = program_with_interpreter("/lib64/ld-linux-x86-64.so.2");
  CHECK(relock::examine_program(folder.put("a", bytes, 04755)).sentence.rfind("setuid", 0) == 0);
  CHECK(relock::examine_program(folder.put("b", bytes, 02755)).sentence.rfind("setgid", 0) == 0);
  // Without group execution the bit means file locking, not other rights.
  CHECK(relock::examine_program(folder.put("c", bytes, 02705)).verdict == Verdict::kWorks);
  CHECK(relock::examine_program(folder.put("d", bytes, 0755)).verdict == Verdict::kWorks);
}

TEST_CASE("check: damaged files are told apart from scripts and survive being read", "[unit]") {
  const Folder folder;
  const std::string whole = program_with_interpreter("/lib64/ld-linux-x86-64.so.2");
  for (std::size_t length = SELFMAG; length < whole.size(); ++length) {
    INFO(length);
    const Finding finding = relock::examine_program(folder.put("cut", whole.substr(0, length)));
    CHECK(finding.verdict != Verdict::kWorks);
    CHECK_FALSE(finding.is_script);
  }
  std::string wild = whole;
  memset(wild.data() + offsetof(Elf64_Ehdr, e_phoff), 0xff, 8);
  CHECK(relock::read_elf(folder.put("wild", wild)).state == ElfFacts::State::kBroken);
  Elf64_Phdr segment = {};
  segment.p_type = PT_INTERP;
  segment.p_offset = ~0ull - 4;
  segment.p_filesz = 64;
  wild = whole;
  memcpy(wild.data() + sizeof(Elf64_Ehdr), &segment, sizeof segment);
  CHECK(relock::read_elf(folder.put("wild", wild)).state == ElfFacts::State::kBroken);
}

TEST_CASE("check: every byte of a program may be wrong without a crash", "[unit]") {
  const Folder folder;
  std::ifstream self("/bin/true", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(self)), std::istreambuf_iterator<char>());
  REQUIRE(whole.size() > 1000);
  // Header, program headers, and the section headers at the end: where offsets and sizes are.
  for (std::size_t at = SELFMAG; at < whole.size(); at += at < 1000 ? 7 : 997) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    CHECK_FALSE(relock::examine_program(folder.put("damaged", damaged)).sentence.empty());
  }
}

TEST_CASE("check: a script is judged by its interpreter and never refused", "[unit]") {
  const Folder folder;
  const std::string program = folder.put("static", bytes_of(elf_header(kMachine, ET_EXEC)));
  Finding finding = relock::examine_program(folder.put("script", "#! " + program + " -x\nrest\n"));
  CHECK(finding.verdict == Verdict::kStatic);
  CHECK(finding.is_script);
  CHECK_FALSE(finding.refused());
  CHECK(finding.sentence.rfind("a script for " + program + ": ", 0) == 0);
  finding = relock::examine_program(folder.put("plain", "echo no first line\n"));
  CHECK(finding.sentence.rfind("a script for /bin/sh: ", 0) == 0);
  finding = relock::examine_program(folder.put("missing", "#!/nonexistent/shell\n"));
  CHECK(finding.verdict == Verdict::kNotAProgram);
  finding = relock::examine_program(folder.put("binary", std::string("\x01\x02\x00\x03", 4)));
  CHECK(finding.verdict == Verdict::kNotAProgram);
  CHECK_FALSE(finding.is_script);
}

TEST_CASE("check: scripts that run each other in a circle come to an end", "[unit]") {
  const Folder folder;
  const std::string path = folder.root() + "/circle";
  folder.put("circle", "#!" + path + "\n");
  CHECK(relock::examine_program(path).verdict == Verdict::kNotAProgram);
}

TEST_CASE("check: env is looked through to what it runs", "[unit]") {
  const Folder folder;
  const Finding finding =
      relock::examine_program(folder.put("script", "#!/usr/bin/env -S A=b sh -e\n"));
  CHECK(finding.sentence.find("/sh: ") != std::string::npos);
  CHECK(finding.sentence.find("/env") == std::string::npos);
}

TEST_CASE("check: names of lock calls", "[unit]") {
  for (const char* name : {"pthread_mutex_lock", "__pthread_mutex_lock", "pthread_cond_clockwait",
                           "mtx_lock", "cnd_wait", "pthread_spin_lock", "pthread_rwlock_rdlock"}) {
    INFO(name);
    CHECK(relock::is_lock_call(name));
  }
  for (const char* name : {"pthread_mutexattr_init", "pthread_create", "sem_wait", "mtx", ""}) {
    INFO(name);
    CHECK_FALSE(relock::is_lock_call(name));
  }
}

TEST_CASE("check: programs are found as execvp finds them", "[unit]") {
  const Folder folder;
  const std::string program = folder.put("tool", "#!/bin/sh\n");
  const std::string data = folder.put("data", "text", 0644);
  int status = -1;
  CHECK(relock::find_program(program, &status) == program);
  CHECK(status == 0);
  relock::find_program(data, &status);
  CHECK(status == 126);
  relock::find_program(folder.root(), &status);
  CHECK(status == 126);
  relock::find_program(folder.root() + "/nothing", &status);
  CHECK(status == 127);
  relock::find_program("", &status);
  CHECK(status == 127);
  relock::find_program("no-such-program-anywhere", &status);
  CHECK(status == 127);
  CHECK(relock::find_program("sh", &status).find("/sh") != std::string::npos);
  CHECK(status == 0);
}

TEST_CASE("library search: tokens in directories are replaced", "[unit]") {
  CHECK(relock::expand_origin("$ORIGIN/../lib", "/opt/x/bin") == "/opt/x/bin/../lib");
  CHECK(relock::expand_origin("${ORIGIN}/a:${ORIGIN}", "/o") == "/o/a:/o");
  CHECK(relock::expand_origin("/plain", "/o") == "/plain");
  CHECK(relock::expand_origin("$ORIGIN", "/a$ORIGIN") == "/a$ORIGIN");
}

TEST_CASE("library search: the system's cache knows libc", "[unit]") {
  const auto cache = relock::read_library_cache("/etc/ld.so.cache");
  CHECK(cache.count("libc.so.6") >= 1);
  CHECK(cache.count("no-such-library.so") == 0);
}

TEST_CASE("library search: a damaged cache gives nothing and no crash", "[unit]") {
  const Folder folder;
  std::ifstream file("/etc/ld.so.cache", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t start = whole.find("glibc-ld.so.cache1.1");
  REQUIRE(start != std::string::npos);
  CHECK(relock::read_library_cache(folder.put("none", "")).empty());
  CHECK(relock::read_library_cache(folder.root() + "/missing").empty());
  CHECK(relock::read_library_cache(folder.put("cut", whole.substr(0, start + 30))).empty());
  std::string wild = whole;
  memset(wild.data() + start + 20, 0xff, 4);  // the number of entries
  CHECK(relock::read_library_cache(folder.put("wild", wild)).empty());
  wild = whole;
  memset(wild.data() + start + 48 + 4, 0xff, 8);  // the first entry's two strings
  CHECK(relock::read_library_cache(folder.put("wild", wild)).size() + 1 ==
        relock::read_library_cache(folder.put("whole", whole)).size());
}

}  // namespace
