#include "tools/top_cmd.h"

#include <time.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <cstdio>
#include <cstdlib>

#include "policy/options.h"
#include "tools/message.h"
#include "tools/top_screen.h"
#include "tools/top_session.h"

namespace relock {

namespace {

constexpr double kLeastInterval_s = 0.1;
constexpr double kMostInterval_s = 3600;
constexpr std::size_t kHeadRows = 5;
constexpr std::size_t kUnboundColumns = 4096;  // into a file: names in full

bool read_interval(const std::string& text, std::uint64_t* interval_ns) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return false;
  if (!(seconds >= kLeastInterval_s && seconds <= kMostInterval_s)) return false;
  *interval_ns = static_cast<std::uint64_t>(seconds * 1e9);
  return true;
}

// One frame of an interval that is waited for; of the whole run when the process has ended.
int print_once(TopSession& session, const TopOptions& options) {
  if (!session.ended() && session.has_profile()) {
    const timespec interval = {static_cast<time_t>(session.interval_ns() / 1000000000),
                               static_cast<long>(session.interval_ns() % 1000000000)};
    nanosleep(&interval, nullptr);
    session.update();
  }
  winsize size{};
  const bool terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  session.view().keys = false;
  for (const TopLine& line :
       session.frame(terminal ? size.ws_col : kUnboundColumns, kHeadRows + options.top)) {
    std::printf("%s\n", line.text.c_str());
  }
  return std::fflush(stdout) == 0 ? kOk : fail(kFailed, "standard output", "cannot be written");
}

int show(TopSession& session, TerminalKind kind) {
  if (kind == TerminalKind::kDumb) {
    run_roll(session);
    return kOk;
  }
  const std::string wrong = run_screen(session);
  return wrong.empty() ? kOk : fail(kUsage, "this terminal", wrong + ": use --once");
}

int refuse_terminal(TerminalKind kind) {
  if (kind == TerminalKind::kUnknown) {
    return fail(kUsage, std::string("TERM=") + foreign_variable("TERM"),
                "no such terminal is known here: set another TERM, or use --once");
  }
  const char* what = isatty(STDOUT_FILENO) == 0 ? "standard output" : "standard input";
  return fail(kUsage, what, "not a terminal: use --once for a frame of text");
}

}  // namespace

int top_command(const TopOptions& options) {
  std::uint64_t interval_ns = 0;
  if (!read_interval(options.interval, &interval_ns)) {
    return fail(kUsage, "--interval " + options.interval, "accepted: 0.1..3600 seconds");
  }
  const TerminalKind kind = options.once ? TerminalKind::kDumb : terminal_kind();
  const bool usable = kind == TerminalKind::kDumb || kind == TerminalKind::kScreen;
  if (!usable) return refuse_terminal(kind);
  // Names come from the files of this machine; no server is asked for debug information.
  unsetenv("DEBUGINFOD_URLS");
  const ModuleFiles files;
  TopSession session(files, interval_ns);
  const std::string wrong = session.open(options.target);
  if (!wrong.empty()) return fail(kUsage, options.target, wrong);
  return options.once ? print_once(session, options) : show(session, kind);
}

}  // namespace relock
