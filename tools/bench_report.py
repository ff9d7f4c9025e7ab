"""Prints what was measured, each point with its verdict, as text and as Markdown."""

import statistics

from bench_limits import limit_per_second
from bench_stats import (Goal, interval, mean_ratio, measured, misses, ratios_of, short,
                         sound, spread, values_of, verdict)


class Judged:
    """One lock at one point: what was measured, and what its goals say."""

    def __init__(self, comparison, subject, runs):
        self.comparison, self.subject = comparison, subject
        self.point = comparison.point
        self.runs = runs.of(self.point, subject)
        self.baseline = runs.of(self.point, comparison.baseline)
        self.goals = comparison.goals.get(subject.name, [])
        self.errors = [result["error"] for result in self.runs.values() if "error" in result]

    def ratio(self, metric):
        return interval(list(ratios_of(metric, self.runs, self.baseline).values()))

    def values(self, metric):
        return list(values_of(metric, self.runs).values())

    def middle(self, metric):
        values = self.values(metric)
        return statistics.median(values) if values else float("nan")

    def missed(self):
        """[(goal, interval)] of the goals that are missed."""
        pairs = [(goal, measured(goal, self.runs, self.baseline)) for goal in self.goals]
        return [(goal, value) for goal, value in pairs if misses(goal, value) is not None]

    def failed(self):
        return bool(self.errors)

    def verdict(self):
        if self.errors:
            return f"FAILED: {self.errors[0]}"
        if not self.goals or not self.runs:
            return ""
        missed = self.missed()
        if len(self.goals) == 1 or not missed:
            goal = self.goals[0]
            return verdict(goal, measured(goal, self.runs, self.baseline)) if missed else "ok"
        return ", ".join(f"{goal.metric} {verdict(goal, value)}" for goal, value in missed)


def judge(plan, runs):
    """Every lock at every point that has runs."""
    return [Judged(one, subject, runs) for one in plan.comparisons
            for subject in one.all_subjects() if runs.of(one.point, subject)]


def shown_cell(plan, judged):
    """The number of a table: a ratio with its interval, or a share by itself."""
    metric = plan.shown
    if judged.failed():
        return "FAILED"
    if metric == "least":
        goals = judged.goals or [Goal("least", 0, paired=False)]
        return " / ".join(short(judged.middle(goal.metric)) for goal in goals)
    rate = f"{judged.middle('throughput') / 1e6:.2f} M/s, " if plan.rates else ""
    return rate + str(judged.ratio(metric))


def limits_text(runs):
    """What the hardware takes, median and range over the rounds."""
    middle = runs.middle_limits()

    def text(name, unit_ns, unit):
        values = [limits[name] / unit_ns for limits in runs.limits]
        spread_text = f" ({min(values):.3g}-{max(values):.3g})" if len(values) > 1 else ""
        return f"{middle[name] / unit_ns:.3g}{spread_text} {unit}"
    return (f"one atomic {text('atomic_ns', 1, 'ns')}, line bounce {text('bounce_ns', 1, 'ns')}, "
            f"futex wake to run {text('futex_wake_ns', 1000, 'us')}, "
            f"hand-over on one CPU {text('context_switch_ns', 1000, 'us')}, "
            f"loop without a lock {runs.headers[-1]['loop_ns']:.1f} ns")


def print_head(plan, runs):
    headers, header = runs.headers, runs.headers[-1]
    print(f"{plan.title}\n{header['processor']}, {header['cpus']} CPUs, Linux {header['kernel']}; "
          f"{sum(one['rounds'] for one in headers)} rounds of {header['ms']} ms; "
          f"load {header['load']}")
    print(f"limits: {limits_text(runs)}")
    print("spread: (highest - lowest) / median of single runs; 95 %: of the median ratio, by "
          "bootstrap over paired rounds;\nlimit: share of what the hardware allows "
          "(tools/bench_limits.py)")


def point_limit(point, runs, alternating=False):
    return limit_per_second(point, runs.middle_limits(), alternating)


def print_point(plan, judged, runs):
    """All locks at one point."""
    comparison = judged[0].comparison
    print(f"\n{comparison.point}")
    ratio_of = "throughput" if plan.shown == "least" else plan.shown
    print(f"  {'lock':<15} {'million/s':>9} {'spread':>6} {'to ' + comparison.baseline.name:>9} "
          f"{'95 %':>13} {'Jain':>6} {'least':>5} {'p99.9 us':>9} {'longest ms':>10} "
          f"{'CPU s/M':>8} {'limit':>6}  verdict")
    limit = point_limit(comparison.point, runs)
    for one in judged:
        if not sound(one.runs):
            print(f"  {one.subject.name:<15} {one.verdict()}")
            continue
        rates = one.values("throughput")
        ratio = one.ratio(ratio_of)
        of_limit = f"{statistics.median(rates) / limit:6.0%}" if limit else f"{'-':>6}"
        print(f"  {one.subject.name:<15} {statistics.median(rates) / 1e6:9.3f} "
              f"{spread(rates):6.0%} {short(ratio.median):>9} "
              f"{short(ratio.low) + '-' + short(ratio.high):>13} {one.middle('jain'):6.3f} "
              f"{one.middle('least'):5.2f} {one.middle('p99.9') / 1000:9.1f} "
              f"{one.middle('longest') / 1e6:10.1f} {one.middle('cpu'):8.3f} {of_limit}  "
              f"{one.verdict()}")
        if comparison.point.object == "rwlock":
            print(f"  {'':<15} least among readers {one.middle('readers least'):.2f}, "
                  f"among writers {one.middle('writers least'):.2f}")


def mean_lines(plan, judged):
    """Geometric means over all points, as (lock, title, interval, worst, goal)."""
    lines = []
    metric = "throughput" if plan.shown == "least" else plan.shown
    names = list(dict.fromkeys(one.subject.name for one in judged
                               if one.subject != one.comparison.baseline))
    for name in names:
        mine = [one for one in judged if one.subject.name == name and sound(one.runs)]
        if not mine:
            continue
        mean = mean_ratio(metric, [(one.runs, one.baseline) for one in mine])
        medians = [one.ratio(metric).median for one in mine]
        worst = max(medians) if metric in ("lock time", "cpu", "p99.9") else min(medians)
        lines.append((name, mean, worst, sum(bool(one.missed()) for one in mine), len(mine)))
    return lines


def mean_verdicts(plan, judged):
    """(title, interval, goal) for each goal that concerns a mean over points."""
    found = []
    for name, title, concerns, goal in plan.mean_goals:
        mine = [one for one in judged if one.subject.name == name and concerns(one.point)]
        if mine:
            found.append((f"{name}, {title}",
                          mean_ratio(goal.metric, [(one.runs, one.baseline) for one in mine]),
                          goal))
    return found


def verdicts(plan, judged):
    """One line for each missed goal, and how many were judged."""
    means = mean_verdicts(plan, judged)
    lines = [f"{one.point}, {one.subject.name}: {goal.metric} {value}, "
             f"goal {'at most' if goal.at_most else 'at least'} {goal.bound:g}: "
             f"{verdict(goal, value)}"
             for one in judged for goal, value in one.missed()]
    lines += [f"{title}: {goal.metric} {value}, goal {'at most' if goal.at_most else 'at least'} "
              f"{goal.bound:g}: {verdict(goal, value)}"
              for title, value, goal in means if misses(goal, value) is not None]
    lines += [f"{one.point}, {one.subject.name}: FAILED: {one.errors[0]}"
              for one in judged if one.failed()]
    return lines, len(means) + sum(len(one.goals) for one in judged)


def print_text(plan, runs):
    """Everything. Whether a goal is missed, and whether a run failed."""
    judged = judge(plan, runs)
    print_head(plan, runs)
    for comparison in plan.comparisons:
        of_point = [one for one in judged if one.comparison is comparison]
        if of_point:
            print_point(plan, of_point, runs)
    metric = "throughput" if plan.shown == "least" else plan.shown
    print(f"\n{metric} over the baseline's: geometric mean (95 %), worst point, points missed")
    for name, mean, worst, missed, points in mean_lines(plan, judged):
        print(f"  {name:<15} {str(mean):<20} {short(worst):>6} {missed:>4} of {points}")
    for title, value, goal in mean_verdicts(plan, judged):
        print(f"  {title}: {goal.metric} {value}, {verdict(goal, value)}")
    lines, goals = verdicts(plan, judged)
    print(f"\n{goals} goals, {len(lines)} MISSED" if goals or lines else "")
    for line in lines:
        print(f"  {line}")
    failed = any(one.failed() for one in judged)
    return bool(lines), failed


def markdown_tables(plan, judged):
    """A table for each load: a row per number of threads, a column per lock."""
    groups = {}
    for one in judged:
        groups.setdefault((one.point.kind(), one.point.load()), []).append(one)
    lines = []
    for (kind, load), members in groups.items():
        names = list(dict.fromkeys(one.subject.name for one in members
                                   if plan.shown == "least" or plan.rates or
                                   one.subject != one.comparison.baseline))
        lines += [f"\n{kind}, {load}:\n", "| threads | " + " | ".join(names) + " |",
                  "|---|" + "---|" * len(names)]
        for threads in dict.fromkeys(one.point.threads for one in members):
            cells = {one.subject.name: shown_cell(plan, one) + (" **missed**" if one.missed()
                                                                else "")
                     for one in members if one.point.threads == threads}
            lines.append(f"| {threads} | " + " | ".join(cells.get(name, "") for name in names) +
                         " |")
    return lines


def write_markdown(plan, runs, path):
    judged = judge(plan, runs)
    header = runs.headers[-1]
    rounds = sum(one["rounds"] for one in runs.headers)
    lines = [f"{plan.title}. {header['processor']}, {header['cpus']} CPUs; {rounds} "
             f"round{'s' if rounds > 1 else ''} of {header['ms']} ms, locks interleaved."]
    if plan.shown == "least":
        lines.append("Where there are three numbers: all threads / readers / writers; "
                     "(none) is glibc's lock with nothing preloaded.")
    else:
        lines.append("Median of the paired ratios (95 % interval of that median); "
                     "(none) is glibc's lock with nothing preloaded. "
                     f"Limits here: {limits_text(runs)}.")
    lines += markdown_tables(plan, judged)
    found, goals = verdicts(plan, judged)
    if goals:
        lines.append(f"\n{goals} goals, {len(found)} missed" + (":\n" if found else "."))
        lines += [f"- {line}" for line in found]
    with open(path, "w", encoding="utf-8") as output:
        output.write("\n".join(lines) + "\n")


