#!/usr/bin/env python3
"""What recording costs: profiling on against off, with the same lock, interleaved.

Each round visits every point with profiling off and on, in an order drawn anew, and a difference is
formed within its round. Shown are medians over the rounds and the 95 % interval of the median
(bootstrap over the rounds).
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

# (name, goal, arguments of lockbench): the time of an uncontended operation
UNCONTENDED = [
    ("mutex, one thread", ["--alone", "--section", "0"]),
    ("mutex, threads exist", ["--threads", "1", "--section", "0"]),
    ("spinlock, threads exist", ["--object", "spin", "--threads", "1", "--section", "0"]),
    ("reader of a rwlock", ["--object", "rwlock", "--reads", "100", "--threads", "1",
                            "--section", "0"]),
]
CONTENDED = [
    (f"mutex, {threads} threads, section {section} ns, think {think} ns",
     ["--threads", str(threads), "--section", str(section), "--think", str(think)])
    for threads, section, think in ((2, 100, 0), (2, 200, 200), (2, 2000, 2000), (8, 200, 200),
                                    (16, 1000, 1000))
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("BUILD", "build"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ms", type=int, default=200, help="one measurement")
    parser.add_argument("--locks", default="auto", help="names, separated by commas")
    return parser.parse_args()


def environment(options, lock, profiled, folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RELOCK_")}
    return {**kept, "LD_PRELOAD": os.path.abspath(os.path.join(options.build, "librelock.so")),
            "RELOCK_LOCK": lock, "RELOCK_PROFILE": str(int(profiled)),
            "RELOCK_PROFILE_DIR": folder, "RELOCK_LOG_FILE": "/dev/null"}


def lockbench(options, lock, profiled, arguments, folder):
    command = [os.path.join(options.build, "lockbench"), "--json", "--ms", str(options.ms),
               *arguments]
    done = subprocess.run(command, env=environment(options, lock, profiled, folder),
                          capture_output=True, text=True, check=False, timeout=120)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    if done.returncode != 0 or done.stderr:
        sys.exit(f"profile_cost: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["per_second"]


def start_up_ms(options, lock, profiled, folder):
    before = time.monotonic()
    subprocess.run(["/bin/true"], env=environment(options, lock, profiled, folder), check=True)
    return (time.monotonic() - before) * 1000


def interval(values):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(1000))
    return statistics.median(values), medians[25], medians[974]


def print_row(lock, name, off, on, unit, differences, digits):
    middle, low, high = interval(differences)
    print(f"| {lock} | {name} | {statistics.median(off):.{digits}f} | "
          f"{statistics.median(on):.{digits}f} | {middle:+.1f} {unit} | {low:+.1f} to {high:+.1f} |",
          flush=True)


def measure_pair(measure, rounds):
    """[off values], [on values], each pair measured in an order drawn anew."""
    values = {False: [], True: []}
    for _ in range(rounds):
        for profiled in random.sample([False, True], 2):
            values[profiled].append(measure(profiled))
    return values[False], values[True]


def measure_lock(options, lock, folder):
    for name, arguments in UNCONTENDED:
        off, on = measure_pair(
            lambda p, a=arguments: 1e9 / lockbench(options, lock, p, a, folder), options.rounds)
        print_row(lock, f"{name}, ns", off, on, "ns", [b - a for a, b in zip(off, on)], 1)
    for name, arguments in CONTENDED:
        off, on = measure_pair(
            lambda p, a=arguments: lockbench(options, lock, p, a, folder) / 1e6, options.rounds)
        print_row(lock, f"{name}, million/s", off, on, "%",
                  [(b / a - 1) * 100 for a, b in zip(off, on)], 3)
    off, on = measure_pair(lambda p: start_up_ms(options, lock, p, folder), 3 * options.rounds)
    print_row(lock, "start and end of /bin/true, ms", off, on, "ms",
              [b - a for a, b in zip(off, on)], 1)


def main():
    options = parse_arguments()
    print(f"{options.rounds} rounds of {options.ms} ms, {os.cpu_count()} CPUs\n")
    print("| lock | measured | off | on | difference | 95 % |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="relock-cost.") as folder:
        for lock in options.locks.split(","):
            measure_lock(options, lock, folder)


if __name__ == "__main__":
    main()
