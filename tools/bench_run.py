"""Runs lockbench under each lock in turn, and keeps every single run in a file.

What a machine does besides changes from second to second, so locks are never measured one after
the other: a round visits every point, and at a point every lock, in an order drawn anew.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time

from bench_plan import Point, as_record

START_MS = 45  # what a process costs besides its measurement


class Runs:
    """{point: {name of lock: {round: result}}}; a round is (session, number)."""

    def __init__(self):
        self.headers = []
        self.limits = []  # of each round: where the host puts our CPUs changes them
        self.by_point = {}

    def add(self, point, name, round_key, result):
        self.by_point.setdefault(point, {}).setdefault(name, {})[round_key] = result

    def of(self, point, subject):
        return self.by_point.get(point, {}).get(subject.name, {})

    def middle_limits(self):
        """The median of each limit over the rounds."""
        return {name: statistics.median(limits[name] for limits in self.limits)
                for name in self.limits[0]}

    def load(self, path):
        """Adds what a file of runs holds; a line that was cut short ends the file."""
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    break
                if "preset" in record:
                    self.headers.append(record)
                    continue
                if "limits" in record:
                    self.limits.append(record["limits"])
                    continue
                self.add(Point(**record["point"]), record["lock"],
                         (record["session"], record["round"]), record["result"])


class Log:
    """A file of runs, one line of JSON each. It is new, or it is appended to; never overwritten."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.path = path
        self.output = open(path, "a", encoding="utf-8")  # pylint: disable=consider-using-with

    def write(self, record):
        self.output.write(json.dumps(record, separators=(",", ":")) + "\n")
        self.output.flush()


def clean_environment():
    return {name: value for name, value in os.environ.items()
            if name != "LD_PRELOAD" and not name.startswith("RELOCK_")}


class Bench:
    """Where lockbench is, what the machine allows, and how to run one measurement."""

    def __init__(self, build):
        self.lockbench = os.path.join(build, "lockbench")
        self.library = os.path.abspath(os.path.join(build, "librelock.so"))
        for path in (self.lockbench, self.library):
            if not os.path.exists(path):
                sys.exit(f"bench: {path}: missing (make builds it)")
        self.first_limits = self.limits()
        self.turns_per_ns = self.first_limits["turns_per_ns"]
        self.loop_ns = {alone: self.loop(alone) for alone in (False, True)}

    def call(self, arguments, environment, timeout_s):
        """The answer of lockbench, or {"error": why there is none}."""
        try:
            done = subprocess.run([self.lockbench, "--json", *arguments], env=environment,
                                  capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"hangs: no answer in {timeout_s:.0f} s"}
        if done.returncode != 0 or done.stderr:
            return {"error": f"exit status {done.returncode}: {done.stderr.strip()[:300]}"}
        return json.loads(done.stdout)

    def limits(self):
        answer = self.call(["--limits"], clean_environment(), 60)
        if "error" in answer:
            sys.exit(f"bench: error: lockbench --limits: {answer['error']}")
        return answer

    def loop(self, alone):
        """What an operation takes in nanoseconds without any lock, at its fastest."""
        arguments = ["--object", "none", "--section", "0", *self.calibration()]
        arguments += ["--alone"] if alone else ["--threads", "1"]
        for milliseconds in ("30", "300", "3000"):  # a busy machine may do nothing at first
            runs = [self.call([*arguments, "--ms", milliseconds], clean_environment(), 60)
                    for _ in range(3)]
            fastest = max(run.get("per_second", 0) for run in runs)
            if fastest > 0:
                return 1e9 / fastest
        sys.exit(f"bench: error: lockbench --object none: {runs[0].get('error', 'does nothing')}")

    def calibration(self):
        # One for all runs: a processor that is slow while it calibrates would get shorter sections.
        return ["--turns", str(self.turns_per_ns)]

    def measure(self, point, subject, ms):
        environment = clean_environment()
        if subject.preloaded:
            environment["LD_PRELOAD"] = self.library
            environment.update(subject.environment)
        arguments = [*point.arguments(), "--ms", str(ms), *self.calibration()]
        result = self.call(arguments, environment, 60 + 5 * ms / 1000)
        if "error" not in result:
            result["loop_ns"] = self.loop_ns[point.alone]
        return result


def command_output(words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.lower().startswith(("model name", "cpu model")):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def describe(plan, options, bench):
    """The first line of a session in the file of runs."""
    return {"preset": plan.name, "session": time.strftime("%Y%m%d-%H%M%S") + f"-{os.getpid()}",
            "arguments": sys.argv[1:], "rounds": options.rounds, "ms": options.ms,
            "processor": processor(), "cpus": options.cpus, "kernel": os.uname().release,
            "version": command_output(["git", "describe", "--always", "--dirty"]),
            "load": round(os.getloadavg()[0], 2), "turns_per_ns": bench.turns_per_ns,
            "loop_ns": bench.loop_ns[False], "loop_alone_ns": bench.loop_ns[True]}


def estimate_s(plan, options):
    runs = sum(len(one.all_subjects()) for one in plan.comparisons) * options.rounds
    return runs, runs * (options.ms + START_MS) / 1000


def duration_text(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    """How far it is, on a terminal after each run, otherwise once a round."""

    def __init__(self, total):
        self.total, self.done, self.begin = total, 0, time.monotonic()

    def step(self):
        self.done += 1
        if sys.stderr.isatty():
            self.show("\r", " ")

    def show(self, before, end):
        left = (time.monotonic() - self.begin) / max(self.done, 1) * (self.total - self.done)
        print(f"{before}{self.done}/{self.total}, {duration_text(left)} left   ", end=end,
              file=sys.stderr, flush=True)


def measure_all(plan, options, bench, log, runs):
    """All runs of a plan, into `runs` and the log. Ctrl-C ends it early: False then."""
    header = describe(plan, options, bench)
    runs.headers.append(header)
    log.write(header)
    progress = Progress(estimate_s(plan, options)[0])
    try:
        for number in range(options.rounds):
            runs.limits.append(bench.limits())
            log.write({"session": header["session"], "round": number, "limits": runs.limits[-1]})
            for one in random.sample(plan.comparisons, len(plan.comparisons)):
                subjects = one.all_subjects()
                for order, subject in enumerate(random.sample(subjects, len(subjects))):
                    result = bench.measure(one.point, subject, options.ms)
                    runs.add(one.point, subject.name, (header["session"], number), result)
                    log.write({"session": header["session"], "round": number, "order": order,
                               "lock": subject.name, "environment": dict(subject.environment),
                               "point": {"object": one.point.object, "threads": one.point.threads,
                                         **as_record(one.point)}, "result": result})
                    progress.step()
            if not sys.stderr.isatty():
                progress.show("", "\n")
    except KeyboardInterrupt:
        print("\nbench: interrupted: this is what was measured", file=sys.stderr)
        return False
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)
    return True
