#!/usr/bin/env python3
"""Prints a profile in lines for scripts, read from the layout that profile_format.h describes and
with names by nm alone, so that it holds the tools' reader and the recorder against each other.

  decode.py FILE              header fields, locks, and pairs of stacks
"""

import bisect
import functools
import struct
import subprocess
import sys

KINDS = ["mutex", "spin", "read", "write", "cond"]
LOCK = struct.Struct("<QIIQIIQQQQQIIQQQQQQQQQ40IQQQQQ40I")
SHARD = struct.Struct("<QQQQQ24x40I32x")
STACK = struct.Struct("<QIIII")
PAIR = struct.Struct("<QQQQQQ")
MODULE = struct.Struct("<QQQIIII32s440s")


class Profile:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.version, _, _, self.flags, self.pid = struct.unpack_from("<IIQII", self.data, 8)
        self.start_real, self.start, self.last = struct.unpack_from("<QQQ", self.data, 32)
        self.sections = [struct.unpack_from("<IIII", self.data, 56 + 16 * i) for i in range(7)]
        at = 56 + 16 * 7
        self.drops = struct.unpack_from("<16Q", self.data, at)
        (self.stacks_taken, self.unsampled, self.samples, self.rate, _, _, self.nodes,
         self.thread_ns, self.waiting_threads, self.threads,
         self.threads_most) = struct.unpack_from("<QQQIIIIQQII", self.data, at + 128)
        self.names = {}

    def rows(self, section, layout):
        """The rows by their numbers, without those that begin with a zero word."""
        offset, rows, size, _ = self.sections[section]
        assert size == layout.size, (section, size, layout.size)
        words = memoryview(self.data)[offset:offset + rows * size].cast("Q")[::size // 8].tolist()
        return {i: layout.unpack_from(self.data, offset + i * size)
                for i, word in enumerate(words) if word != 0}

    def locks(self):
        shards = self.rows(6, SHARD)
        result = {}
        for index, row in self.rows(0, LOCK).items():
            lock = dict(zip(("key", "retired", "objects", "init_site", "first_stack", "shards",
                             "expected_ns", "_", "timeouts", "cancelled", "released_ns",
                             "releasing_stack", "_", "acquisitions", "before", "try_failures",
                             "samples", "waits", "wait_ns", "longest_ns", "within", "across"), row))
            lock["histogram"] = list(row[22:62])
            lock.update(zip(("holds", "hold_ns", "longest_hold_ns", "hold_weighted",
                             "hold_weighted_ns"), row[62:67]))
            first = lock["shards"] - 1
            for shard in (shards[i] for i in range(first, first + 16) if first >= 0 and i in shards):
                for name, value in zip(("waits", "wait_ns", "within", "across"),
                                       (shard[0], shard[1], shard[3], shard[4])):
                    lock[name] += value
                lock["longest_ns"] = max(lock["longest_ns"], shard[2])
                lock["histogram"] = [a + b for a, b in zip(lock["histogram"], shard[5:45])]
            if self.nodes <= 1:
                lock["within"] = lock["waits"] - lock["timeouts"] - lock["cancelled"]
            lock["kind"] = KINDS[(lock["key"] >> 56) - 1]
            lock["acquisitions"] += lock["before"]
            lock["hold_mean_ns"] = lock["hold_weighted_ns"] // max(lock["hold_weighted"], 1)
            lock["name"] = self.name(lock["key"] & (1 << 56) - 1, data=True)
            result[index] = lock
        return result

    @functools.cached_property
    def modules(self):
        return [(start, end, bias, path.split(b"\0")[0].decode())
                for start, end, bias, _, _, ready, _, _, path in self.rows(5, MODULE).values()
                if ready]

    def symbols(self, path, data):
        if "/libc.so" in path:
            return []
        if (path, data) not in self.names:
            listed = []
            for flag in ([], ["-D"]):
                done = subprocess.run(["nm", *flag, "--defined-only", path], capture_output=True,
                                      text=True, check=False)
                for line in done.stdout.splitlines():
                    address, kind, name = line.split(maxsplit=2)
                    if (kind in "bBdDrR") == data and kind in "bBdDrRtTwWiV":
                        listed.append((int(address, 16), name.split("@")[0]))
                if listed:
                    break
            self.names[path, data] = sorted(listed)
        return self.names[path, data]

    def name(self, address, data=False):
        for start, end, bias, path in self.modules:
            if start <= address < end:
                known = self.symbols(path, data)
                at = bisect.bisect_right(known, (address - bias, "\x7f")) - 1
                return known[at][1] if at >= 0 else path.rsplit("/", 1)[-1]
        return "?"

    def stack(self, stacks, number):
        if number == 0:
            return ["-"]
        _, first, count, _, _ = stacks[number - 1]
        offset = self.sections[2][0]
        frames = struct.unpack_from(f"<{count}Q", self.data, offset + 8 * first)
        return [self.name(frame) for frame in frames]


def main():
    profile = Profile(sys.argv[1])
    if profile.version != 2:
        sys.exit(f"decode.py: format {profile.version}")
    elapsed = profile.last - profile.start
    print(f"header flags {profile.flags} elapsed_ns {elapsed} thread_ns {profile.thread_ns} "
          f"threads {profile.threads} most {profile.threads_most} waiting {profile.waiting_threads} "
          f"samples {profile.samples} undrawn {profile.unsampled} stacks {profile.stacks_taken} "
          f"drops {','.join(map(str, profile.drops[:8]))}")
    stacks = profile.rows(1, STACK)
    pairs = {}
    for key, samples, _, weighted_ns, _, _ in profile.rows(3, PAIR).values():
        pairs.setdefault(key >> 32 & 0x7fffffff, []).append(
            (weighted_ns, samples, key >> 16 & 0xffff, key & 0xffff))
    locks = profile.locks()
    for index in sorted(locks, key=lambda i: -locks[i]["wait_ns"]):
        lock = locks[index]
        assert sum(lock["histogram"]) == lock["waits"] or not profile.flags & 1
        print("lock", lock["kind"], lock["name"], *(
            f"{name} {lock[name]}" for name in
            ("waits", "wait_ns", "longest_ns", "acquisitions", "within", "across", "holds",
             "hold_mean_ns", "timeouts", "cancelled", "try_failures", "objects", "samples")))
        total = sum(pair[0] for pair in pairs.get(index, [])) or 1
        for weighted_ns, samples, waiter, blocker in sorted(pairs.get(index, []), reverse=True):
            print(f"pair {lock['kind']} {lock['name']} share {weighted_ns / total:.4f} "
                  f"samples {samples} waiter {','.join(profile.stack(stacks, waiter))} "
                  f"blocker {','.join(profile.stack(stacks, blocker))}")


if __name__ == "__main__":
    main()
