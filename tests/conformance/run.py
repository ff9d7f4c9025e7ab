#!/usr/bin/python3
"""Runs the conformance programs bare and then under librelock.so, and demands the same behaviour.

  run.sh [BUILD_DIR] [--quick] [NAME...]

BUILD_DIR ($BUILD or build without one): BUILD_DIR/conformance/NAME is the compiled program. A
preloaded run must print the same stdout, leave with the same exit status and add nothing to stderr.
One line per case:
  ok conformance/NAME/CONFIG
  not ok conformance/NAME/CONFIG - reason

A CONFIG is LOCK-WAIT (tas-adaptive, cna-park), LOCK-profile or LOCK-ruled (ruled.rules picks a
lock for each object). Environment:
  CONFIGS  the configurations to run, in place of the default ones; "bare" alone: no preload
  JOBS     programs that run side by side (2)
  TIMEOUT  seconds a single run may take (60)
  TIMES    set: how long each run took, as a comment line
  KEEP     a directory in which the outputs of failed runs are kept

A program may say, in comment lines of its own:
  // conformance: skip=CONFIGPATTERN reason    (a shell pattern: *-profile)
  // conformance: any-lock                     (nothing in it depends on the lock: make test runs it
                                               with a few configurations, SLOW=1 with all)
  // conformance: args=ARGUMENTS
  // conformance: serial                       (never beside another program)

NAME.sh next to the programs is run instead of NAME, for preloads that are out of the ordinary: once
for each configuration, with BUILD_DIR as its argument, CONFIG and the RELOCK_ variables in its
environment and nothing preloaded. It prints its own ok lines. Scripts take the same comment lines,
behind a # in place of //.
"""
import difflib
import fnmatch
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
USAGE = "usage: run.sh [BUILD_DIR] [--quick] [NAME...]"
TIMED_OUT = 124  # as timeout(1) reports it
KILL_AFTER_S = 5
# Enough for a program that says any-lock: the two ends of the family, the C library's, a profile.
FEW_CONFIGS = {"tas-adaptive", "cna-park", "glibc-adaptive", "glibc-profile", "tas-profile"}

print_lock = threading.Lock()
failed = False


def say(text):
    """Prints whole lines, although programs run side by side."""
    global failed
    with print_lock:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        failed = failed or re.search(rb"^not ok ", text, re.M) is not None


def verdict(name, config, reason):
    case = f"conformance/{name}/{config}" if config else f"conformance/{name}"
    say((f"not ok {case} - {reason}\n" if reason else f"ok {case}\n").encode(errors="replace"))


def default_configs(quick, slow):
    rows = (HERE / "../../locks/lock_list.def").read_text()
    locks = re.findall(r'^ *RELOCK_LOCK_ROW\([^"]*"([^"]*)"', rows, re.M)
    chosen = [lock for lock in locks if lock in ("tas", "qspinlock", "glibc")] if quick else locks
    # auto is tas under another name, or cna.
    configs = [f"{lock}-adaptive" for lock in chosen if lock != "auto"]
    if slow:
        configs += [f"{lock}-{way}" for lock in locks for way in ("spin", "park", "profile")]
        return configs + ["tas-ruled", "glibc-ruled", "qspinlock-ruled"]
    if quick:
        return configs + ["tas-profile"]
    return configs + ["tas-spin", "cna-park", "glibc-profile", "tas-profile"]


def config_env(config, scratch):
    lock, _, way = config.rpartition("-")
    env = {"RELOCK_LOCK": lock}
    if way == "profile":
        env |= {"RELOCK_PROFILE": "1", "RELOCK_LOG_FILE": "/dev/null",
                "RELOCK_PROFILE_DIR": str(scratch / "profiles")}
    elif way == "ruled":
        env["RELOCK_RULES"] = str(HERE / "ruled.rules")
    else:
        env["RELOCK_WAIT"] = way
    return env


class Source:
    """A program's source with the directives in it."""

    def __init__(self, name):
        self.name = name
        self.path = next((HERE / f"{name}.{ending}" for ending in ("sh", "c", "cpp")
                          if (HERE / f"{name}.{ending}").is_file()), None)
        text = self.path.read_text(errors="replace") if self.path else ""
        directives = re.findall(r"^ *(?://|#) *conformance: *(.*)$", text, re.M)
        self.serial = any(line.startswith("serial") for line in directives)
        self.any_lock = any(line.startswith("any-lock") for line in directives)
        self.arguments = " ".join(line.removeprefix("args=") for line in directives
                                  if line.startswith("args=")).split()
        self.skips = [line.removeprefix("skip=").split(None, 1) for line in directives
                      if line.startswith("skip=")]

    def skipped(self, config):
        """The reason why CONFIG is left out, or None."""
        for pattern, *reason in self.skips:
            if fnmatch.fnmatchcase(config, pattern):
                return reason[0] if reason else "no reason given"
        return None


def signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def run(command, env, timeout, stdout, stderr):
    """Runs COMMAND in a process group of its own and returns its status as a shell gives it. The
    whole group is ended when the time is over: a fork's child that hangs would stay behind."""
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=stdout,
                               stderr=stderr, process_group=0)
    # Popen.wait with a timeout looks every 50 ms; this wakes at once.
    descriptor = os.pidfd_open(process.pid)
    try:
        end = select.poll()
        end.register(descriptor, select.POLLIN)
        late = not end.poll(timeout * 1000)
        if late:
            signal_group(process, signal.SIGTERM)
            if not end.poll(KILL_AFTER_S * 1000):
                signal_group(process, signal.SIGKILL)
        code = process.wait()
    finally:
        os.close(descriptor)
    return TIMED_OUT if late else code if code >= 0 else 128 - code


class Outcome:
    """What one run left behind."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def status_word(self, timeout):
        if self.status == TIMED_OUT:
            return f"timeout after {timeout} s"
        return f"signal {self.status - 128}" if self.status > 128 else f"exit status {self.status}"


def text_lines(data):
    return data.decode(errors="replace").splitlines()


def difference(bare, other, timeout):
    """Why OTHER differs from the bare run; nothing if it does not."""
    reasons = []
    if other.status != bare.status:
        reasons.append(f"{other.status_word(timeout)}, bare: {bare.status}")
    if other.out != bare.out:
        ours, theirs = text_lines(other.out) + [""], text_lines(bare.out) + [""]
        line = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]),
                    min(len(ours), len(theirs)) - 1)
        reasons.append(f"stdout differs at line {line + 1}: '{ours[line]}', bare: '{theirs[line]}'")
    if other.err != bare.err:
        matcher = difflib.SequenceMatcher(None, text_lines(bare.err), text_lines(other.err), False)
        added = [matcher.b[at] for tag, _, _, first, last in matcher.get_opcodes()
                 if tag in ("insert", "replace") for at in range(first, last)]
        if added:
            reasons.append(f"stderr: '{added[0]}'")
    return "; ".join(reasons)


class Runner:
    def __init__(self, build_dir, configs, few):
        self.build_dir, self.configs, self.few = build_dir, configs, few
        self.timeout = int(os.environ.get("TIMEOUT") or 60)
        self.keep = os.environ.get("KEEP")
        self.times = bool(os.environ.get("TIMES"))
        self.env = {key: value for key, value in os.environ.items()
                    if key != "LD_PRELOAD" and not key.startswith("RELOCK_")}

    def configs_of(self, source):
        for config in self.configs:
            if config == "bare" or self.few and source.any_lock and config not in FEW_CONFIGS:
                continue
            reason = source.skipped(config)
            if reason:
                say(f"# skipped conformance/{source.name}/{config} - {reason}\n".encode())
            else:
                yield config

    def outcome(self, source, config, scratch, env):
        """One run of the program; its outputs stay in SCRATCH."""
        program = str(self.build_dir / "conformance" / source.name)
        start = time.monotonic()
        out_path, err_path = scratch / f"{config}.out", scratch / f"{config}.err"
        with open(out_path, "wb") as out, open(err_path, "wb") as err:
            status = run([program, *source.arguments], self.env | {"LC_ALL": "C"} | env,
                         self.timeout, out, err)
        if self.times:
            say(f"# {(time.monotonic() - start) * 1000:.0f} ms {source.name}/{config}\n".encode())
        return Outcome(status, out_path.read_bytes(), err_path.read_bytes())

    def report(self, source, config, reason, scratch):
        verdict(source.name, config, reason)
        if reason and self.keep:
            os.makedirs(self.keep, exist_ok=True)
            for tag in {"bare", config}:
                for part in ("out", "err"):
                    shutil.copy(scratch / f"{tag}.{part}",
                                f"{self.keep}/{source.name}.{tag}.{part}")

    def run_program(self, source, scratch):
        program = self.build_dir / "conformance" / source.name
        if not os.access(program, os.X_OK):
            return verdict(source.name, "bare", f"{program} is not built")
        bare = self.outcome(source, "bare", scratch, {})
        reason = ""
        if bare.status != 0:
            reason = f"{bare.status_word(self.timeout)}: {''.join(text_lines(bare.err)[:1])}"
        self.report(source, "bare", reason, scratch)
        for config in self.configs_of(source):
            (scratch / "profiles").mkdir()
            preloaded = self.outcome(source, config, scratch, config_env(config, scratch) |
                                     {"LD_PRELOAD": str(self.build_dir / "librelock.so")})
            shutil.rmtree(scratch / "profiles")
            self.report(source, config, difference(bare, preloaded, self.timeout), scratch)

    def run_script(self, source, scratch):
        for config in self.configs_of(source):
            (scratch / "profiles").mkdir()
            with open(scratch / "script.out", "wb") as out:
                status = run(["bash", str(source.path), str(self.build_dir)],
                             self.env | {"CONFIG": config} | config_env(config, scratch),
                             self.timeout * 2, out, None)
            lines = (scratch / "script.out").read_bytes()
            say(lines)
            if status == TIMED_OUT or not re.search(rb"^(not )?ok ", lines, re.M):
                verdict(source.name, config, f"the script printed no case: exit status {status}")
            shutil.rmtree(scratch / "profiles")

    def run_name(self, source):
        if not source.path:
            return verdict(source.name, None, "no such program")
        scratch = Path(tempfile.mkdtemp(prefix="conformance."))
        try:
            (self.run_script if source.path.suffix == ".sh" else self.run_program)(source, scratch)
        except Exception as error:  # a fault of this runner is a failed case, not a silent end
            verdict(source.name, None, f"the runner failed: {error!r}")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def run_all(self, sources):
        # Those with the most runs first, so that both workers end at about the same time.
        beside = sorted((source for source in sources if not source.serial),
                        key=lambda source: self.few and source.any_lock)
        with ThreadPoolExecutor(int(os.environ.get("JOBS") or 2)) as pool:
            list(pool.map(self.run_name, beside))
        for source in sources:
            if source.serial:
                self.run_name(source)


def all_names():
    return sorted({path.stem for ending in ("c", "cpp", "sh") for path in HERE.glob(f"*.{ending}")
                   if path.name != "run.sh" and not path.name.startswith("lib_")})


def usage():
    print(USAGE, file=sys.stderr)
    sys.exit(2)


def main():
    words = sys.argv[1:]
    directory = Path(os.environ.get("BUILD") or HERE / "../../build")
    if words and os.path.isdir(words[0]):
        directory = Path(words.pop(0))
    if not directory.is_dir():
        usage()
    build_dir = directory.resolve()
    if any(word.startswith("-") and word != "--quick" for word in words):
        usage()
    names = [word for word in words if word != "--quick"] or all_names()
    wanted, slow = os.environ.get("CONFIGS"), bool(os.environ.get("SLOW"))
    configs = wanted.split() if wanted else default_configs("--quick" in words, slow)
    if configs != ["bare"] and not os.access(build_dir / "librelock.so", os.R_OK):
        say(f"not ok conformance/librelock - {build_dir}/librelock.so is not built\n".encode())
        configs = ["bare"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Runner(build_dir, configs, few=not (wanted or slow)).run_all([Source(name) for name in names])
    sys.exit(failed)


if __name__ == "__main__":
    main()
