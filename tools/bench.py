#!/usr/bin/env python3
"""Measures every lock against glibc's own, over threads and sections, with lockbench.

What a machine does besides changes from second to second, so locks are never measured one after
the other: a round visits each point of the grid with glibc and with every lock in turn, in an order
drawn anew, and a ratio is formed within its round. Shown are the medians over the rounds, and for
the ratio the interval that holds its median with 95 % confidence (bootstrap over the rounds).
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys

BARE = "(none)"  # no library preloaded
ROW = re.compile(r'^RELOCK_LOCK_ROW\(\w+,\s*"([^"]+)"', re.MULTILINE)


def numbers(text):
    return [int(word) for word in re.split(r"[ ,]+", text.strip())]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where lockbench and librelock.so are")
    parser.add_argument("--object", default="mutex", choices=["mutex", "spin", "cond", "rwlock"])
    parser.add_argument("--threads", type=numbers, default="1,2,4,16,64")
    parser.add_argument("--sections", type=numbers, default="0,200,2000", help="nanoseconds")
    parser.add_argument("--think", type=int, default=200, help="nanoseconds, mean")
    parser.add_argument("--line-reads", type=int, default=0,
                        help="reads of the lock's own cache line inside the section")
    parser.add_argument("--reads", type=int, default=90, help="per cent, with --object rwlock")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE",
                        help="for the runs with a lock of relock, for example RELOCK_VM=yes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ms", type=int, default=200, help="one measurement")
    parser.add_argument("--locks", default="", help="names, separated by commas; all by default")
    parser.add_argument("--wait", default="adaptive", choices=["spin", "park", "adaptive"])
    parser.add_argument("--json", default="", help="write every single run to this file")
    return parser.parse_args()


def lock_names():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "locks", "lock_list.def"), encoding="utf-8") as table:
        return ROW.findall(table.read())


def run_once(options, lock, threads, section):
    command = [os.path.join(options.build, "lockbench"), "--json", "--object", options.object,
               "--threads", str(threads), "--section", str(section),
               "--think", str(options.think), "--ms", str(options.ms),
               "--line-reads", str(options.line_reads), "--reads", str(options.reads)]
    environment = {name: value for name, value in os.environ.items()
                   if name != "LD_PRELOAD" and not name.startswith("RELOCK_")}
    if lock != BARE:
        environment["LD_PRELOAD"] = os.path.abspath(os.path.join(options.build, "librelock.so"))
        environment["RELOCK_LOCK"] = lock
        environment["RELOCK_WAIT"] = options.wait
        environment.update(setting.split("=", 1) for setting in options.env)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=60 + options.ms / 1000, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"bench: {lock}: {threads} threads, section {section} ns: hangs")
    if done.returncode != 0 or done.stderr:
        sys.exit(f"bench: {lock}: {threads} threads, section {section} ns: "
                 f"exit status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure(options, locks, points):
    """All runs, as {(threads, section): {lock: [result of each round]}}."""
    runs = {point: {lock: [] for lock in locks} for point in points}
    total = options.rounds * len(points) * len(locks)
    done = 0
    for _ in range(options.rounds):
        for point in random.sample(points, len(points)):
            for lock in random.sample(locks, len(locks)):
                runs[point][lock].append(run_once(options, lock, *point))
                done += 1
                if sys.stderr.isatty():
                    print(f"\r{done}/{total} ", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return runs


def ratio_interval(ratios):
    """Median, and the 95 % bounds of the median, by resampling the rounds."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(1000))
    return statistics.median(ratios), medians[25], medians[974]


def print_point(options, point, runs):
    threads, section = point
    print(f"\n{options.object}, {threads} thread{'s' if threads > 1 else ''}, "
          f"section {section} ns, think {options.think} ns")
    print(f"  {'lock':<14} {'million/s':>10} {'spread':>7} {'to bare':>8} {'95 %':>13} "
          f"{'Jain':>6} {'least':>6} {'p99.9 us':>9} {'CPU s/M':>8}")
    for lock, results in runs.items():
        rates = [result["per_second"] for result in results]
        middle = statistics.median(rates)
        spread = (max(rates) - min(rates)) / middle if middle else 0.0
        ratios = [result["per_second"] / max(bare["per_second"], 1e-9)
                  for result, bare in zip(results, runs[BARE])]
        ratio, low, high = ratio_interval(ratios)
        jain = statistics.median(result["jain"] for result in results)
        least = statistics.median(result["least_to_mean"] for result in results)
        tail = statistics.median(result["wait_ns"]["p99_9"] for result in results) / 1000
        cpu = statistics.median(result["cpu_seconds_per_million"] for result in results)
        print(f"  {lock:<14} {middle / 1e6:10.3f} {spread:7.0%} {ratio:8.2f} "
              f"{low:6.2f}-{high:<6.2f} {jain:6.3f} {least:6.2f} {tail:9.1f} {cpu:8.3f}")


def print_summary(locks, runs):
    print("\ngeometric mean and worst ratio to bare glibc over the grid")
    for lock in locks:
        if lock == BARE:
            continue
        medians = [statistics.median(result["per_second"] / max(bare["per_second"], 1e-9)
                                     for result, bare in zip(point[lock], point[BARE]))
                   for point in runs.values()]
        mean = statistics.geometric_mean(max(median, 1e-9) for median in medians)
        print(f"  {lock:<14} {mean:6.2f} {min(medians):6.2f}")


def main():
    options = parse_arguments()
    for name in ("threads", "sections"):
        if isinstance(getattr(options, name), str):
            setattr(options, name, numbers(getattr(options, name)))
    known = lock_names()
    chosen = [name for name in options.locks.split(",") if name] or known
    for name in chosen:
        if name not in known:
            sys.exit(f"bench: {name}: no such lock (accepted: {', '.join(known)})")
    locks = [BARE] + chosen
    points = [(threads, section) for section in options.sections for threads in options.threads]
    runs = measure(options, locks, points)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as output:
            json.dump([{"threads": threads, "section_ns": section, "lock": lock, "runs": results}
                       for (threads, section), by_lock in runs.items()
                       for lock, results in by_lock.items()], output)
    print(f"{options.rounds} rounds of {options.ms} ms, {os.cpu_count()} CPUs, "
          f"RELOCK_WAIT={options.wait}; spread: (highest - lowest) / median")
    for point in points:
        print_point(options, point, runs[point])
    print_summary(locks, runs)


if __name__ == "__main__":
    main()
