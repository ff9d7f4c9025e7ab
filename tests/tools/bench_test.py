"""The arithmetic of tools/bench.py: known inputs, known answers. Prints a line for each case."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))

# pylint: disable=wrong-import-position,missing-class-docstring,missing-function-docstring
from bench_grid import grid
from bench_limits import limit_per_second
from bench_plan import PRESETS, Point
from bench_run import Bench
from bench_stats import (Goal, Interval, geometric_mean, interval, mean_ratio, measured, misses,
                         ratios_of, spread, verdict)

LIMITS = {"cpus": 2, "atomic_ns": 5.0, "bounce_ns": 50.0, "futex_wake_ns": 3000.0,
          "context_switch_ns": 2000.0}


def runs(*rates):
    """{round: result} with these throughputs; None is a run that failed."""
    return {("s", number): {"error": "hangs"} if rate is None else {"per_second": rate}
            for number, rate in enumerate(rates)}


class Ratios(unittest.TestCase):
    def test_pairs_within_a_round(self):
        # The machine slows down threefold: the ratio stays.
        mine, theirs = runs(200, 100, 66), runs(100, 50, 33)
        self.assertEqual(list(ratios_of("throughput", mine, theirs).values()), [2, 2, 2])

    def test_a_failed_run_has_no_pair(self):
        self.assertEqual(ratios_of("throughput", runs(200, None, 90), runs(100, 50, None)),
                         {("s", 0): 2.0})

    def test_a_baseline_of_nothing(self):
        self.assertGreater(ratios_of("throughput", runs(5), runs(0))[("s", 0)], 1e6)

    def test_mean_is_formed_in_each_round(self):
        points = [(runs(2, 8), runs(1, 1)), (runs(8, 2), runs(1, 1))]
        mean = mean_ratio("throughput", points)
        self.assertAlmostEqual(mean.median, 4)
        self.assertAlmostEqual(mean.low, 4)
        self.assertAlmostEqual(mean.high, 4)

    def test_geometric_mean(self):
        self.assertAlmostEqual(geometric_mean([0.5, 2.0]), 1.0)

    def test_lock_time_leaves_the_loop_out(self):
        mine = {1: {"per_second": 1e9 / 18, "loop_ns": 3.0}}
        theirs = {1: {"per_second": 1e9 / 23, "loop_ns": 3.0}}
        self.assertAlmostEqual(ratios_of("lock time", mine, theirs)[1], 0.75)


class Intervals(unittest.TestCase):
    def test_of_one_value(self):
        self.assertEqual(interval([1.5]), Interval(1.5, 1.5, 1.5, 1))

    def test_of_nothing(self):
        self.assertEqual(interval([]).rounds, 0)

    def test_holds_the_median_and_stays_within_the_values(self):
        value = interval([0.7, 0.8, 0.9, 1.0, 1.1])
        self.assertEqual(value.median, 0.9)
        self.assertTrue(0.7 <= value.low < 0.9 < value.high <= 1.1)

    def test_one_outlier_of_many_does_not_move_it(self):
        value = interval([1.0] * 14 + [9.0])
        self.assertEqual((value.low, value.high), (1.0, 1.0))

    def test_is_the_same_each_time(self):
        values = [0.3, 0.5, 0.9, 1.4, 1.7, 2.0]
        self.assertEqual(interval(values), interval(values))

    def test_covers_as_often_as_it_says(self):
        import random  # pylint: disable=import-outside-toplevel
        draw = random.Random(7)
        held = 0
        for _ in range(40):
            value = interval([draw.gauss(1, 0.1) for _ in range(15)])
            held += value.low <= 1 <= value.high
        self.assertGreaterEqual(held, 34)

    def test_spread(self):
        self.assertAlmostEqual(spread([90, 100, 120]), 0.3)


class Verdicts(unittest.TestCase):
    def test_missed_when_the_whole_interval_lies_below(self):
        goal = Goal("throughput", 0.8)
        self.assertIsNone(misses(goal, Interval(0.75, 0.7, 0.81, 5)))
        self.assertAlmostEqual(misses(goal, Interval(0.75, 0.7, 0.79, 5)), 0.05)
        self.assertEqual(verdict(goal, Interval(0.75, 0.7, 0.79, 5)), "MISSED by 0.05")
        self.assertEqual(verdict(goal, Interval(0.9, 0.85, 0.95, 5)), "ok")

    def test_missed_when_the_whole_interval_lies_above(self):
        goal = Goal("p99.9", 1.25, at_most=True)
        self.assertIsNone(misses(goal, Interval(1.4, 1.2, 1.5, 5)))
        self.assertAlmostEqual(misses(goal, Interval(1.4, 1.3, 1.5, 5)), 0.15)

    def test_compared_as_printed(self):
        self.assertIsNone(misses(Goal("jain", 1.0), Interval(0.997, 0.99, 0.996, 5)))
        self.assertIsNotNone(misses(Goal("jain", 1.0), Interval(0.98, 0.97, 0.994, 5)))

    def test_no_run_is_no_success(self):
        self.assertEqual(verdict(Goal("throughput", 1), interval([])), "no run")

    def test_values_that_are_no_ratios(self):
        goal = Goal("throughput", 100, paired=False)
        self.assertEqual(measured(goal, runs(90, 95, 99), {}).median, 95)
        self.assertAlmostEqual(misses(goal, measured(goal, runs(90, 95, 99), {})), 5)


class Limits(unittest.TestCase):
    def per_operation(self, point, **rest):
        return 1e9 / limit_per_second(point, LIMITS, **rest)

    def test_a_lock_serves_one_section_at_a_time(self):
        self.assertAlmostEqual(self.per_operation(Point("mutex", 4, 1000)), 1010)
        self.assertAlmostEqual(self.per_operation(Point("spin", 4, 1000)), 1005)

    def test_with_much_thinking_the_processors_are_the_limit(self):
        self.assertAlmostEqual(self.per_operation(Point("mutex", 8, 100, 890)), 500)
        self.assertAlmostEqual(self.per_operation(Point("mutex", 1, 100, 890)), 1000)

    def test_alternation_pays_a_bounce(self):
        self.assertAlmostEqual(self.per_operation(Point("mutex", 2, 1000), alternating=True), 1050)
        self.assertAlmostEqual(self.per_operation(Point("mutex", 1, 1000), alternating=True), 1010)

    def test_readers_run_side_by_side(self):
        self.assertAlmostEqual(self.per_operation(Point("rwlock", 2, 1000, reads=100)), 510)
        self.assertAlmostEqual(self.per_operation(Point("rwlock", 2, 1000, reads=0)), 1010)

    def test_every_turn_wakes_somebody(self):
        self.assertAlmostEqual(self.per_operation(Point("cond-pingpong", 2, 100)), 2100)
        self.assertAlmostEqual(self.per_operation(Point("cond-pingpong", 64, 100)), 1050)
        self.assertAlmostEqual(self.per_operation(Point("cond-broadcast", 64, 0)), 1000)

    def test_alone_needs_no_atomics(self):
        self.assertAlmostEqual(self.per_operation(Point("mutex", 1, 200, alone=True)), 200)
        self.assertIsNone(limit_per_second(Point("mutex", 1, alone=True), LIMITS))


class Loop(unittest.TestCase):
    def test_runs_that_did_nothing_are_repeated(self):
        bench = Bench.__new__(Bench)
        bench.turns_per_ns = 1.0
        answers = iter([0, 0, 0, 1e8, 2e8, 0])
        bench.call = lambda *_: {"per_second": next(answers)}
        self.assertAlmostEqual(bench.loop(False), 5.0)


class Presets(unittest.TestCase):
    class Options:
        full = True
        cpus, wait, env, think = 2, "adaptive", [], 200
        object, reads, roles, line_reads = "mutex", 90, "mixed", 0

    def test_every_lock_is_judged(self):
        locks = ["auto", "tas", "ticket", "ticket-backoff"]
        for name in ("overcommit", "fairness"):
            plan = PRESETS[name](self.Options, locks)
            for one in plan.comparisons:
                judged = ["rwsem"] if one.point.object == "rwlock" else locks
                self.assertEqual(sorted(one.goals), sorted(judged), f"{name}: {one.point}")

    def test_overcommit_reaches_from_2x_to_32x(self):
        plan = PRESETS["overcommit"](self.Options, ["auto"])
        points = {(one.point.object, one.point.threads, one.point.section)
                  for one in plan.comparisons}
        self.assertEqual(points, {(kind, threads, section) for kind in ("mutex", "spin")
                                  for threads in (4, 8, 16, 32, 64)
                                  for section in (0, 200, 2000, 10000)})

    def test_the_whole_grid(self):
        points = [one.point for one in grid(self.Options, ["auto"]).comparisons]
        # Seven kinds, seven numbers of threads, three sections with three think times, and nothing.
        self.assertEqual(len(points), 7 * 7 * (3 * 3 + 1))
        self.assertEqual({point.think for point in points if point.section == 10000},
                         {0, 10000, 40000})

    def test_no_point_stands_twice(self):
        for name, make in {**PRESETS, "grid": grid}.items():
            plan = make(self.Options, ["auto", "tas"])
            points = [one.point for one in plan.comparisons]
            self.assertEqual(len(points), len(set(points)), name)


class Lines(unittest.TextTestResult):
    """The protocol of tests/README.md."""

    def addSuccess(self, test):
        super().addSuccess(test)
        print(f"ok bench arithmetic: {test.id().split('.', 1)[1]}")

    def tell(self, test, error):
        reason = str(error[1]).strip().split("\n")
        print(f"not ok bench arithmetic: {test.id().split('.', 1)[1]} - {' '.join(reason)[:200]}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test, err)


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(
        stream=open(os.devnull, "w", encoding="utf-8"), resultclass=Lines))
