"""What the hardware allows at a point of the grid, from what `lockbench --limits` measured.

With c CPUs, t threads, p = min(c, t) of them running, section s, think time z, one atomic exchange
a, one line bounce b, one wake-up w (the cheaper of a futex wake on another CPU and a hand-over on
the same), all in nanoseconds, an operation takes at least

  mutex           max(s + 2a, (s + z + 2a) / p)    two atomics: lock, and an unlock that may have
                                                   to wake somebody
  spin            the same with 1a                 the unlock is a store
  alone           the same with none               a process of one thread needs no atomics
  rwlock          max((1 - r) s + r s / p + 2a, (s + z + 2a) / p)    r: share of reads
  cond-pingpong   max(s + 2a, (w + s + z) / min(c, pairs))           every turn wakes a thread
  cond-broadcast  max(s + 2a, (switch + z) / c)                      every waiter is switched to

and the limit is one operation in that time. A lock that hands over to another CPU at each release
has the tighter limit `alternating`, s + b in place of s + 2a; a lock that lets the owner take it
again may exceed that one. A condition variable whose waiters spin may exceed the last two.
"""


def handover_ns(limits):
    known = [limits[name] for name in ("futex_wake_ns", "context_switch_ns") if limits[name] > 0]
    return min(known) if known else 0.0


def atomics_ns(point, limits):
    if point.alone:
        return 0.0
    return (1 if point.object == "spin" else 2) * limits["atomic_ns"]


def limit_per_second(point, limits, alternating=False):
    """Operations per second that the model above allows, or None where it says nothing."""
    cpus = max(limits["cpus"], 1)
    running = min(cpus, point.threads)
    atomics = atomics_ns(point, limits)
    section, think = point.section, point.think
    serial, cycle = section + atomics, section + think + atomics
    if point.object == "rwlock":
        reads = point.reads / 100
        serial = (1 - reads) * section + reads * section / running + atomics
    elif point.object == "cond-pingpong":
        cycle = (handover_ns(limits) if point.threads > 1 else atomics) + section + think
        running = min(cpus, max(point.threads // 2, 1))
    elif point.object == "cond-broadcast":
        cycle = limits["context_switch_ns"] + think
        running = cpus
    elif point.object not in ("mutex", "c11-mutex", "spin"):
        return None
    if point.line_reads:
        return None
    if alternating and running > 1:
        serial += limits["bounce_ns"] - atomics
    slowest = max(serial, cycle / running)
    return 1e9 / slowest if slowest > 0 else None
