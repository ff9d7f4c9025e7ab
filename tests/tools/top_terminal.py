#!/usr/bin/python3
"""relock top on a pseudo-terminal, read by a terminal emulator: what a user sees, the keys, the
sizes, the signals, and that the terminal is as it was afterwards.

top_terminal.py RELOCK PID SCRATCH - PID is a recorded process that ends at SIGTERM.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pyte

RELOCK, PID, SCRATCH = sys.argv[1], int(sys.argv[2]), sys.argv[3]
failed = False


def expect(name, holds, reason):
    global failed
    print(f"ok {name}" if holds else f"not ok {name} - {reason}", flush=True)
    failed = failed or not holds


class Top:
    """A relock top on a terminal of its own, whose screen is emulated. (The emulator does not know
    xterm's repetition of characters.)"""

    def __init__(self, *arguments, term="linux", rows=24, columns=100):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for number in (0, 1, 2):
                os.dup2(slave, number)
            os.closerange(3, 100)
            os.environ.update(TERM=term, LC_ALL="C.UTF-8")
            os.execv(RELOCK, [RELOCK, "top", *arguments])

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.raw += data
            self.stream.feed(data)

    def wait_for(self, condition, seconds=15):
        """Reads until condition(the screen as text) holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition(self.text()):
                return True
            self.read_for(0.05)
        return condition(self.text())

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ended(self, seconds=5):
        """The exit status; None while it runs."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read_for(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        return None

    def restored(self):
        """Settings as before, back from the alternate screen, cursor shown."""
        same = termios.tcgetattr(self.slave) == self.before
        there, back = self.raw.rfind(b"\x1b[?1049h"), self.raw.rfind(b"\x1b[?1049l")
        return same and back >= there and b"\x1b[?25h" in self.raw[-100:]

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)


def table(text):
    """The locks' names from the top, as far as they are known here."""
    names = [name for line in text.split("\n")[4:] for name in ("hot_lock", "calm_lock")
             if name in line]
    return names


def test_keys():
    top = Top(str(PID), "--interval", "0.3")
    expect("top: the hottest lock is first",
           top.wait_for(lambda text: table(text)[:2] == ["hot_lock", "calm_lock"]), top.text())
    expect("top: a state, rates and a table", "running" in top.text() and "waits/s" in top.text()
           and "WAITED/s" in top.text(), top.text())
    top.wait_for(lambda text: "over the last 3" in text)
    first = top.text()
    expect("top: refreshes by itself", top.wait_for(lambda text: text != first), first)
    top.press("n")
    expect("top: n sorts by number of waits",
           top.wait_for(lambda text: "by number of waits" in text and
                        table(text)[:2] == ["calm_lock", "hot_lock"]), top.text())
    top.press("r")
    expect("top: r turns the order round",
           top.wait_for(lambda text: table(text)[:2] == ["hot_lock", "calm_lock"]), top.text())
    top.press("rm")
    expect("top: m sorts by mean wait",
           top.wait_for(lambda text: "by mean wait" in text and table(text)[0] == "hot_lock"),
           top.text())
    for key, what in (("x", "longest wait"), ("c", "waiting now"), ("t", "total time waited"),
                      ("w", "time waited")):
        top.press(key)
        expect(f"top: {key} sorts by {what}", top.wait_for(lambda text: f"by {what}," in text),
               top.text())
    top.press("\r")
    expect("top: Enter shows both sides' stacks",
           top.wait_for(lambda text: "waits in" in text and "because of" in text
                        and "use_hot" in text), top.text())
    top.press("\r\x1b[Bv")
    expect("top: v shows condition variables",
           top.wait_for(lambda text: "no thread has waited for a condition variable" in text),
           top.text())
    top.press("vh")
    expect("top: h explains the keys", top.wait_for(lambda text: "hold still" in text), top.text())
    top.press("h ")
    top.wait_for(lambda text: "held still" in text)
    held = top.text()
    top.read_for(0.8)
    expect("top: space holds the frame", top.text() == held and "held still" in held, top.text())
    top.press(" ")
    expect("top: and lets it go on", top.wait_for(lambda text: "running" in text), top.text())
    top.press("+")
    expect("top: + makes the interval longer",
           top.wait_for(lambda text: "over the last 500 ms" in text or "over the last 5" in text),
           top.text())
    top.press("q")
    status = top.ended()
    expect("top: q quits", status == 0, status)
    expect("top: q leaves the terminal as it was", top.restored(), top.raw[-80:])
    top.close()


def test_sizes():
    top = Top(str(PID), "--interval", "0.2")
    top.wait_for(lambda text: "hot_lock" in text)
    for rows, columns in ((40, 160), (10, 60), (3, 20), (1, 1), (24, 80)):
        top.resize(rows, columns)
        top.read_for(0.5)
    expect("top: goes through sizes down to one character",
           top.wait_for(lambda text: "hot_lock" in text) and len(table(top.text())) == 2,
           top.text())
    top.resize(12, 132)
    expect("top: more columns where there is room",
           top.wait_for(lambda text: "TOTAL" in text and "q quit" in text.split("\n")[11]),
           top.text())
    top.press("\x03")
    status = top.ended()
    expect("top: Ctrl-C quits", status == 0, status)
    expect("top: Ctrl-C leaves the terminal as it was", top.restored(), top.raw[-80:])
    top.close()


def test_signals():
    for name in ("TERM", "HUP", "INT", "QUIT"):
        top = Top(str(PID), "--interval", "5", term="xterm-256color")
        top.wait_for(lambda text: "hot_lock" in text)
        os.kill(top.pid, getattr(signal, "SIG" + name))
        status = top.ended()
        expect(f"top: SIG{name} ends it at once, the terminal as it was",
               status == 0 and top.restored(), f"{status} {top.raw[-80:]}")
        top.close()
    top = Top(str(PID), "--interval", "0.2", term="xterm-256color")
    top.wait_for(lambda text: "hot_lock" in text)
    top.press("\x1a")
    _, status = os.waitpid(top.pid, os.WUNTRACED)
    top.read_for(0.2)
    expect("top: Ctrl-Z stops it, the terminal as it was",
           os.WIFSTOPPED(status) and top.restored(), status)
    os.kill(top.pid, signal.SIGCONT)
    expect("top: and it comes back", top.wait_for(lambda text: "hot_lock" in text), top.text())
    os.close(top.master)
    top.master = os.open("/dev/null", os.O_RDWR)
    expect("top: ends when the connection is cut", top.ended() == 0, "still there")
    top.close()


def test_other_terminals():
    top = Top(str(PID), "--interval", "0.2", term="no-such-terminal")
    status = top.ended()
    expect("top: an unknown terminal is refused in one line", status == 2 and
           "relock: error: TERM=no-such-terminal: " in top.text().replace("\n", ""), top.text())
    top.close()
    top = Top(str(PID), "--interval", "0.2", term="dumb")
    expect("top: a dumb terminal gets one frame below the other",
           top.wait_for(lambda text: top.raw.count(b"relock top: ") >= 3), top.raw[-300:])
    expect("top: without any control sequence", b"\x1b" not in top.raw, top.raw[:80])
    top.press("\x03")
    status = top.ended()
    expect("top: where Ctrl-C quits", status == 0, status)
    top.close()
    for term in ("vt100", "xterm-256color", "screen", "tmux-256color"):
        top = Top(str(PID), "--interval", "0.2", term=term)
        holds = top.wait_for(lambda text: "hot_lock" in text)
        top.press("q")
        expect(f"top: on {term}", holds and top.ended() == 0, top.text())
        top.close()


def test_end():
    top = Top(str(PID), "--interval", "0.2")
    dumb = Top(str(PID), "--interval", "0.2", term="dumb")
    top.wait_for(lambda text: "hot_lock" in text)
    dumb.wait_for(lambda text: "hot_lock" in text)
    os.kill(PID, signal.SIGTERM)
    expect("top: stays with the totals when the process ends",
           top.wait_for(lambda text: "ended" in text and "whole run" in text and
                        table(text)[:1] == ["hot_lock"]), top.text())
    top.press("n")
    expect("top: which can still be sorted",
           top.wait_for(lambda text: table(text)[:1] == ["calm_lock"]), top.text())
    top.press("q")
    expect("top: until q", top.ended() == 0, "still there")
    status = dumb.ended()
    expect("top: on a dumb terminal it ends with the process", status == 0 and
           b"ended" in dumb.raw, f"{status} {dumb.raw[-200:]}")
    top.close()
    dumb.close()


for test in (test_keys, test_sizes, test_signals, test_other_terminals, test_end):
    test()
sys.exit(failed)
