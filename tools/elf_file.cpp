#include "tools/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace relock {

namespace {

#if defined(__x86_64__)
constexpr unsigned kOurMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kOurMachine = EM_AARCH64;
#else
#error "relock knows x86-64 and aarch64"
#endif

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

std::string architecture_name(unsigned machine, unsigned char elf_class) {
  switch (machine) {
    case EM_X86_64:
      return elf_class == ELFCLASS64 ? "x86-64" : "x32";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "aarch64";
    case EM_ARM:
      return "32-bit ARM";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "PowerPC 64";
    case EM_S390:
      return "s390";
    case EM_MIPS:
      return "MIPS";
    default:
      return "machine " + std::to_string(machine);
  }
}

// The first bytes of an ELF header, the same in every class and byte order up to e_machine.
bool read_identity(int fd, ElfFacts* facts) {
  std::array<unsigned char, 20> head{};
  const ssize_t got = pread(fd, head.data(), head.size(), 0);
  if (got < SELFMAG || memcmp(head.data(), ELFMAG, SELFMAG) != 0) return false;
  facts->state = ElfFacts::State::kBroken;
  if (got < static_cast<ssize_t>(head.size())) return true;
  const bool little = head[EI_DATA] != ELFDATA2MSB;
  const unsigned machine = little ? head[18] + (head[19] << 8) : head[19] + (head[18] << 8);
  facts->architecture = architecture_name(machine, head[EI_CLASS]);
  const bool ours =
      machine == kOurMachine && head[EI_CLASS] == ELFCLASS64 && head[EI_DATA] == ELFDATA2LSB;
  facts->state = ours ? ElfFacts::State::kReadable : ElfFacts::State::kForeign;
  return true;
}

// Reads the program headers. False when one of them, or what it loads, lies beyond the file's end.
bool read_segments(Elf* elf, const GElf_Ehdr& header, ElfFacts* facts) {
  std::size_t file_size = 0;
  const char* file = elf_rawfile(elf, &file_size);
  const std::size_t table_size = std::size_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (file == nullptr || header.e_phoff > file_size || table_size > file_size - header.e_phoff) {
    return false;
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, i, &segment) == nullptr) return false;
    if (segment.p_type != PT_INTERP && segment.p_type != PT_LOAD) continue;
    if (segment.p_offset > file_size || segment.p_filesz > file_size - segment.p_offset) {
      return false;
    }
    if (segment.p_type != PT_INTERP) continue;
    facts->interpreter.assign(file + segment.p_offset,
                              strnlen(file + segment.p_offset, segment.p_filesz));
  }
  return true;
}

const char* string_at(Elf* elf, const GElf_Shdr& section, std::size_t offset) {
  const char* text = elf_strptr(elf, section.sh_link, offset);
  return text == nullptr ? "" : text;
}

void read_dynamic(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, ElfFacts* facts) {
  Elf_Data* data = elf_getdata(section, nullptr);
  GElf_Dyn entry;
  for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_NEEDED:
        facts->needed.emplace_back(string_at(elf, header, entry.d_un.d_val));
        break;
      case DT_SONAME:
        facts->soname = string_at(elf, header, entry.d_un.d_val);
        break;
      case DT_RPATH:
        facts->rpath = string_at(elf, header, entry.d_un.d_val);
        break;
      case DT_RUNPATH:
        facts->runpath = string_at(elf, header, entry.d_un.d_val);
        break;
      case DT_FLAGS_1:
        facts->position_independent_program = (entry.d_un.d_val & DF_1_PIE) != 0;
        break;
      default:
        break;
    }
  }
}

// A sanitizer's runtime shows by the function that starts it, linked in or imported.
std::string sanitizer_of(std::string_view symbol) {
  constexpr std::pair<std::string_view, const char*> kRuntimes[] = {
      {"__asan_init", "AddressSanitizer"},   {"__tsan_init", "ThreadSanitizer"},
      {"__msan_init", "MemorySanitizer"},    {"__hwasan_init", "HWAddressSanitizer"},
      {"__dfsan_init", "DataFlowSanitizer"}, {"__lsan_init", "LeakSanitizer"},
      {"__rtsan_init", "RealtimeSanitizer"},
  };
  for (const auto& [name, title] : kRuntimes) {
    if (symbol == name) return title;
  }
  return "";
}

void read_symbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, ElfFacts* facts) {
  if (header.sh_type == SHT_DYNSYM) facts->has_symbols = true;
  Elf_Data* data = elf_getdata(section, nullptr);
  GElf_Sym symbol;
  for (int i = 0; data != nullptr && gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    const std::string name = string_at(elf, header, symbol.st_name);
    if (facts->sanitizer.empty()) facts->sanitizer = sanitizer_of(name);
    if (symbol.st_shndx != SHN_UNDEF || header.sh_type != SHT_DYNSYM) continue;
    if (is_lock_call(name)) facts->imports_locks = true;
    if (name == "dlopen" || name == "dlmopen") facts->imports_dlopen = true;
  }
}

bool read_sections(Elf* elf, ElfFacts* facts) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return false;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) return false;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && strcmp(name, ".go.buildinfo") == 0) facts->is_go = true;
    if (header.sh_type == SHT_DYNAMIC) read_dynamic(elf, section, header, facts);
    if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) {
      read_symbols(elf, section, header, facts);
    }
  }
  return true;
}

}  // namespace

bool is_lock_call(const std::string& symbol) {
  std::string_view name = symbol;
  if (name.substr(0, 2) == "__") name.remove_prefix(2);
  constexpr std::string_view kFamilies[] = {"pthread_mutex_",  "pthread_spin_", "pthread_cond_",
                                            "pthread_rwlock_", "mtx_",          "cnd_"};
  for (std::string_view family : kFamilies) {
    if (name.substr(0, family.size()) == family) return true;
  }
  return false;
}

ElfFacts read_elf(const std::string& path) {
  ElfFacts facts;
  const FileDescriptor file(path);
  if (file.get() < 0 || !read_identity(file.get(), &facts)) return facts;
  if (facts.state != ElfFacts::State::kReadable) return facts;
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, EndElf> elf(elf_begin(file.get(), ELF_C_READ_MMAP, nullptr));
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr || !read_segments(elf.get(), header, &facts) ||
      !read_sections(elf.get(), &facts) || (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
    facts.state = ElfFacts::State::kBroken;
    return facts;
  }
  facts.shared_object = header.e_type == ET_DYN;
  return facts;
}

}  // namespace relock
