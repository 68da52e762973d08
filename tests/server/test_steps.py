"""No command takes more than n log n time in its arguments and what it touches.

The module that runs here counts its own steps (steps.c). Each case gives its
command twice, the second time with ten times as much: the steps may grow by
little more than ten, where a quadratic loop grows by a hundred.
"""
import mmap
import os
import struct
import sys
import tempfile

from lib import Server, run, true

SMALL, FACTOR = 2000, 10
MOST = 16  # 10 x log(20000) / log(2000) is 13


def ids(n, start=0):
    return ["item-%08d" % i for i in range(start, start + n)]


def packed(n, start=0):
    return b"".join(struct.pack("<Q", i) for i in range(start, start + n))


WIDE = ("POLICY", "items=1048576")
MANY = ("POLICY", "items=30,generations=64")  # all 64 are there


def chain(r, n):
    """Users a0, a1, ... of two items each."""
    r.many([("SEEN.MARK", "a%d" % i, "x%d" % i, "y") for i in range(n)])


def filters(r, n):
    r("BF.RESERVE", "f", "0.01", "10")
    r.many([("BF.RESERVE", "f%d" % i, "LIKE", "f") for i in range(n)])


# name: what is done before, the command; both of n.
CASES = {
    "mark": (None, lambda n: ("SEEN.MARK", "u", *ids(n))),
    "mark, one generation": (None, lambda n: ("SEEN.MARK", "u", *WIDE, *ids(n))),
    "mark, many generations": (None, lambda n: ("SEEN.MARK", "u", *MANY, *ids(n))),
    "mark again": (
        lambda r, n: r("SEEN.MARK", "u", *WIDE, *ids(n)),
        lambda n: ("SEEN.MARK", "u", *WIDE, *ids(n))),
    "mark one item so often": (None, lambda n: ("SEEN.MARK", "u", *WIDE, *(["x"] * n))),
    "mark beside": (
        lambda r, n: r("SEEN.MARK", "u", *WIDE, *ids(n)),
        lambda n: ("SEEN.MARK", "u", *WIDE, *ids(n, n))),
    "markp": (None, lambda n: ("SEEN.MARKP", "u", *WIDE, "8", packed(n))),
    "markp, each twice": (
        None, lambda n: ("SEEN.MARKP", "u", *WIDE, "8", packed(n // 2) * 2)),
    "take": (None, lambda n: ("SEEN.TAKE", "u", "COUNT", str(n), *WIDE, *ids(n))),
    "takep": (None, lambda n: ("SEEN.TAKEP", "u", "COUNT", str(n), *WIDE, "8", packed(n))),
    "fresh": (
        lambda r, n: r("SEEN.MARK", "u", *WIDE, *ids(n)),
        lambda n: ("SEEN.FRESH", "u", *ids(n, n // 2))),
    "fresh, one item so often": (
        lambda r, n: r("SEEN.MARK", "u", *WIDE, *ids(n)),
        lambda n: ("SEEN.FRESH", "u", *(["x"] * n))),
    "freshp": (
        lambda r, n: r("SEEN.MARK", "u", *MANY, *ids(n)),
        lambda n: ("SEEN.FRESHP", "u", "8", packed(n))),
    "check": (
        lambda r, n: r("SEEN.MARK", "u", *MANY, *ids(n)),
        lambda n: ("SEEN.CHECK", "u", *ids(n))),
    "forget all": (
        lambda r, n: r("SEEN.MARK", "u", *WIDE, *ids(n)),
        lambda n: ("SEEN.FORGET", "u", *ids(n))),
    "forget half": (
        lambda r, n: r("SEEN.MARK", "u", *WIDE, *ids(n)),
        lambda n: ("SEEN.FORGET", "u", *ids(n, n // 2))),
    "forget of many generations": (
        lambda r, n: r("SEEN.MARK", "u", *MANY, *ids(n)),
        lambda n: ("SEEN.FORGET", "u", *ids(n, n // 2))),
    "merge": (
        lambda r, n: (r("SEEN.MARK", "u", *WIDE, *ids(n)),
                      r("SEEN.MARK", "v", *WIDE, *ids(n, n // 2))),
        lambda n: ("SEEN.MERGE", "u", "v")),
    "merge many": (chain, lambda n: ("SEEN.MERGE", "u", *["a%d" % i for i in range(n)])),
    "merge one so often": (
        lambda r, n: r("SEEN.MARK", "a", *WIDE, *ids(n)),
        lambda n: ("SEEN.MERGE", "u", *(["a"] * n))),
    "export": (
        lambda r, n: r("SEEN.MARK", "u", *MANY, *ids(n)), lambda n: ("SEEN.EXPORT", "u")),

    "madd": (None, lambda n: ("BF.MADD", "f", *ids(n))),
    "madd one item so often": (None, lambda n: ("BF.MADD", "f", *(["x"] * n))),
    "insert into a window": (
        None, lambda n: ("BF.INSERT", "f", "WINDOW", "60", "ITEMS", *ids(n))),
    "mexists": (
        lambda r, n: r("BF.MADD", "f", *ids(n)), lambda n: ("BF.MEXISTS", "f", *ids(n))),
    "allow": (
        lambda r, n: r("BF.RESERVE", "f", "0.01", "10"),
        lambda n: ("BF.ALLOW", "f", "ALWAYS", "ITEMS", *ids(n))),
    "allow again": (
        lambda r, n: (r("BF.RESERVE", "f", "0.01", "10"),
                      r("BF.ALLOW", "f", "ALWAYS", "ITEMS", *ids(n))),
        lambda n: ("BF.ALLOW", "f", "ALWAYS", "ITEMS", *ids(n, n // 2))),
    "allow no more": (
        lambda r, n: (r("BF.RESERVE", "f", "0.01", "10"),
                      r("BF.ALLOW", "f", "ALWAYS", "ITEMS", *ids(n))),
        lambda n: ("BF.ALLOW", "f", "ALWAYS", "REMOVE", "ITEMS", *ids(n))),
    "merge filters": (
        filters,
        lambda n: ("BF.MERGE", "f", *["f%d" % i for i in range(n)])),
    "merge one filter so often": (
        lambda r, n: (r("BF.RESERVE", "f", "0.01", str(n)), r("BF.RESERVE", "g", "LIKE", "f")),
        lambda n: ("BF.MERGE", "f", *(["g"] * n))),

    # Of CAPACITY n a chain of sixteen filters holds about 16 n.
    "cuckoo": (
        lambda r, n: r("CF.RESERVE", "c", str(n // 4)),
        lambda n: ("CF.INSERT", "c", "ITEMS", *ids(n))),
    "cuckoo, in one filter": (
        lambda r, n: r("CF.RESERVE", "c", str(2 * n)),
        lambda n: ("CF.INSERT", "c", "ITEMS", *ids(n))),
    "cuckoo, those that are new": (
        lambda r, n: (r("CF.RESERVE", "c", str(n // 4)),
                      r("CF.INSERT", "c", "ITEMS", *ids(n))),
        lambda n: ("CF.INSERTNX", "c", "ITEMS", *ids(n, n // 2))),
    "cuckoo, full": (
        lambda r, n: (r("CF.RESERVE", "c", "64"), r("CF.INSERT", "c", "ITEMS", *ids(2000))),
        lambda n: ("CF.INSERTNX", "c", "ITEMS", *ids(n, 2000))),
    "cuckoo asked": (
        lambda r, n: (r("CF.RESERVE", "c", str(n // 4)),
                      r("CF.INSERT", "c", "ITEMS", *ids(n))),
        lambda n: ("CF.MEXISTS", "c", *ids(n))),
    "cuckoo, one item so often": (
        None, lambda n: ("CF.INSERT", "c", "ITEMS", *(["x"] * n))),
    "cuckoo compacted": (
        lambda r, n: (r("CF.RESERVE", "c", str(n // 4)),
                      r("CF.INSERT", "c", "ITEMS", *ids(n)),
                      r.many([("CF.DEL", "c", i) for i in ids(n)])),
        lambda n: ("CF.COMPACT", "c")),
}


class Counter:
    def __init__(self, path):
        with open(path, "wb") as f:
            f.write(bytes(8))
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 8)

    def now(self):
        return struct.unpack("<Q", self.map[:8])[0]


def steps_of(r, counter, case, n):
    prepare, command = CASES[case]
    r("FLUSHALL", "SYNC")  # Valkey frees in another thread, which would be counted
    if prepare:
        prepare(r, n)
    arguments = command(n)
    before = counter.now()
    r(*arguments)
    return counter.now() - before


def growth_is_bounded(module):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "steps")
        counter = Counter(path)
        with Server(module, environment={"SEEN_TEST_STEPS": path}) as server:
            r = server.client()
            too_many = []
            for case in CASES:
                steps_of(r, counter, case, SMALL)  # makes room for later calls
                few = steps_of(r, counter, case, SMALL)
                many = steps_of(r, counter, case, SMALL * FACTOR)
                if "-v" in sys.argv:
                    print("%-32s %12d %14d %8.1f" % (case, few, many, many / few))
                if many > MOST * few + 10000:
                    too_many.append("%s: %d steps, for %d times as much %d"
                                    % (case, few, FACTOR, many))
            true(not too_many, "\n".join(too_many))


if __name__ == "__main__":
    run([growth_is_bounded])
