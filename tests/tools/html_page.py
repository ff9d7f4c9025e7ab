#!/usr/bin/python3
"""The page of relock report --format html in a headless Chromium: that it sorts, zooms and
searches as the numbers say, and that no name becomes markup.

html_page.py CHROMIUM SCRATCH [SCREENSHOTS] - SCRATCH holds the pages that html.sh has made.
"""
import os
import sys

from devtools import Browser

SCRATCH = sys.argv[2]
SCREENSHOTS = sys.argv[3] if len(sys.argv) > 3 else None
failed = False
browser = Browser(sys.argv[1], SCRATCH + "/chromium")
run = browser.run


def expect(name, holds, reason=""):
    global failed
    print(f"ok html: {name}" if holds else f"not ok html: {name} - {str(reason)[:300]}", flush=True)
    failed = failed or not holds


def open_page(name, width=1400, height=900, theme="light"):
    browser.window(width, height, theme)
    browser.open(f"file://{SCRATCH}/{name}.html")


def rows():
    """The ids of the locks in the table, from the top."""
    return run("[...document.querySelectorAll('#locks tbody tr')].map((row) => +row.dataset.lock)")


def text(selector):
    return run(f"document.querySelector({selector!r}).textContent")


# The box whose label is given, as JavaScript.
BOX = "[...document.querySelectorAll('#{} .frame')].find((box) => box.ariaLabel.startsWith('{}: '))"


def box_width(graph, label):
    """Of the graph's width; None: no such box."""
    return run(f"(() => {{ const box = {BOX.format(graph, label)}; if (!box) return null; return "
               f"box.offsetWidth / document.querySelector('#{graph} .flame-rows').offsetWidth; }})()")


def click_box(graph, label):
    run(f"{BOX.format(graph, label)}.id = 'target'")
    browser.click("#target")


def test_opening():
    open_page("page")
    expect("opens without a word in the console and fetches nothing", not browser.complaints(),
           browser.complaints())
    expect("the program is the title", text("#title").startswith("page["), text("#title"))
    expect("no name became markup", run("document.title").startswith("page[") and
           run("document.querySelectorAll('img, b:not([class]) script').length") == 0 and
           run("document.querySelectorAll('script').length") == 2, run("document.title"))
    shown = run("document.querySelector('main').innerText")
    expect("names are shown as they are", '<!--<script>"&#39;</title>lock' in shown and
           '</script><script>document.title="taken"' in run("JSON.stringify(document.body.innerText)")
           .replace('\\"', '"'), shown)
    expect("a name cannot turn the line around", "\u202e" not in run("document.body.innerText") and
           "\\u202e" in run("document.body.innerText"), "")
    expect("the totals stand on top", run("document.querySelectorAll('.tile').length") >= 5)
    expect("bars of the histogram add up to the waits", run(
        "[...document.querySelectorAll('#histogram .bucket')].reduce((sum, bucket) => "
        "sum + +bucket.ariaLabel.match(/: ([0-9,]+) /)[1].replaceAll(',', ''), 0)"
        "=== report.locks.reduce((sum, lock) => sum + lock.histogram.reduce((a, b) => a + b), 0)"))


def test_sorting():
    values = {"name": "lock.name.toLowerCase()", "wait_ns": "lock.wait_ns", "share": "lock.wait_ns",
              "waits": "lock.waits", "mean": "lock.wait_ns / lock.waits", "max": "lock.max_wait_ns",
              "acquisitions": "lock.acquisitions"}
    for column, value in values.items():
        header = f"button[data-column={column}]"
        orders = []
        for _ in range(2):
            browser.click(header)
            keys = [run(f"(() => {{ const lock = report.locks.find((l) => l.id === {row}); "
                        f"return {value}; }})()") for row in rows()]
            direction = run(f"document.querySelector('{header}').closest('th').ariaSort")
            orders.append((direction, keys))
        holds = {direction for direction, _ in orders} == {"ascending", "descending"} and all(
            keys == sorted(keys, reverse=direction == "descending") for direction, keys in orders)
        expect(f"sorts by {column}, both ways", holds and len(orders[0][1]) >= 2, orders)
    browser.click("#table-filter")
    browser.type("hot_lo")
    expect("the filter keeps the locks of that name", len(rows()) == 1 and
           "hot_lock" in text("#locks tbody"), text("#locks tbody"))
    browser.key("Escape", 27)
    expect("Escape empties it", len(rows()) >= 2)


def test_choosing():
    hot = run("report.locks.find((lock) => lock.name.startsWith('hot_lock')).id")
    browser.click(f"tr[data-lock='{hot}']")
    expect("a row chooses its lock", "hot_lock" in text("#scope") and
           run("document.querySelectorAll('tr[aria-selected=true]').length") == 1, text("#scope"))
    expect("the graphs are that lock's", box_width("waiters", "use_long") is not None and
           box_width("waiters", "main") is None and "hostile" not in text("#waiters"))
    expect("and both sides stand below", "use_long" in text("#pairs") and
           "because of" in text("#pairs"))
    share = run("(() => { const lock = report.locks.find((l) => l.name.startsWith('hot_lock')); "
                "const through = lock.waiters.filter((w) => w.stack !== null && report.stacks[w.stack]"
                ".some((f) => report.frames[f].name === 'use_long')); "
                "return through.reduce((sum, w) => sum + w.ns, 0) / lock.wait_ns; })()")
    width = box_width("waiters", "use_long")
    expect("a box is as wide as its share", abs(width - share) < 0.01 and share > 0.3,
           f"{width} {share}")


def test_zooming():
    before = box_width("blockers", "use_short")
    click_box("waiters", "use_long")
    expect("a click makes a box as wide as the graph", box_width("waiters", "use_long") > 0.99,
           box_width("waiters", "use_long"))
    expect("its siblings are gone, its callers stay", box_width("waiters", "use_short") is None and
           box_width("waiters", "work") > 0.99)
    want = run("(() => { const lock = report.locks.find((l) => l.name.startsWith('hot_lock')); "
               "const has = (stack, name) => stack !== null && report.stacks[stack].some((f) => "
               "report.frames[f].name === name); const pairs = lock.pairs.filter((p) => "
               "has(p.waiter, 'use_long')); const sum = (list) => list.reduce((s, p) => s + p.ns, 0); "
               "return sum(pairs.filter((p) => has(p.blocker, 'use_short'))) / sum(pairs); })()")
    now = box_width("blockers", "use_short") or 0
    expect("the graph below shows who held the lock then", abs(now - want) < 0.01 and
           "use_long" in text("#blockers-note"), f"{before} {now} {want}")
    click_box("blockers", "use_long")
    expect("which zooms as well", box_width("blockers", "use_long") > 0.99)
    browser.click("#reset")
    expect("the button leads back", box_width("waiters", "use_short") is not None and
           abs(box_width("blockers", "use_short") - before) < 0.01 and
           run("document.querySelector('#reset').disabled"))
    run("document.activeElement.blur()")
    click_box("waiters", "use_short")
    run("document.activeElement.blur()")
    browser.key("Escape", 27)
    expect("and so does Escape", box_width("waiters", "use_long") is not None)


def test_searching():
    browser.key("/", 191)
    expect("/ goes to the search", run("document.activeElement.id") == "search")
    browser.type("USE_lo")
    found = run("[...document.querySelectorAll('#waiters .frame.found')].map((b) => b.ariaLabel)")
    expect("boxes of that name are marked, in any case of letters",
           len(found) > 0 and all(label.startswith("use_long: ") for label in found), found)
    expect("and added up", text("#search-result").startswith(
        run("percent(waiters.coveredBy(waiters.root), waiters.root.ns)") + " above"),
        text("#search-result"))
    browser.key("Escape", 27)
    expect("Escape ends the search", run("document.querySelectorAll('.found').length") == 0 and
           text("#search-result") == "")
    browser.click("#all-locks")
    browser.click("#search")
    browser.type("document.title=")
    expect("a hostile name is found by its text",
           run("document.querySelectorAll('#waiters .found').length") > 0)
    browser.key("Escape", 27)


def test_tip_and_kinds():
    click_box("waiters", "use_long")
    x, y = run("(() => { const b = " + BOX.format("waiters", "use_long") +
               ".getBoundingClientRect(); return [b.x + 20, b.y + 8]; })()")
    browser.mouse("mouseMoved", x, y)
    tip = text("#tip")
    expect("a box explains itself", "use_long" in tip and "sampled" in tip and
           not run("document.querySelector('#tip').hidden"), tip)
    browser.click("#show-conditions")
    expect("condition variables have a view of their own", "cond" in text("#locks tbody") and
           "turned" in text("#locks tbody") and text("#blockers-title") == "Woken by whom",
           text("#locks"))
    browser.click("#show-locks")
    expect("and back", "hot_lock" in text("#locks tbody"))


def test_looks():
    background = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    for theme in ("light", "dark"):
        open_page("page", theme=theme)
        seen[theme] = run(background)
        if SCREENSHOTS:
            browser.screenshot(f"{SCREENSHOTS}/{theme}.png")
    expect("follows the wish for dark or light", seen["light"] != seen["dark"], seen)
    browser.click("#theme")
    expect("the button switches to the other", run(background) == seen["light"] and
           text("#theme") == "Dark", run(background))
    for width in (1920, 1024, 700, 380):
        open_page("page", width=width)
        overflow = run("document.documentElement.scrollWidth - innerWidth")
        if SCREENSHOTS:
            browser.screenshot(f"{SCREENSHOTS}/width-{width}.png")
        expect(f"fits a window of {width} pixels", overflow <= 0, overflow)


def test_other_reports():
    for name in ("site", "none"):
        open_page(name)
        expect(f"the {name} page opens without a word in the console", not browser.complaints() and
               run("document.querySelectorAll('.tile').length") >= 5, browser.complaints())
    expect("a report without locks says so", "more were left out" in text("#table-rest"),
           text("#table-rest"))


try:
    for test in (test_opening, test_sorting, test_choosing, test_zooming, test_searching,
                 test_tip_and_kinds):
        test()
    expect("nothing was said in the console meanwhile", not browser.complaints(),
           browser.complaints())
    test_looks()
    test_other_reports()
except (RuntimeError, TimeoutError, ConnectionError, TypeError) as error:
    expect("the browser answers", False, repr(error))
finally:
    browser.close()
sys.exit(failed)
