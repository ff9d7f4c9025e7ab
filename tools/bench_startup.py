"""What the preloaded library adds to the start of a program that does nothing."""

import os
import statistics
import time

from bench_run import clean_environment
from bench_stats import Goal, interval, verdict

PROGRAM = "/bin/true"
GOAL = Goal("milliseconds added", 1.0, at_most=True, paired=False)


def start_ms(environment):
    begin = time.perf_counter()
    child = os.posix_spawn(PROGRAM, [PROGRAM], environment)
    _, status = os.waitpid(child, 0)
    taken = (time.perf_counter() - begin) * 1000
    if status != 0:
        raise OSError(f"{PROGRAM}: wait status {status}")
    return taken


def report_startup(build, rounds, locks):
    """Prints a line for each lock; True when all meet the goal."""
    library = os.path.abspath(os.path.join(build, "librelock.so"))
    bare = clean_environment()
    preloaded = {name: {**bare, "LD_PRELOAD": library, "RELOCK_LOCK": name} for name in locks}
    added = {name: [] for name in locks}
    of_bare = []
    for _ in range(rounds):
        without = start_ms(bare)
        of_bare.append(without)
        for name in locks:
            added[name].append(start_ms(preloaded[name]) - without)
    print(f"start and end of {PROGRAM}: {statistics.median(of_bare):.2f} ms; added by the library, "
          f"median of {rounds} pairs (95 %), milliseconds:")
    verdicts = {name: interval(values) for name, values in added.items()}
    for name, value in verdicts.items():
        print(f"  {name:<15} {value}  {verdict(GOAL, value)}")
    return all(verdict(GOAL, value) == "ok" for value in verdicts.values())
