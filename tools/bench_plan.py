"""What is measured: points, locks, goals, and the presets that put them together."""

import os
import re
from dataclasses import asdict, dataclass, field

from bench_stats import Goal

ROW = re.compile(r'^RELOCK_LOCK_ROW\(\w+,\s*"([^"]+)"', re.MULTILINE)
OVERCOMMIT = (2, 4, 8, 16, 32)  # threads on each CPU
SECTIONS_NS = (0, 200, 2000, 10000)


@dataclass(frozen=True)
class Point:
    """One setting of lockbench; times in nanoseconds."""
    object: str
    threads: int
    section: int = 0
    think: int = 0
    reads: int = 90
    roles: str = "mixed"
    line_reads: int = 0
    alone: bool = False

    def arguments(self):
        words = ["--object", self.object, "--threads", str(self.threads),
                 "--section", str(self.section), "--think", str(self.think)]
        if self.object == "rwlock":
            words += ["--reads", str(self.reads), "--roles", self.roles]
        if self.line_reads:
            words += ["--line-reads", str(self.line_reads)]
        return words + (["--alone"] if self.alone else [])

    def kind(self):
        """The object with what belongs to it, and not the numbers of a row."""
        name = self.object
        if name == "rwlock":
            name += f" {self.reads} % reads"
            if self.roles == "fixed":
                name += " by their own threads"
        if self.line_reads:
            name += f", {self.line_reads} reads of the lock's line"
        return name + (", alone in the process" if self.alone else "")

    def load(self):
        return f"section {time_text(self.section)}, think {time_text(self.think)}"

    def __str__(self):
        plural = "s" if self.threads > 1 else ""
        return f"{self.kind()}, {self.threads} thread{plural}, {self.load()}"


def time_text(ns):
    return f"{ns // 1000} us" if ns >= 1000 and ns % 1000 == 0 else f"{ns} ns"


@dataclass(frozen=True)
class Subject:
    """A lock to measure: a name to show, and the environment that selects it."""
    name: str
    environment: tuple = ()
    preloaded: bool = True


BARE = Subject("(none)", preloaded=False)  # glibc's locks, nothing preloaded


def lock(name, wait="adaptive", extra=(), shown=None):
    environment = (("RELOCK_LOCK", name), ("RELOCK_WAIT", wait), *extra)
    return Subject(shown or name, environment)


@dataclass
class Comparison:
    """Locks that are measured in turn at one point; goals by the name of the lock."""
    point: Point
    subjects: list
    baseline: Subject = BARE
    goals: dict = field(default_factory=dict)

    def all_subjects(self):
        return [self.baseline] + [one for one in self.subjects if one != self.baseline]


@dataclass
class Plan:
    name: str
    title: str
    comparisons: list
    rounds: int
    ms: int
    shown: str = "throughput"  # the metric of the tables
    rates: bool = False  # tables show millions per second too
    mean_goals: list = field(default_factory=list)  # (lock, title, test of a point, Goal)


def lock_names():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "locks", "lock_list.def"), encoding="utf-8") as table:
        return ROW.findall(table.read())


def as_record(point):
    """A point in the file of runs, without what is as always."""
    default = asdict(Point("", 0))
    return {name: value for name, value in asdict(point).items() if value != default[name]}


def overcommit(options, locks):
    """Every lock as mutex and as spinlock, with 2 to 32 threads on each CPU."""
    subjects = [lock(name, options.wait, options.env) for name in locks]
    comparisons = []
    for kind, bound in (("mutex", 0.8), ("spin", 1.0)):
        goals = {name: [Goal("throughput", bound)] for name in locks}
        comparisons += [Comparison(Point(kind, factor * options.cpus, section, options.think or 0),
                                   subjects, goals=goals)
                        for section in SECTIONS_NS for factor in OVERCOMMIT]
    return Plan("overcommit", "Throughput when threads outnumber CPUs, over bare glibc's",
                comparisons, 5, 200)


def fairness(options, locks):
    """The least served thread's share over two seconds."""
    every = [lock(name, options.wait, options.env) for name in locks]
    rwsem = [lock("auto", options.wait, options.env, shown="rwsem")]
    quarter = Goal("least", 0.25, paired=False)
    apart = [Goal("readers least", 0.25, paired=False), Goal("writers least", 0.25, paired=False)]
    think = options.think or 0
    comparisons = []
    for factor in OVERCOMMIT:
        threads = factor * options.cpus
        for kind, sections in (("mutex", SECTIONS_NS), ("spin", SECTIONS_NS), ("cond", (200,))):
            comparisons += [Comparison(Point(kind, threads, section, think), every,
                                       goals={name: [quarter] for name in locks})
                            for section in sections]
        for reads, roles in ((90, "mixed"), (90, "fixed"), (50, "fixed")):
            comparisons += [Comparison(Point("rwlock", threads, section, think, reads, roles),
                                       rwsem, goals={"rwsem": [quarter] + apart})
                            for section in (200, 2000)]
    comparisons.sort(key=lambda one: (one.point.kind(), one.point.section))
    return Plan("fairness", "The least served thread's operations over the mean of all threads",
                comparisons, 1, 2000, shown="least")


def vm(options, _):
    """ticket-backoff against ticket when told that this is a virtual machine."""
    extra = (("RELOCK_VM", "yes"), *options.env)
    baseline = lock("ticket", options.wait, extra)
    subject = lock("ticket-backoff", options.wait, extra)
    goals = {"ticket-backoff": [Goal("throughput", 0.95)]}
    return Plan("vm", "RELOCK_VM=yes: throughput of ticket-backoff over ticket's",
                [Comparison(Point(kind, factor * options.cpus, section, options.think or 0),
                            [subject], baseline, goals)
                 for kind in ("mutex", "spin") for section in SECTIONS_NS
                 for factor in (1, *OVERCOMMIT)], 5, 200)


def powerpc(options, locks):
    """The two tests of the published table: pairs of lock and unlock, over test-and-set's."""
    baseline = lock("tas", options.wait, options.env)
    subjects = [BARE] + [lock(name, options.wait, options.env) for name in locks if name != "tas"]
    return Plan("powerpc", "Pairs of lock and unlock without think time, over test-and-set's",
                [Comparison(Point(kind, threads * options.cpus, line_reads=reads), subjects,
                            baseline)
                 for kind in ("mutex", "spin") for reads in (0, 255) for threads in (1, 4, 16)],
                5, 300, rates=True)


def uncontended(options, _):
    """lock+unlock by one thread, less what the loop around it takes, over glibc's."""
    once = [Goal("lock time", 1.0, at_most=True)]
    queued = [Goal("lock time", 0.75, at_most=True)]
    auto = lock("auto", options.wait, options.env)
    spinning = [lock(name, "spin", options.env, shown=f"{name} spin")
                for name in ("qspinlock", "cna")]
    goals = {"auto": once, "qspinlock spin": queued, "cna spin": queued}
    comparisons = [Comparison(Point("mutex", 1), [auto] + spinning, goals=goals)]
    comparisons += [Comparison(Point(kind, 1, alone=alone), [auto], goals={"auto": once})
                    for kind, alone in (("mutex", True), ("spin", False), ("spin", True),
                                        ("c11-mutex", False), ("rwlock", False))]
    return Plan("uncontended", "Time of an uncontended lock+unlock, over glibc's", comparisons, 21,
                50, shown="lock time")


PRESETS = {"overcommit": overcommit, "fairness": fairness, "vm": vm, "powerpc": powerpc,
           "uncontended": uncontended}


def custom(options, locks):
    """What --object, --threads, --sections and the rest say."""
    subjects = [lock(name, options.wait, options.env) for name in locks]
    think = 200 if options.think is None else options.think
    points = [Point(options.object, threads, section, think, options.reads, options.roles,
                    options.line_reads)
              for section in options.sections for threads in options.threads]
    return Plan("custom", "Throughput over bare glibc's",
                [Comparison(point, subjects) for point in points], 5, 200)
