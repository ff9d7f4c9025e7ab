#!/usr/bin/env python3
"""Measures locks against glibc's own with lockbench, in interleaved rounds, and judges them.

A ratio is formed within its round. Shown are medians over the rounds, and for a ratio the interval
that holds its median with 95 % confidence. A point misses its goal when the whole interval does.
"""

import argparse
import os
import re
import sys
import time

from bench_grid import grid, write_grid_markdown
from bench_plan import PRESETS, custom, lock_names
from bench_report import print_text, write_markdown
from bench_run import Bench, Log, Runs, duration_text, estimate_s, measure_all
from bench_startup import report_startup
from bench_svg import write_svg

PRESETS["grid"] = grid


def numbers(text):
    return [int(word) for word in text.replace(",", " ").split()]


def setting(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: not NAME=VALUE")
    return name, value


def pattern(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    return text


def parser():
    default = os.environ.get
    out = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    out.add_argument("--preset", choices=list(PRESETS), help="a set of points with its goals")
    for name, make in PRESETS.items():
        out.add_argument(f"--{name}", dest="preset", action="store_const", const=name,
                         help=make.__doc__)
    out.add_argument("--startup", action="store_true",
                     help="what the library adds to the start of a program, at most 1 ms")
    out.add_argument("--full", action="store_true", default=default("BENCH") == "full",
                     help="--grid: every point and every lock, not a subset with auto alone")
    out.add_argument("--build", default="build", help="where lockbench and librelock.so are")
    out.add_argument("--locks", default=default("BENCH_LOCKS", ""),
                     help="names, separated by commas; all by default")
    out.add_argument("--only", type=pattern, default=default("BENCH_ONLY", ""), metavar="REGEX",
                     help="of a preset, the points whose description matches: '^mutex, 64 threads'")
    out.add_argument("--rounds", type=int, default=default("BENCH_ROUNDS"))
    out.add_argument("--ms", type=int, default=default("BENCH_MS"), help="one measurement")
    out.add_argument("--wait", default="adaptive", choices=["spin", "park", "adaptive"])
    out.add_argument("--env", type=setting, action="append", default=[], metavar="NAME=VALUE",
                     help="for the runs with a lock of relock, for example RELOCK_VM=yes")
    out.add_argument("--think", type=int, default=200, help="nanoseconds, mean")
    out.add_argument("--json", "--runs", dest="json", default="",
                     help="append every single run to this file; default: a new one in bench-runs/")
    out.add_argument("--from", dest="saved", nargs="+", metavar="FILE",
                     help="measure nothing, report these files of runs")
    out.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown")
    out.add_argument("--svg", metavar="FILE", help="--grid: write heat maps")
    out.add_argument("--strict", action="store_true", help="exit status 1 when a goal is missed")
    out.add_argument("--estimate", action="store_true", help="say how long it would take, and end")
    own = out.add_argument_group("without a preset")
    own.add_argument("--object", default="mutex", choices=[
        "mutex", "spin", "rwlock", "c11-mutex", "cond", "cond-pingpong", "cond-broadcast"])
    own.add_argument("--threads", type=numbers, default="1,2,4,16,64")
    own.add_argument("--sections", type=numbers, default="0,200,2000", help="nanoseconds")
    own.add_argument("--line-reads", type=int, default=0,
                     help="reads of the lock's own cache line inside the section")
    own.add_argument("--reads", type=int, default=90, help="per cent, with --object rwlock")
    own.add_argument("--roles", default="mixed", choices=["mixed", "fixed"])
    return out


def chosen_locks(options):
    known = lock_names()
    chosen = [name for name in options.locks.replace(",", " ").split() if name] or known
    for name in chosen:
        if name not in known:
            print(f"bench: error: --locks: {name}: no such lock (accepted: {', '.join(known)})",
                  file=sys.stderr)
            sys.exit(2)
    return chosen


def make_plan(options):
    options.cpus = len(os.sched_getaffinity(0))
    make = PRESETS.get(options.preset, custom)
    if make is grid and not options.full:
        options.locks = options.locks or "auto"
    plan = make(options, chosen_locks(options))
    plan.comparisons = [one for one in plan.comparisons if re.search(options.only, str(one.point))]
    if not plan.comparisons:
        print(f"bench: error: --only: {options.only}: no point matches", file=sys.stderr)
        sys.exit(2)
    options.rounds = options.rounds or plan.rounds
    options.ms = options.ms or plan.ms
    if options.rounds < 1 or options.ms < 1:
        print("bench: error: --rounds, --ms: at least 1", file=sys.stderr)
        sys.exit(2)
    return plan


def saved_runs(options):
    runs = Runs()
    for path in options.saved:
        try:
            runs.load(path)
        except (OSError, TypeError, KeyError) as error:
            print(f"bench: error: --from: {path}: {error}", file=sys.stderr)
            sys.exit(2)
    if not runs.headers or not runs.limits or not runs.by_point:
        print(f"bench: error: --from: {options.saved[0]}: holds no runs", file=sys.stderr)
        sys.exit(2)
    options.preset = options.preset or runs.headers[-1]["preset"]
    if options.preset == "grid":
        # The whole grid, and every lock there are runs of; what was not measured is not shown.
        options.full = True
        options.locks = options.locks or ",".join(
            name for name in lock_names()
            if any(name in by_lock for by_lock in runs.by_point.values()))
    return runs


def new_runs(options, plan):
    count, seconds = estimate_s(plan, options)
    print(f"bench: {plan.name}: {count} runs of {options.ms} ms in {options.rounds} rounds, "
          f"about {duration_text(seconds)}", file=sys.stderr)
    if options.estimate:
        sys.exit(0)
    if os.getloadavg()[0] > 0.7:
        print(f"bench: load is {os.getloadavg()[0]:.1f}: others use the machine", file=sys.stderr)
    path = options.json or time.strftime(f"bench-runs/{plan.name}-%Y%m%d-%H%M%S.jsonl")
    log = Log(path)
    if options.preset == "grid":
        options.markdown = options.markdown or os.path.splitext(path)[0] + ".md"
        options.svg = options.svg or os.path.splitext(path)[0] + ".svg"
    print(f"bench: every run is kept in {log.path}", file=sys.stderr)
    runs = Runs()
    bench = Bench(options.build)
    limits = bench.first_limits
    print(f"bench: what this machine takes at least: atomic {limits['atomic_ns']:.1f} ns, "
          f"line bounce {limits['bounce_ns']:.0f} ns, "
          f"futex wake {limits['futex_wake_ns'] / 1000:.1f} us, "
          f"switch {limits['context_switch_ns'] / 1000:.1f} us", file=sys.stderr)
    measure_all(plan, options, bench, log, runs)
    return runs


def write_files(options, plan, runs):
    if options.markdown:
        write = write_grid_markdown if options.preset == "grid" else write_markdown
        write(plan, runs, options.markdown)
        print(f"bench: tables: {options.markdown}", file=sys.stderr)
    if options.svg and options.preset == "grid":
        write_svg(plan, runs, options.svg)
        print(f"bench: plot: {options.svg}", file=sys.stderr)


def main():
    options = parser().parse_args()
    if options.startup:
        met = report_startup(options.build, options.rounds or 100, chosen_locks(options))
        return 1 if options.strict and not met else 0
    if options.saved:
        runs = saved_runs(options)
        plan = make_plan(options)
    else:
        plan = make_plan(options)
        runs = new_runs(options, plan)
    write_files(options, plan, runs)
    try:
        missed, failed = print_text(plan, runs)
    except BrokenPipeError:
        sys.stdout = None  # the reader has seen enough
        return 1
    return 1 if failed or missed and options.strict else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        sys.exit(130)
