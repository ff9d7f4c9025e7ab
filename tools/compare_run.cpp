#include "tools/compare_run.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>

#include "tools/run.h"

namespace relock {

namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr double kGrace_s = 1;  // between asking a program to end and killing it

double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

timespec to_timespec(double s) {
  const auto whole = static_cast<time_t>(s);
  return {whole, static_cast<long>((s - static_cast<double>(whole)) * 1e9)};
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

// Asks the program and what it started to end, then makes them.
void end_group(pid_t child) {
  kill(-child, SIGTERM);
  for (const double until = now_s() + kGrace_s; !has_ended(child) && now_s() < until;) {
    const timespec pause = {0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
  kill(-child, SIGKILL);
}

// An unnamed file for one stream of the program, or -1.
int open_capture() {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return -1;
  const int copy = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
  std::fclose(file);
  return copy;
}

std::string read_all(int file) {
  std::string text;
  char part[65536];
  for (off_t at = 0;;) {
    const ssize_t got = pread(file, part, sizeof part, at);
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
    at += got;
  }
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// A file on standard input is there for every run from its beginning; anything else for none.
void open_input() {
  struct stat info {};
  const bool regular = fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode);
  int input = regular ? open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC) : -1;
  if (input < 0) input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) dup2(input, STDIN_FILENO);
}

}  // namespace

struct Runner::Streams {
  int output = -1;  // -1: /dev/null
  int errors = -1;
  ~Streams() {
    if (output >= 0) close(output);
    if (errors >= 0) close(errors);
  }
};

Runner::Runner(const ComparePlan& plan, std::string path, std::string preload,
               std::string bare_preload)
    : plan_(plan),
      path_(std::move(path)),
      preload_(std::move(preload)),
      bare_preload_(std::move(bare_preload)) {
  sigemptyset(&awaited_);
  sigaddset(&awaited_, SIGCHLD);
  for (const int number : kEnding) sigaddset(&awaited_, number);
  signal(SIGCHLD, SIG_DFL);  // ignored, it would take the children's figures with it
  sigprocmask(SIG_BLOCK, &awaited_, &before_);
}

void Runner::become_program(const std::string& lock, const Streams& streams, int report) {
  setsid();  // no terminal: a program that wants to ask something fails instead of stopping
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  open_input();
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(streams.output >= 0 ? streams.output : nowhere, STDOUT_FILENO);
  dup2(streams.errors >= 0 ? streams.errors : nowhere, STDERR_FILENO);
  const std::string& preload = lock.empty() ? bare_preload_ : preload_;
  if (preload.empty()) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", preload.c_str(), 1);
  }
  if (lock == kRulesContestant) {
    setenv("RELOCK_RULES", plan_.rules.c_str(), 1);
  } else if (!lock.empty()) {
    setenv("RELOCK_LOCK", lock.c_str(), 1);
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  const int error = become(path_, plan_.command);
  // A write that fails leaves the parent to see a program that ended with 127.
  if (write(report, &error, sizeof error) < 0) _exit(127);
  _exit(127);
}

// The child's pid, or -errno. The pipe closes at a successful exec and carries errno otherwise.
int Runner::start(const std::string& lock, const Streams& streams) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return -errno;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) become_program(lock, streams, report[1]);
  const int failed_fork = errno;
  close(report[1]);
  int error = 0;
  const bool failed = child < 0 || read(report[0], &error, sizeof error) == sizeof error;
  close(report[0]);
  if (!failed) return child;
  if (child < 0) return -failed_fork;
  waitpid(child, nullptr, 0);
  return -error;
}

// False when a signal for us came first. The child is dead in any case.
bool Runner::wait_for(pid_t child, double timeout_s, RunResult* result) {
  const double until = now_s() + timeout_s;
  while (!has_ended(child)) {
    const double left = timeout_s > 0 ? until - now_s() : 1;
    if (left <= 0) {
      result->timed_out = true;
      end_group(child);
      break;
    }
    const timespec limit = to_timespec(left);
    const int number = sigtimedwait(&awaited_, nullptr, &limit);
    if (number <= 0 || number == SIGCHLD) continue;
    interrupted_by_ = number;
    end_group(child);
    break;
  }
  return interrupted_by_ == 0;
}

void Runner::collect(const Streams& streams, RunResult* result) const {
  const std::string output = streams.output >= 0 ? read_all(streams.output) : "";
  const std::string errors = streams.errors >= 0 ? read_all(streams.errors) : "";
  result->output_size = output.size();
  result->output_hash = std::hash<std::string_view>()(output);
  result->last_words = last_line(errors);
  if (!plan_.metric) return;
  result->figure = find_figure(output, *plan_.metric);
  if (!result->figure) result->figure = find_figure(errors, *plan_.metric);
}

Runner::End Runner::run(const std::string& lock, double timeout_s, RunResult* result) {
  *result = RunResult{};
  Streams streams;
  if (plan_.metric || plan_.same_output) {
    streams.output = open_capture();
    if (streams.output < 0) return End::kNotStarted;
  }
  streams.errors = open_capture();
  const double begin = now_s();
  const int child = start(lock, streams);
  if (child < 0) {
    errno = -child;
    return End::kNotStarted;
  }
  const bool measured = wait_for(child, timeout_s, result);
  const double end = now_s();
  rusage usage{};
  // Not yet waited for, it keeps its number, so nobody else's group can be meant.
  if (measured && has_ended(child)) kill(-child, SIGKILL);
  while (wait4(child, &result->status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (!measured) return End::kInterrupted;
  result->wall_s = end - begin;
  result->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  result->voluntary = static_cast<double>(usage.ru_nvcsw);
  result->involuntary = static_cast<double>(usage.ru_nivcsw);
  result->peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  collect(streams, result);
  return End::kMeasured;
}

}  // namespace relock
