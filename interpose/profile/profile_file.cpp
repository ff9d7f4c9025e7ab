#include "interpose/profile/profile_file.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "interpose/profile/process_state.h"
#include "interpose/profile/system.h"
#include "interpose/profile/text.h"

namespace relock::profile {

namespace {

constexpr int kNameTries = 10;
// What a profile leaves free on its file system: this many bytes, or a twentieth of all.
constexpr std::uint64_t kLeftFree = 1u << 30;

bool refused;          // survives fork: a child need not repeat its parent's complaint
char directory[2048];  // where profiles go, fixed at start: programs change directory

// The file of this process, or of the parent that it has not made its own yet.
struct Made {
  Path path;
  dev_t device;
  ino_t number;
};
Made made;

int refuse(const char* path, int error) {
  Text<2400> line;
  const char* reason = strerrordesc_np(error);
  line << "relock: no profile: cannot create " << path << ": "
       << (reason != nullptr ? reason : "unknown error")
       << (error == ENOSPC ? " (a twentieth, at most 1 GiB, is left free)" : "") << "\n";
  if (!__atomic_exchange_n(&refused, true, __ATOMIC_RELAXED)) say(line.c_str());
  return error;
}

// The name that the program was started by, else the file that runs.
Text<16> program_name() {
  char exe[1024] = "";
  const char* name = program_invocation_short_name;
  if (name == nullptr || *name == '\0') {
    const long length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[length > 0 ? length : 0] = '\0';
    const char* slash = std::strrchr(exe, '/');
    name = slash != nullptr ? slash + 1 : "program";
  }
  Text<16> plain;
  for (; *name != '\0'; ++name)
    plain.put(*name > ' ' && *name != '/' && *name != 127 ? *name : '_');
  return plain;
}

Path profile_path(int attempt) {
  Path path;
  path << directory << "/relock." << program_name().c_str() << "."
       << static_cast<std::uint64_t>(getpid()) << ".prof";
  if (attempt > 0) path << "." << static_cast<std::uint64_t>(attempt);
  return path;
}

// The new file's descriptor, or a negative errno value. A link is refused, never followed.
int create_file(Path& path) {
  int descriptor = -EEXIST;
  for (int attempt = 0; attempt < kNameTries && descriptor == -EEXIST; ++attempt) {
    path = profile_path(attempt);
    descriptor = sys_open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat taken;
    if (descriptor == -EEXIST && lstat(path.c_str(), &taken) == 0 && S_ISLNK(taken.st_mode)) {
      return -ELOOP;
    }
  }
  return descriptor;
}

// A program that forks a child for each request makes a file for each that waits. They must not
// take the last block from those who need it more.
bool would_fill_the_disk(int descriptor) {
  struct statfs disk {};
  if (fstatfs(descriptor, &disk) != 0 || disk.f_blocks == 0) return false;
  const std::uint64_t block = static_cast<std::uint64_t>(disk.f_bsize);
  const std::uint64_t twentieth = disk.f_blocks / 20 * block;
  return disk.f_bavail * block < kFileBytes + (twentieth < kLeftFree ? twentieth : kLeftFree);
}

// Blocks for the whole file, so that writing to the mapping cannot raise SIGBUS on a full disk.
int allocate(int descriptor) {
  rlimit limit{};
  // Beyond this limit the kernel would send SIGXFSZ, which ends most programs.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kFileBytes) return EFBIG;
  if (would_fill_the_disk(descriptor)) return ENOSPC;
  long result;
  do {
    result = system_call(SYS_fallocate, descriptor, 0, 0L, static_cast<long>(kFileBytes));
  } while (result == -EINTR);
  if (result != -EOPNOTSUPP) return static_cast<int>(-result);
  // A file system without fallocate: write the zeros.
  static const char zeros[4096] = {};
  for (std::uint32_t done = 0; done < kFileBytes; done += sizeof zeros) {
    if (const int error = sys_write_all(descriptor, zeros, sizeof zeros); error != 0) return error;
  }
  return 0;
}

void fill_command_line(Header* header) {
  const long length = readlink("/proc/self/exe", header->exe, sizeof header->exe - 1);
  header->exe[length > 0 ? length : 0] = '\0';
  const int descriptor = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  const long bytes = sys_read(descriptor, header->command_line, sizeof header->command_line - 1);
  sys_close(descriptor);
  for (long i = 0; i + 1 < bytes; ++i) {
    if (header->command_line[i] == '\0') header->command_line[i] = ' ';
  }
}

void fill_header(Header* header) {
  header->version = kFormatVersion;
  header->header_bytes = kHeaderBytes;
  header->file_bytes = kFileBytes;
  header->pid = static_cast<std::uint32_t>(getpid());
  header->start_realtime_ns = host.clock_ns(CLOCK_REALTIME);
  header->start_monotonic_ns = header->last_monotonic_ns = host.clock_ns(CLOCK_MONOTONIC);
  for (std::uint32_t i = 0; i < kSectionCount; ++i) {
    header->sections[i] = {section_offset(i), kRows[i], kRowBytes[i], 0};
  }
  header->samples_per_s = host.samples_per_s;
  header->stacks_wanted = host.stacks;
  header->module_generation = 1;
  header->nodes = host.nodes;
  copy_text(header->comm, program_name().c_str());
  copy_text(header->mutex_lock, host.mutex_lock_name);
  copy_text(header->spin_lock, host.spin_lock_name);
  copy_text(header->rwlock, host.rwlock_name);
  copy_text(header->wait, host.wait_name);
  fill_command_line(header);
  // Last: a file without it is not a profile yet.
  std::memcpy(header->magic, kMagic, sizeof kMagic);
}

Header* create_profile() {
  Path path;
  const int descriptor = create_file(path);
  if (descriptor < 0) {
    refuse(path.c_str(), -descriptor);
    return nullptr;
  }
  int error = allocate(descriptor);
  void* memory = MAP_FAILED;
  struct stat created {};
  if (error == 0 && fstat(descriptor, &created) == 0) made = {path, created.st_dev, created.st_ino};
  if (error == 0) {
    memory = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  // Daemons close descriptors that they do not know, and reuse their numbers.
  sys_close(descriptor);
  if (memory == MAP_FAILED) {
    unlink(path.c_str());
    refuse(path.c_str(), error);
    return nullptr;
  }
  auto* header = static_cast<Header*>(memory);
  fill_header(header);
  return header;
}

constexpr std::uint32_t kPage = 4096;
static_assert(kHeaderBytes % kPage == 0 && kFileBytes % kPage == 0);

bool is_zero(const char* page) {
  std::uint64_t bits = 0;
  for (std::uint32_t at = 0; at < kPage && bits == 0; at += 64) {
    for (std::uint32_t word = 0; word < 64; word += 8) {
      bits |= *reinterpret_cast<const std::uint64_t*>(page + at + word);
    }
  }
  return bits == 0;
}

void futex(std::uint32_t& word, int operation, std::uint32_t value) {
  system_call(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

Header* open_profile() {
  if (Header* header = current_header()) return header;
  if (read(refused) || read(sandboxed)) return nullptr;
  std::uint32_t phase = kPhaseNone;
  if (exchange_if(process->phase, phase, std::uint32_t{kPhaseOpening})) {
    Header* header = create_profile();
    publish(process->header, reinterpret_cast<std::uint64_t>(header));
    publish(process->phase, std::uint32_t{header != nullptr ? kPhaseReady : kPhaseFailed});
    futex(process->phase, FUTEX_WAKE, INT32_MAX);
    return header;
  }
  while (phase == kPhaseOpening) {
    futex(process->phase, FUTEX_WAIT, kPhaseOpening);
    phase = read_acquire(process->phase);  // pairs with the publish above
  }
  return current_header();
}

void remove_profile() {
  struct stat now {};
  if (lstat(made.path.c_str(), &now) != 0) return;
  if (now.st_dev == made.device && now.st_ino == made.number) unlink(made.path.c_str());
}

void close_profile(Header* header) {
  publish(process->phase, std::uint32_t{kPhaseFailed});
  publish(process->header, std::uint64_t{0});
  char* const file = reinterpret_cast<char*>(header);
  std::uint32_t hole = kHeaderBytes;
  for (std::uint32_t at = kHeaderBytes; at < kFileBytes; at += kPage) {
    if (is_zero(file + at)) continue;
    if (at > hole) madvise(file + hole, at - hole, MADV_REMOVE);
    hole = at + kPage;
  }
  if (kFileBytes > hole) madvise(file + hole, kFileBytes - hole, MADV_REMOVE);
}

Path absolute_path(const char* given) {
  Path path;
  if (given[0] != '/') {
    char current[1024] = ".";
    if (system_call(SYS_getcwd, current, sizeof current) < 0) copy_text(current, ".");
    path << current;
    if (given[0] != '\0') path << "/";
  }
  path << given;
  return path;
}

int choose_profile_directory() {
  const Path chosen = absolute_path(host.profile_dir != nullptr ? host.profile_dir : "");
  copy_text(directory, chosen.c_str());
  if (access(directory, W_OK | X_OK) == 0) return 0;
  const int error = errno;
  return refuse(profile_path(0).c_str(), error);
}

void say(const char* line) {
  if (host.standard_error_is_the_same()) sys_write_all(2, line, std::strlen(line));
}

}  // namespace relock::profile
