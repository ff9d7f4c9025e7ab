#include "tools/top_screen.h"

#define NCURSES_NOMACROS
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

// term.h takes these words away.
#undef lines
#undef columns

namespace relock {

namespace {

constexpr int kQuitSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::size_t kRollRows = 24;
constexpr std::size_t kRollColumns = 80;

// Signals as readable events. They stay blocked: what is left of them at the end is dropped.
class SignalEvents {
 public:
  SignalEvents() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : kQuitSignals) sigaddset(&set, number);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~SignalEvents() { close(descriptor_); }
  SignalEvents(const SignalEvents&) = delete;
  SignalEvents& operator=(const SignalEvents&) = delete;

  int descriptor() const { return descriptor_; }
  // The next signal; 0: none.
  int next() const {
    signalfd_siginfo info{};
    const ssize_t got = ::read(descriptor_, &info, sizeof info);
    return got == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  int descriptor_ = -1;
};

std::uint64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

bool is_quit(int signal_number) {
  return std::find(std::begin(kQuitSignals), std::end(kQuitSignals), signal_number) !=
         std::end(kQuitSignals);
}

// Waits for a key, a signal, or the deadline. False: the terminal is gone.
bool wait_for_event(const SignalEvents& signals, bool keys, std::uint64_t until_ms) {
  const std::uint64_t now = monotonic_ms();
  pollfd events[2] = {{signals.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  const auto timeout_ms = static_cast<int>(until_ms > now ? until_ms - now : 0);
  const int ready = poll(events, keys ? 2 : 1, timeout_ms);
  return ready <= 0 || (events[1].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

class Terminal {
 public:
  Terminal() {
    screen_ = newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) return;
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50);
  }
  ~Terminal() {
    if (screen_ == nullptr) return;
    endwin();
    delscreen(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool usable() const { return screen_ != nullptr; }
  std::size_t rows() const { return static_cast<std::size_t>(std::max(1, getmaxy(stdscr))); }
  std::size_t columns() const { return static_cast<std::size_t>(std::max(1, getmaxx(stdscr))); }

  void draw(const std::vector<TopLine>& lines) {
    werase(stdscr);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const attr_t style = attributes(lines[i].style);
      wattr_on(stdscr, style, nullptr);
      mvwaddstr(stdscr, static_cast<int>(i), 0, shown(lines[i].text).c_str());
      wattr_off(stdscr, style, nullptr);
    }
    wrefresh(stdscr);
  }

  // Takes the size that the terminal has now.
  void resize() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
      return;
    resizeterm(size.ws_row, size.ws_col);
    clearok(stdscr, TRUE);
  }

  // Gives the terminal back to the shell until the user comes back.
  void suspend() {
    endwin();
    raise(SIGSTOP);
    resize();
    clearok(stdscr, TRUE);
  }

 private:
  static attr_t attributes(TopStyle style) {
    switch (style) {
      case TopStyle::kTitle:
        return A_BOLD;
      case TopStyle::kHeader:
        return A_REVERSE;
      case TopStyle::kSelected:
        return A_BOLD | A_UNDERLINE;
      case TopStyle::kFaint:
        return A_DIM;
      case TopStyle::kPlain:
        break;
    }
    return A_NORMAL;
  }

  // In a locale that knows ASCII alone, the bytes of other characters would be shown one by one.
  static std::string shown(std::string text) {
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return text;
    for (char& c : text) {
      if (static_cast<unsigned char>(c) >= 128) c = '?';
    }
    return text;
  }

  SCREEN* screen_ = nullptr;
};

// False: quit.
bool take_keys(TopSession& session, Terminal& terminal) {
  const std::size_t page = terminal.rows() > 8 ? terminal.rows() - 8 : 1;
  while (true) {
    const int key = wgetch(stdscr);
    if (key == ERR) return true;
    session.view().remark.clear();
    switch (key) {
      case KEY_UP:
        session.move(-1);
        break;
      case KEY_DOWN:
        session.move(1);
        break;
      case KEY_PPAGE:
        session.move(-static_cast<std::ptrdiff_t>(page));
        break;
      case KEY_NPAGE:
        session.move(static_cast<std::ptrdiff_t>(page));
        break;
      case KEY_HOME:
        session.press('g', page);
        break;
      case KEY_END:
        session.press('G', page);
        break;
      case KEY_ENTER:
        session.press('\n', page);
        break;
      default:
        if (!session.press(key, page)) return false;
    }
  }
}

// False: quit.
bool take_signals(const SignalEvents& signals, Terminal& terminal) {
  while (const int number = signals.next()) {
    if (is_quit(number)) return false;
    if (number == SIGWINCH) terminal.resize();
    if (number == SIGTSTP) terminal.suspend();
  }
  return true;
}

}  // namespace

TerminalKind terminal_kind() {
  if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0) return TerminalKind::kMissing;
  int error = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) return TerminalKind::kUnknown;
  const char* place_cursor = tigetstr("cup");
  const bool places = place_cursor != nullptr && place_cursor != reinterpret_cast<char*>(-1);
  return places ? TerminalKind::kScreen : TerminalKind::kDumb;
}

std::string run_screen(TopSession& session) {
  setlocale(LC_CTYPE, "");
  const SignalEvents signals;
  Terminal terminal;
  if (!terminal.usable()) return "cannot be used for a full screen";
  std::uint64_t due_ms = monotonic_ms() + session.interval_ns() / 1000000;
  while (true) {
    terminal.draw(session.frame(terminal.columns(), terminal.rows()));
    const bool there = wait_for_event(signals, true, due_ms);
    if (!take_signals(signals, terminal) || !take_keys(session, terminal) || !there) return "";
    const std::uint64_t now_ms = monotonic_ms();
    // An interval that was made shorter counts from now on.
    due_ms = std::min(due_ms, now_ms + session.interval_ns() / 1000000);
    if (now_ms < due_ms) continue;
    session.update();
    due_ms = now_ms + session.interval_ns() / 1000000;
  }
}

void run_roll(TopSession& session) {
  const SignalEvents signals;
  session.view().keys = false;
  while (true) {
    for (const TopLine& line : session.frame(kRollColumns, kRollRows)) std::puts(line.text.c_str());
    std::puts("");
    if (std::fflush(stdout) != 0 || session.ended()) return;
    const std::uint64_t until_ms = monotonic_ms() + session.interval_ns() / 1000000;
    while (monotonic_ms() < until_ms) {
      wait_for_event(signals, false, until_ms);
      while (const int number = signals.next()) {
        if (is_quit(number)) return;
      }
    }
    session.update();
  }
}

}  // namespace relock
