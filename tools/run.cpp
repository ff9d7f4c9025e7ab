#include "tools/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>

#include "policy/options.h"
#include "tools/message.h"
#include "tools/preload.h"

namespace relock {

namespace {

constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// Everything that must hold before the program starts. 0 and the file to run, or a status.
int prepare(const RunRequest& request, std::string* path) {
  if (request.command.empty()) return fail(kUsage, "no program given", "nothing was started");
  int status = set_variables(request);
  if (status == kOk) status = preload_library();
  if (status == kOk) status = admit_program(request.command[0], path);
  return status;
}

int exec_failed(const std::string& name, int error) {
  return fail(error == ENOENT ? 127 : 126, name, strerror(error));
}

// ---- record: the program is a child, and this process only stands in for it ---------------

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (int signal_number : kForwarded) sigaddset(&set, signal_number);
  return set;
}

// Starts the program; its pid, or -errno when it could not be executed. The pipe closes at a
// successful exec and carries errno otherwise.
int start_child(const std::string& path, const std::vector<std::string>& command,
                const sigset_t& mask) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return -errno;
  const pid_t child = fork();
  if (child < 0) return -errno;
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    const int error = become(path, command);
    // A write that fails leaves the parent to see a child that ended with 127.
    if (write(report[1], &error, sizeof error) < 0) _exit(127);
    _exit(127);
  }
  close(report[1]);
  int error = 0;
  const bool failed = read(report[0], &error, sizeof error) == sizeof error;
  close(report[0]);
  if (!failed) return child;
  waitpid(child, nullptr, 0);
  return -error;
}

// Waits until the child has ended, passing on the signals that were meant for it. A signal from
// the terminal has reached the child already: it goes to the whole foreground group.
int wait_for_child(pid_t child, const sigset_t& awaited) {
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    siginfo_t info;
    const int signal_number = sigwaitinfo(&awaited, &info);
    if (signal_number < 0 || signal_number == SIGCHLD) continue;
    if (info.si_code == SI_KERNEL || info.si_pid == child) continue;
    kill(child, signal_number);
  }
}

// Ends as the child did. Its core dump, if there was one, is not overwritten by ours.
[[noreturn]] void end_like(int status) {
  if (WIFEXITED(status)) exit(WEXITSTATUS(status));
  const int signal_number = WTERMSIG(status);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(signal_number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  fflush(nullptr);
  raise(signal_number);
  _exit(128 + signal_number);
}

using Profiles = std::map<std::string, timespec>;

Profiles profiles_in(const std::string& directory) {
  Profiles profiles;
  DIR* entries = opendir(directory.c_str());
  if (entries == nullptr) return profiles;
  while (const dirent* entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (name.rfind("relock.", 0) != 0 || name.size() < 5 ||
        name.compare(name.size() - 5, 5, ".prof") != 0) {
      continue;
    }
    struct stat info {};
    std::string path = directory;
    path += "/";
    path += name;
    if (stat(path.c_str(), &info) == 0) profiles[path] = info.st_mtim;
  }
  closedir(entries);
  return profiles;
}

void announce_profiles(const std::string& directory, const Profiles& before) {
  bool any = false;
  for (const auto& [path, time] : profiles_in(directory)) {
    const auto old = before.find(path);
    if (old != before.end() && old->second.tv_sec == time.tv_sec &&
        old->second.tv_nsec == time.tv_nsec) {
      continue;
    }
    any = true;
    fprintf(stderr, "relock: profile: %s (relock report %s)\n", path.c_str(), path.c_str());
  }
  if (!any) warn(directory, "no profile was written: no thread had to wait for a lock");
}

int prepare_directory(const std::string& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0 && mkdir(directory.c_str(), 0777) != 0) {
    return fail(kUsage, directory, std::string(strerror(errno)) + ": nothing was started");
  }
  if (stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      access(directory.c_str(), W_OK | X_OK) != 0) {
    return fail(kUsage, directory, "not a directory to write to: nothing was started");
  }
  return kOk;
}

// The program may change its own directory, so the place is made absolute.
std::string absolute(const std::string& directory) {
  char* resolved = realpath(directory.c_str(), nullptr);
  std::string path = resolved == nullptr ? directory : resolved;
  free(resolved);
  return path;
}

}  // namespace

int become(const std::string& path, const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 2);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  if (errno != ENOEXEC) return errno;
  char shell[] = "/bin/sh";
  arguments[0] = const_cast<char*>(path.c_str());
  arguments.insert(arguments.begin(), shell);
  execv(shell, arguments.data());
  return errno;
}

int run_command(const RunRequest& request) {
  std::string path;
  const int status = prepare(request, &path);
  if (status != kOk) return status;
  return exec_failed(request.command[0], become(path, request.command));
}

int record_command(const RunRequest& request, const std::string& given) {
  const std::string stated = given.empty() ? foreign_variable("RELOCK_PROFILE_DIR") : given;
  const std::string directory = stated.empty() ? std::string(1, '.') : stated;
  int status = prepare_directory(directory);
  if (status != kOk) return status;
  const std::string place = absolute(directory);
  RunRequest profiled = request;
  profiled.variables.emplace_back("RELOCK_PROFILE", "1");
  profiled.variables.emplace_back("RELOCK_PROFILE_DIR", place);
  std::string path;
  status = prepare(profiled, &path);
  if (status != kOk) return status;

  const sigset_t awaited = awaited_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  const Profiles old = profiles_in(place);
  const int child = start_child(path, request.command, before);
  if (child < 0) return exec_failed(request.command[0], -child);
  status = wait_for_child(child, awaited);
  announce_profiles(place, old);
  end_like(status);
}

}  // namespace relock
