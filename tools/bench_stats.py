"""Paired ratios, their intervals, and whether a goal is met."""

import functools
import math
import random
import statistics
from dataclasses import dataclass

RESAMPLES = 2000
TINY = 1e-12


@dataclass(frozen=True)
class Goal:
    """A bound on a metric: of its ratio to the baseline's, or of the value itself."""
    metric: str
    bound: float
    at_most: bool = False
    paired: bool = True

    def __str__(self):
        of = " of the baseline's" if self.paired else ""
        return f"{self.metric} {'at most' if self.at_most else 'at least'} {self.bound:g}{of}"


@dataclass(frozen=True)
class Interval:
    """A median over rounds, and the bounds that hold it with 95 % confidence."""
    median: float
    low: float
    high: float
    rounds: int

    def __str__(self):
        if self.rounds < 2:
            return short(self.median)
        return f"{short(self.median)} ({short(self.low)}-{short(self.high)})"


def short(value):
    """Two decimals, or three digits where that is more than enough."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.3g}"


# Waits shorter than this are one: the clock that measures them takes 25 ns itself, twice.
SHORTEST_WAIT_NS = 100

# What a single result says about a metric.
METRICS = {
    "throughput": lambda result: result["per_second"],
    "jain": lambda result: result["jain"],
    "least": lambda result: result["least_to_mean"],
    "readers least": lambda result: result["readers"]["least_to_mean"],
    "writers least": lambda result: result["writers"]["least_to_mean"],
    "p99.9": lambda result: max(result["wait_ns"]["p99_9"], SHORTEST_WAIT_NS),
    "longest": lambda result: max(result["wait_ns"]["longest"], result["longest_stall_ns"]),
    "cpu": lambda result: result["cpu_seconds_per_million"],
    "lock time": lambda result: max(1e9 / max(result["per_second"], TINY)
                                    - result.get("loop_ns", 0), 0.01),
}


def interval(values):
    """The median of `values` with the interval that resampling them gives."""
    return _interval(tuple(values))


@functools.lru_cache(maxsize=None)
def _interval(values):
    if len(set(values)) < 2:
        only = values[0] if values else math.nan
        return Interval(only, only, only, len(values))
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values)))
                     for _ in range(RESAMPLES))
    return Interval(statistics.median(values), medians[int(RESAMPLES * 0.025)],
                    medians[int(RESAMPLES * 0.975) - 1], len(values))


def sound(runs):
    """The rounds of {round: result} that ended well."""
    return {key: result for key, result in runs.items() if "error" not in result}


def values_of(metric, runs):
    """{round: value} of one lock at one point."""
    return {key: METRICS[metric](result) for key, result in sound(runs).items()}


def ratios_of(metric, runs, baseline):
    """{round: ratio to the baseline's run of the same round}."""
    mine, theirs = values_of(metric, runs), values_of(metric, baseline)
    return {key: value / max(theirs[key], TINY) for key, value in mine.items() if key in theirs}


def measured(goal, runs, baseline):
    """What is held against the goal, as an Interval."""
    pairs = ratios_of(goal.metric, runs, baseline) if goal.paired else values_of(goal.metric, runs)
    return interval(list(pairs.values()))


def misses(goal, value):
    """By how much the median misses the goal when the whole interval does, otherwise None.

    Compared as printed, to two decimals: nobody can see more of it.
    """
    if value.rounds == 0:
        return None
    if goal.at_most:
        return round(value.median - goal.bound, 4) if round(value.low, 2) > goal.bound else None
    return round(goal.bound - value.median, 4) if round(value.high, 2) < goal.bound else None


def verdict(goal, value):
    if value.rounds == 0:
        return "no run"
    missed = misses(goal, value)
    return "ok" if missed is None else f"MISSED by {short(missed)}"


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(max(value, TINY)) for value in values))


def mean_ratio(metric, points):
    """The geometric mean over points, formed in each round by itself, as an Interval.

    `points` is a list of (runs, baseline); rounds that lack a point are left out.
    """
    ratios = [ratios_of(metric, runs, baseline) for runs, baseline in points]
    rounds = set.intersection(*(set(of_point) for of_point in ratios)) if ratios else set()
    return interval([geometric_mean([of_point[key] for of_point in ratios])
                     for key in sorted(rounds)])


def spread(values):
    """(highest - lowest) / median."""
    middle = statistics.median(values) if values else 0
    return (max(values) - min(values)) / middle if middle else 0.0
