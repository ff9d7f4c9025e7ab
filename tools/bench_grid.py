"""The grid: threads x section x think time x kind of object, its goals, and its tables."""

import statistics

from bench_plan import Comparison, Plan, Point, lock, time_text
from bench_report import judge, limits_text, mean_verdicts, point_limit, verdicts
from bench_stats import Goal, interval, mean_ratio, ratios_of, short, sound, spread, verdict

THREADS = (1, 2, 4, 8, 16, 32, 64)
SECTIONS_NS = (0, 100, 1000, 10000)
MULTIPLES = (0, 1, 4)  # think time, of the section
KINDS = (("mutex", 90), ("spin", 90), ("rwlock", 100), ("rwlock", 90), ("rwlock", 0),
         ("cond-pingpong", 90), ("cond-broadcast", 90))
# What the subset keeps of every object but the mutex.
SUBSET_THREADS = (1, 2, 8, 64)
SUBSET_MULTIPLES = (0, 1)


def loads(multiples):
    """(section, think): a section of nothing has no multiples."""
    return [(0, 0)] + [(section, section * multiple)
                       for section in SECTIONS_NS if section for multiple in multiples]


def goals_of(point):
    goals = [Goal("p99.9", 1.25, at_most=True), Goal("jain", 1.0)]
    if point.object in ("mutex", "spin", "rwlock"):
        goals.append(Goal("throughput", 0.95))
    if point.object == "cond-pingpong" and point.threads > 1:
        goals.append(Goal("throughput", 1.0))
    if point.object == "cond-broadcast" and point.threads == 64:
        goals.append(Goal("throughput", 1.5))
    return goals


def grid(options, locks):
    """threads x section x think time x kind of object, against glibc."""
    comparisons = []
    for kind, reads in KINDS:
        whole = options.full or kind == "mutex"
        # Every lock of the list comes with the same readers-writer lock.
        names = locks[:1] if kind == "rwlock" else locks
        subjects = [lock(name, options.wait, options.env) for name in names]
        for section, think in loads(MULTIPLES if whole else SUBSET_MULTIPLES):
            for threads in THREADS if whole else SUBSET_THREADS:
                point = Point(kind, threads, section, think, reads)
                goals = {"auto": goals_of(point)} if "auto" in names else {}
                comparisons.append(Comparison(point, subjects, goals=goals))
    of_mutexes = ("auto", "all mutex points", lambda point: point.object == "mutex")
    means = [(*of_mutexes, Goal("throughput", 1.2)),
             (*of_mutexes, Goal("cpu", 1.1, at_most=True)),
             ("auto", "all points", lambda point: True, Goal("cpu", 1.1, at_most=True))]
    return Plan("grid", "Throughput over bare glibc's", comparisons, 5, 300, mean_goals=means)


def by_kind(judged, name):
    kinds = {}
    for one in judged:
        if one.subject.name == name and sound(one.runs):
            kinds.setdefault(one.point.kind(), []).append(one)
    return kinds


def worst(members, metric, at_most):
    """The worst point's ratio, and which point it is."""
    ratios = [(one.ratio(metric).median, one.point) for one in members]
    value, point = (max if at_most else min)(ratios, key=lambda pair: pair[0])
    plural = "s" if point.threads > 1 else ""
    return f"{short(value)} ({point.threads} thread{plural}, {point.load()})"


def of_limit(one, runs, alternating=False):
    """Throughput over what the hardware allows, or None where nothing is said about it."""
    limit = point_limit(one.point, runs, alternating)
    return one.middle("throughput") / limit if limit else None


def median_of_limit(members, runs):
    shares = [share for share in (of_limit(one, runs) for one in members) if share is not None]
    return f"{statistics.median(shares):.0%}" if shares else "-"


def summary_lines(judged, runs):
    """A row for each kind of object and lock."""
    lines = ["| object | lock | throughput | worst point | p99.9, mean | Jain, worst | CPU/op | "
             "of the limit, lock | glibc | points missed |", "|" + "---|" * 10]
    for name in dict.fromkeys(one.subject.name for one in judged
                              if one.subject != one.comparison.baseline):
        for kind, members in by_kind(judged, name).items():
            means = {metric: mean_ratio(metric, [(one.runs, one.baseline) for one in members])
                     for metric in ("throughput", "p99.9", "cpu")}
            bare = [one for one in judged if one.subject == one.comparison.baseline
                    and one.point.kind() == kind]
            jain = min(one.ratio("jain").median for one in members)
            missed = sum(bool(one.missed()) for one in members)
            lines.append(f"| {kind} | {name} | {means['throughput']} | "
                         f"{worst(members, 'throughput', False)} | {short(means['p99.9'].median)} "
                         f"| {short(jain)} | {short(means['cpu'].median)} | "
                         f"{median_of_limit(members, runs)} | {median_of_limit(bare, runs)} | "
                         f"{missed} of {len(members)} |")
    return lines


def load_header(section, think):
    if section == 0:
        return "nothing"
    return f"{time_text(section)} / {think // section}x"


def matrix_lines(judged, name):
    """For each kind of object: threads x (section, think), the ratio of throughput."""
    lines = []
    for kind, members in by_kind(judged, name).items():
        columns = list(dict.fromkeys((one.point.section, one.point.think) for one in members))
        cells = {(one.point.threads, one.point.section, one.point.think): one for one in members}
        lines += [f"\n{kind}, {name}; section / think time:\n",
                  "| threads | " + " | ".join(load_header(*load) for load in columns) + " |",
                  "|---|" + "---|" * len(columns)]
        for threads in sorted({one.point.threads for one in members}):
            row = [cells.get((threads, *load)) for load in columns]
            lines.append(f"| {threads} | " + " | ".join(
                "" if one is None else short(one.ratio("throughput").median) +
                ("*" if one.missed() else "") for one in row) + " |")
    return lines


def percent(share):
    return "-" if share is None else f"{share:.0%}"


def detail_row(one, runs):
    rates = one.values("throughput")
    if not rates:
        return [str(one.point.threads), one.point.load(), one.subject.name, one.verdict()]
    ratios = {metric: interval(list(ratios_of(metric, one.runs, one.baseline).values()))
              for metric in ("throughput", "p99.9", "cpu", "jain")}
    return [str(one.point.threads), one.point.load(), one.subject.name,
            f"{statistics.median(rates) / 1e6:.3f}", f"{spread(rates):.0%}",
            str(ratios["throughput"]), f"{one.middle('jain'):.3f}",
            f"{one.middle('p99.9') / 1000:.1f}", str(ratios["p99.9"]),
            f"{one.middle('longest') / 1e6:.1f}", f"{one.middle('cpu'):.3f}", str(ratios["cpu"]),
            percent(of_limit(one, runs)), percent(of_limit(one, runs, alternating=True)),
            one.verdict()]


def detail_lines(judged, runs):
    """A row for each lock at each point, with all that was measured."""
    head = ["threads", "load", "lock", "million/s", "spread", "ratio (95 %)", "Jain", "p99.9 us",
            "ratio", "longest ms", "CPU s/M", "ratio", "of limit", "alternating", "verdict"]
    lines = []
    for kind in dict.fromkeys(one.point.kind() for one in judged):
        lines += [f"\n{kind}:\n", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(detail_row(one, runs)) + " |"
                  for one in judged if one.point.kind() == kind]
    return lines


def write_grid_markdown(plan, runs, path):
    judged = judge(plan, runs)
    header = runs.headers[-1]
    rounds = sum(one["rounds"] for one in runs.headers)
    first = next(one.subject.name for one in judged if one.subject != one.comparison.baseline)
    lines = [f"{plan.title}: {header['processor']}, {header['cpus']} CPUs, Linux "
             f"{header['kernel']}; {rounds} rounds of {header['ms']} ms, locks interleaved at each "
             "point. Ratios are medians of the paired ratios, with the 95 % interval of that "
             "median; a mean over points is geometric; * marks a point that misses a goal.\n",
             f"Limits: {limits_text(runs)}. What they allow at a point: `tools/bench_limits.py`.\n"]
    lines += summary_lines(judged, runs)
    lines += ["", *(f"- {title}: {goal.metric} {value}, goal "
                    f"{'at most' if goal.at_most else 'at least'} {goal.bound:g}: "
                    f"{verdict(goal, value)}"
                    for title, value, goal in mean_verdicts(plan, judged))]
    lines += matrix_lines(judged, first)
    missed, goals = verdicts(plan, judged)
    lines.append(f"\n{goals} goals, {len(missed)} missed" + (":\n" if missed else "."))
    lines += [f"- {line}" for line in missed]
    lines += detail_lines(judged, runs)
    with open(path, "w", encoding="utf-8") as output:
        output.write("\n".join(lines) + "\n")
