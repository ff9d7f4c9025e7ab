"""Draws the grid as heat maps: a panel for each kind of object, threads x (section, think)."""

import math
from html import escape

from bench_grid import MULTIPLES, SECTIONS_NS, THREADS, by_kind, loads
from bench_plan import time_text
from bench_report import judge, limits_text
from bench_stats import short

CELL_WIDTH, CELL_HEIGHT = 44, 22
GROUP_GAP = 6       # between sections
LABEL_WIDTH = 52    # of the rows
HEAD_HEIGHT = 62    # title of a panel and its column labels
MARGIN, PANEL_GAP = 24, 36
COLUMNS = 2
TOP = 92
INK, FAINT, PAPER, EMPTY = "#1b1f24", "#57606a", "#ffffff", "#eef0f2"
FASTER, SLOWER = (86, 160, 225), (240, 150, 80)
THROUGHPUT_MISSED = 'stroke="#b3261e" stroke-width="1.6"'
REST_MISSED = 'stroke="#57606a" stroke-width="1.2" stroke-dasharray="3 2"'


def colour(ratio):
    """White at 1, blue up to four times as fast, orange down to a quarter."""
    strength = min(abs(math.log(max(ratio, 1e-6), 4)), 1)
    target = FASTER if ratio >= 1 else SLOWER
    mixed = (round(255 + (part - 255) * strength) for part in target)
    return "#" + "".join(f"{part:02x}" for part in mixed)


def text(x, y, words, size=12, anchor="start", fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}" font-weight="{weight}">{escape(words)}</text>')


def column_positions():
    """{(section, think): x} and the width of a panel."""
    positions, x, before = {}, LABEL_WIDTH, None
    for section, think in loads(MULTIPLES):
        if before is not None and section != before:
            x += GROUP_GAP
        positions[section, think] = x
        x, before = x + CELL_WIDTH, section
    return positions, x


def cell(x, y, one):
    """One point: its ratio on its colour, framed when it misses a goal."""
    width, height = CELL_WIDTH - 2, CELL_HEIGHT - 2
    if one is None:
        return [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{EMPTY}"/>']
    value = one.ratio("throughput")
    missed = [goal.metric for goal, _ in one.missed()]
    frame = ""
    if missed:
        frame = THROUGHPUT_MISSED if "throughput" in missed else REST_MISSED
    title = f"{one.point}: {value}, {one.verdict()}"
    shown = short(value.median) if value.median < 10 else f"{value.median:.3g}"
    return [f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{width}" '
            f'height="{height}" fill="{colour(value.median)}" {frame}/>',
            text(x + width / 2, y + height - 6, shown, 12, "middle",
                 weight="bold" if "throughput" in missed else "normal"), "</g>"]


def panel(left, top, kind, members):
    positions, _ = column_positions()
    cells = {(one.point.threads, one.point.section, one.point.think): one for one in members}
    out = [text(left, top + 14, kind, 14, weight="bold")]
    for section in SECTIONS_NS:
        x = left + positions[section, 0]
        name = "empty" if section == 0 else f"section {time_text(section)}"
        out.append(text(x, top + 38, name.replace("us", "µs"), 11, fill=FAINT))
        for multiple in MULTIPLES if section else (0,):
            middle = left + positions[section, section * multiple] + CELL_WIDTH / 2 - 1
            label = "" if section == 0 else "think 0" if multiple == 0 else f"{multiple}x"
            out.append(text(middle, top + 54, label, 11, "middle", FAINT))
    for row, threads in enumerate(THREADS):
        y = top + HEAD_HEIGHT + row * CELL_HEIGHT
        out.append(text(left + LABEL_WIDTH - 8, y + CELL_HEIGHT - 8, str(threads), 12, "end"))
        for (section, think), x in positions.items():
            out += cell(left + x, y, cells.get((threads, section, think)))
    out.append(text(left, top + HEAD_HEIGHT - 8, "threads", 11, fill=FAINT))
    return out


def legend(x, y):
    out = []
    for step, ratio in enumerate((0.25, 0.5, 0.8, 1, 1.25, 2, 4)):
        left = x + step * 40
        out += [f'<rect x="{left}" y="{y}" width="38" height="16" fill="{colour(ratio)}" '
                f'stroke="{FAINT}" stroke-width="0.5"/>',
                text(left + 19, y + 12, f"{ratio:g}", 11, "middle")]
    for left, frame, words in ((x + 304, THROUGHPUT_MISSED, "misses its goal of throughput"),
                               (x + 534, REST_MISSED, "only that of p99.9 or Jain index")):
        out += [f'<rect x="{left}" y="{y}" width="38" height="16" fill="{PAPER}" {frame}/>',
                text(left + 46, y + 12, words, 11, fill=FAINT)]
    return out


def write_svg(plan, runs, path):
    """The first lock of the plan, glibc being 1."""
    judged = judge(plan, runs)
    name = next(one.subject.name for one in judged if one.subject != one.comparison.baseline)
    kinds = by_kind(judged, name)
    _, panel_width = column_positions()
    panel_height = HEAD_HEIGHT + len(THREADS) * CELL_HEIGHT
    rows = math.ceil(len(kinds) / COLUMNS)
    width = 2 * MARGIN + COLUMNS * panel_width + (COLUMNS - 1) * PANEL_GAP
    height = TOP + rows * (panel_height + PANEL_GAP)
    header = runs.headers[-1]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="system-ui, Helvetica, Arial, sans-serif">',
           f"<title>lockbench grid: {escape(name)} over glibc</title>",
           f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
           text(MARGIN, 30, f"Throughput of {name} over glibc's locks", 18, weight="bold"),
           text(MARGIN, 50, f"{header['processor']}, {header['cpus']} CPUs, "
                f"{sum(one['rounds'] for one in runs.headers)} rounds of {header['ms']} ms; "
                "median of paired ratios", 12, fill=FAINT),
           text(MARGIN, 66, f"limits: {limits_text(runs)}".replace(" us", " µs"), 11, fill=FAINT)]
    out += legend(MARGIN, 74)
    for index, (kind, members) in enumerate(kinds.items()):
        left = MARGIN + (index % COLUMNS) * (panel_width + PANEL_GAP)
        top = TOP + 16 + (index // COLUMNS) * (panel_height + PANEL_GAP)
        out += panel(left, top, kind, members)
    with open(path, "w", encoding="utf-8") as output:
        output.write("\n".join(out) + "\n</svg>\n")
