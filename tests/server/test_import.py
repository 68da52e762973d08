"""Filters that other systems made (tests/vectors) in keys of the module: every key
is there, every stranger is answered as the original answered, adding does what the
original does, and RedisBloom's chunks and valkey-bloom's payloads are taken as
they come."""
import base64
import os
import struct

from lib import Error, Server, refused, run, same, true
from vectors import VECTORS, Vector, redisbloom_chunks

BPE = 9.585058  # bits an item of RedisBloom's at 1 %

def every_vector(module):
    names = sorted(n for n in os.listdir(VECTORS)
                   if os.path.exists(os.path.join(VECTORS, n, "vector.txt")))
    true(len(names) > 30, "vectors")
    with Server(module) as server:
        r = server.client()
        for name in names:
            v = Vector(name)
            same(v.load(r, name), "OK", name)
            v.check(r, name)
            refused(r, v.family + ".IMPORT", name, "DIALECT", v.dialect, v.bytes, *v.options,
                    says="item exists")
            true(r("MEMORY", "USAGE", name) >= len(v.bytes) // 8, name)
            r("RESTORE", "again", "0", r("DUMP", name), "REPLACE")
            v.check(r, "again", "restored")
            if v.family == "BF":
                same(r("BF.INFO", name, "DIALECT"), [v.dialect.encode()], name)
            r("DEL", name)
        same(len(r("KEYS", "*")), 1)


def adding(module):
    """What is added is there; emptied and filled again it is what the original wrote."""
    with Server(module) as server:
        r = server.client()
        for name in ("redisbloom", "redisbloom-scaling", "redisbloom-nonscaling",
                     "redisbloom-2.0", "valkey-bloom", "dcso"):
            v = Vector(name)
            v.load(r, "k")
            whole, items = r("DEBUG", "DIGEST-VALUE", "k"), r("BF.CARD", "k")
            same(r("BF.CLEAR", "k"), "OK", name)
            same(r("BF.CARD", "k"), 0, name)
            same(r("BF.MEXISTS", "k", *v.keys[:50]), [0] * 50, name)
            news = r("BF.MADD", "k", *v.keys[:500])
            news += [r("BF.ADD", "k", key) for key in v.keys[500:]]
            same(sum(news), items, name)
            same(r("DEBUG", "DIGEST-VALUE", "k"), whole, name)
            v.check(r, "k", "filled again")
            r("DEL", "k")
        for name in ("gozero", "leveldb", "guava", "parquet", "exposure-list", "kevburnsjr"):
            v = Vector(name)
            v.load(r, "k")
            more = ["new%d" % i for i in range(30)]
            r("BF.MADD", "k", *more)
            same(r("BF.MEXISTS", "k", *more), [1] * 30, name)
            same(r("BF.ADD", "k", more[0]), 0, name)
            r("BF.INSERT", "k", "NOCREATE", "ITEMS", "last")
            same(r("BF.EXISTS", "k", "last"), 1, name)
            r("DEL", "k")
        # One that does not grow is full when it is full.
        v = Vector("redisbloom-nonscaling")
        v.load(r, "full")
        replies = r.many([("BF.ADD", "full", "more%d" % i) for i in range(100)])
        errors = [x for x in replies if isinstance(x, Error)]
        true(errors and str(errors[0]) == "ERR non scaling filter is full", "full")
        # A list answers for its items, the filter for the others.
        v = Vector("redisbloom")
        v.load(r, "listed")
        same(r("BF.ALLOW", "listed", v.keys[0], "ours"), 2)
        same(r("BF.MEXISTS", "listed", v.keys[0], v.keys[1], "ours"), [0, 1, 0])
        same(r("BF.MADD", "listed", "ours", "other", v.keys[0]), [1, 1, 1])
        same(r("BF.MADD", "listed", "ours", "other", v.keys[0]), [1, 0, 1])
        same(r("BF.CARD", "listed"), 1000)


def about(module):
    """As RedisBloom 2.8.20 told it of the same filters."""
    with Server(module) as server:
        for protocol in (2, 3):
            r = server.client(protocol)
            r("FLUSHALL")
            Vector("redisbloom-scaling").load(r, "k")
            info = r("BF.INFO", "k")
            if protocol == 2:
                info = dict(zip(info[::2], info[1::2]))
            del info["Size"]
            same(info, {"Capacity": 1500, "Number of filters": 4,
                        "Number of items inserted": 968, "Expansion rate": 2})
            same(r("BF.CARD", "k"), 968)
            Vector("redisbloom-nonscaling").load(r, "fixed")
            same(r("BF.INFO", "fixed", "EXPANSION"), [None])
            Vector("gozero").load(r, "z")  # nobody counts: an estimate
            true(900 < r("BF.CARD", "z") < 1100, "estimate")
            same(r("BF.INFO", "z", "EXPANSION"), [None])
            same(r("BF.INFO", "z", "ERROR"), [None])
            for name, facts in (("redisbloom-cf", [1024, 1, 980, 20, 2, 1, 20]),
                                ("redisbloom-cf-expanded", [32, 4, 1000, 0, 4, 2, 50])):
                Vector(name).load(r, name)
                info = r("CF.INFO", name)
                if protocol == 2:
                    info = dict(zip(info[::2], info[1::2]))
                same([info[f] for f in ("Number of buckets", "Number of filters",
                      "Number of items inserted", "Number of items deleted", "Bucket size",
                      "Expansion rate", "Max iterations")], facts, name)


def cuckoo(module):
    with Server(module) as server:
        r = server.client()
        v = Vector("redisbloom-cf")
        v.load(r, "k")
        v.check(r, "k")
        same(r("CF.DEL", "k", v.keys[5]), 1)
        same(r("CF.COUNT", "k", v.keys[5]), 0)
        same(r("CF.ADD", "k", v.keys[5]), 1)
        same(r("CF.COUNT", "k", v.keys[5]), 1)
        same(r("CF.ADDNX", "k", v.keys[5]), 0)
        same(r("CF.INSERT", "k", "ITEMS", *["n%d" % i for i in range(3000)]), [1] * 3000)
        same(r("CF.MEXISTS", "k", *v.keys), [1] * len(v.keys))
        same(r("CF.COMPACT", "k"), "OK")
        refused(r, "BF.IMPORT", "b", "DIALECT", "redisbloom-cf", v.bytes, says="CF.IMPORT")
        refused(r, "CF.IMPORT", "b", "DIALECT", "gozero", b"x", "BITS", "8", says="BF.IMPORT")


def chunks_of_redisbloom(module):
    with Server(module) as server:
        r = server.client()
        for name in ("redisbloom", "redisbloom-scaling", "redisbloom-nonscaling",
                     "redisbloom-2.0", "redisbloom-cf", "redisbloom-cf-expanded"):
            v = Vector(name)
            load, exists = v.family + ".LOADCHUNK", v.family + ".EXISTS"
            for size in (1 << 24, 512, 97):
                r("DEL", "k")
                pairs = redisbloom_chunks(v, size)
                for at, (iterator, chunk) in enumerate(pairs):
                    if at:  # the filter is not all there
                        refused(r, exists, "k", v.keys[0], says="not complete")
                        refused(r, v.family + ".INFO", "k", says="not complete")
                        refused(r, v.family + ".SCANDUMP", "k", "0", says="not complete")
                        refused(r, v.family + ".ADD", "k", "x", says="not complete")
                    # Not the next one: nothing changes.
                    for other, bytes_ in pairs[at + 1:at + 3] + pairs[1:at]:
                        if other - 1 != len(bytes_) or at:
                            refused(r, load, "k", str(other), bytes_, says="bad data")
                    if at:
                        refused(r, load, "k", str(iterator + 1), chunk, says="bad data")
                        refused(r, load, "k", str(iterator), chunk[1:], says="bad data")
                    if at == len(pairs) - 1:
                        refused(r, load, "k", str(iterator + 9), chunk + b"123456789",
                                says="bad data")
                    same(r(load, "k", str(iterator), chunk), "OK", name)
                v.check(r, "k", "in chunks of %d" % size)
                v.load(r, "whole")
                same(r("DEBUG", "DIGEST-VALUE", "k"), r("DEBUG", "DIGEST-VALUE", "whole"))
                r("DEL", "whole")
            # Our own chunks of it, and RedisBloom's again over what is there.
            r("DEL", "copy")
            iterator, chunk = r(v.family + ".SCANDUMP", "k", "0")
            same(r(load, "copy", str(iterator), chunk), "OK")
            v.check(r, "copy", "our chunks")
            for iterator, chunk in redisbloom_chunks(v, 1000):
                same(r(load, "copy", str(iterator), chunk), "OK")
            v.check(r, "copy", "loaded twice")
            # Started anew in the middle.
            pairs = redisbloom_chunks(v, 700)
            r(load, "copy", "1", pairs[0][1])
            r(load, "copy", str(pairs[1][0]), pairs[1][1])
            for iterator, chunk in pairs:
                same(r(load, "copy", str(iterator), chunk), "OK")
            v.check(r, "copy", "begun anew")
            # What is no header.
            head = pairs[0][1]
            before = r("DEBUG", "DIGEST-VALUE", "k")
            for bad in (b"", b"x", head[:-1], head + b"x", bytes(len(head)),
                        b"\xff" * len(head), head[:8] + b"\0" * 4 + head[12:]):
                refused(r, load, "k", "1", bad, says="bad data")
                refused(r, load, "none", "1", bad, says="bad data")
            same(r("DEBUG", "DIGEST-VALUE", "k"), before, "nothing changed")
            same(r("EXISTS", "none"), 0)
        # A header whose numbers contradict each other is found out at the end.
        v = Vector("redisbloom")
        bad = bytearray(v.bytes)
        bad[60] += 1  # hashes of the first link
        r("DEL", "k")
        v.bytes = bytes(bad)
        pairs = redisbloom_chunks(v, 1 << 24)
        r("BF.LOADCHUNK", "k", "1", pairs[0][1])
        refused(r, "BF.LOADCHUNK", "k", str(pairs[1][0]), pairs[1][1], says="do not belong together")
        refused(r, "BF.EXISTS", "k", v.keys[0], says="not complete")
        same(r("DEL", "k"), 1)


def valkey_payload(module):
    with Server(module) as server:
        r = server.client()
        v = Vector("valkey-bloom")
        same(r("BF.LOAD", "k", v.bytes), "OK")
        v.check(r, "k")
        refused(r, "BF.LOAD", "k", v.bytes, says="BUSYKEY")
        refused(r, "BF.LOAD", "other", v.bytes[:-1], says="bad data")
        refused(r, "BF.LOAD", "other", b"", says="bad data")
        r("SET", "s", "x")
        refused(r, "BF.LOAD", "s", v.bytes, says="WRONGTYPE")
        same(r("EXISTS", "other"), 0)


def refusals(module):
    with Server(module, arguments=["memory-limit=100000"]) as server:
        r = server.client()
        z = Vector("gozero").bytes
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", says="wrong number")
        refused(r, "BF.IMPORT", "k", "AS", "gozero", z, says="DIALECT")
        refused(r, "BF.IMPORT", "k", "DIALECT", "nosuch", z, says="no such dialect")
        refused(r, "BF.IMPORT", "k", "DIALECT", "x" * 100, z, says="no such dialect")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, says="bits: expected")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gobloom", z, says="CAPACITY")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "BITS", says="lacks its value")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "BITS", "0", says="above 0")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "BITS", "x", says="above 0")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "ERROR", "2", says="error rate")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "WINDOW", "2", says="unknown")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "BITS", "8000", says="at or beyond bit 8000")
        refused(r, "BF.IMPORT", "k", "DIALECT", "gozero", z, "BITS", "4000000000",
                says="memory-limit")
        refused(r, "BF.IMPORT", "k", "DIALECT", "guava", z, says="as guava")
        same(r("EXISTS", "k"), 0)
        r("SET", "s", "x")
        refused(r, "BF.IMPORT", "s", "DIALECT", "gozero", z, "BITS", "9000", says="WRONGTYPE")
        same(r("BF.IMPORT", "k", "DIALECT", "gozero", z, "BITS", "9000"), "OK")
        same(r("BF.IMPORT", "other", "DIALECT", "gozero", z, "BITS", "9001"), "OK")
        refused(r, "BF.RESERVE", "k", "0.01", "100", says="item exists")
        refused(r, "BF.RESERVE", "like", "LIKE", "k", says="another system")
        r("BF.ADD", "ours", "a")
        refused(r, "BF.MERGE", "k", "ours", says="another system")
        refused(r, "BF.MERGE", "k", "other", says="same scheme")
        refused(r, "BF.MERGE", "ours", "k", says="other parameters")
        v = Vector("leveldb")
        reserved = v.bytes[:-1] + b"\x1f"  # a form that readers answer maybe to
        same(r("BF.IMPORT", "reserved", "DIALECT", "leveldb", reserved), "OK")
        same(r("BF.MEXISTS", "reserved", "x", "y"), [1, 1])
        refused(r, "BF.ADD", "reserved", "x", says="not supported by this kind")


def merging(module):
    """A union of two chains is saved and loaded again."""
    with Server(module) as server:
        r = server.client()
        for name in ("redisbloom", "redisbloom-scaling", "valkey-bloom", "gozero", "dcso"):
            v = Vector(name)
            r("FLUSHALL")
            v.load(r, "a")
            r("COPY", "a", "b")
            r("BF.ADD", "b", "of b")
            same(r("BF.MERGE", "a", "b"), "OK", name)
            same(r("BF.MEXISTS", "a", *v.keys), [1] * len(v.keys), name)
            same(r("BF.EXISTS", "a", "of b"), 1, name)
            before = r("DEBUG", "DIGEST")
            r("DEBUG", "RELOAD")
            same(r("DEBUG", "DIGEST"), before, name)
            r("BF.ADD", "a", "after")
            same(r("BF.EXISTS", "a", "after"), 1, name)


def counts_that_cannot_be(module):
    """Whatever a header says, a key that was taken can be saved and loaded."""
    with Server(module) as server:
        r = server.client()

        def kept(name):
            payload = r("DUMP", name)
            same(r("RESTORE", "again", 0, payload, "REPLACE"), "OK", name)

        one, two = (base64.b64encode(b"\1" * n) for n in (64, 128))
        refused(r, "BF.IMPORT", "el", "DIALECT", "exposure-list",
                b"1::%s\n1::%s\n" % (one, two), "HASHES", "3", says="expected one length")
        full = base64.b64encode(b"\xff" * 64)
        r("BF.IMPORT", "full", "DIALECT", "exposure-list", b"5::%s\n" % full, "HASHES", "3")
        r("BF.MERGE", "full", "full")
        true(0 <= r("BF.INFO", "full", "ITEMS")[0] <= 512, "a number of items")
        kept("full")

        head = struct.pack("<QQQQHHH", 32, 16, 0, 1, 2, 20, 1)
        r("CF.IMPORT", "slots", "DIALECT", "redisbloom-cf", head + bytes(32))
        same(r("CF.ADD", "slots", "x"), 1)
        kept("slots")

        # A grown CF filter is like its first, not like what its error says now.
        r("CF.RESERVE", "c1", "1000", "ERROR", "0.001")
        r("CF.ADD", "c1", "x")
        chunks = []
        iterator, chunk = r("CF.SCANDUMP", "c1", "0")
        while iterator:
            chunks.append((iterator, chunk))
            iterator, chunk = r("CF.SCANDUMP", "c1", iterator)
        number, first = chunks[0]
        chunks[0] = number, first[:32] + struct.pack("<d", 0.3) + first[40:]
        for number, chunk in chunks:
            r("CF.LOADCHUNK", "c2", number, chunk)
        for i in range(3000):
            r("CF.ADD", "c2", "item %d" % i)
        kept("c2")

        # A count at the end of its range: it grows, and the sum stays there.
        most = (1 << 64) - 1
        r("BF.IMPORT", "most", "DIALECT", "redisbloom",
          struct.pack("<QIII", most, 1, 5, 2)
          + struct.pack("<QQQddIQB", 64, 512, most, 0.01, BPE, 7, 50, 0) + bytes(64))
        same(r("BF.ADD", "most", "x"), 1)
        same(r("BF.EXISTS", "most", "x"), 1)
        kept("most")

        v = Vector("redisbloom")
        v.load(r, "rb")
        r("COPY", "rb", "empty")
        r("BF.CLEAR", "empty")
        same(r("BF.MEXISTS", "empty", *v.keys), [0] * len(v.keys))
        kept("empty")


def links(module):
    """Small filters stay small, and chains have as many links as it takes."""
    def link(items, capacity):
        return struct.pack("<QQQddIQB", 64, 512, items, 0.01, BPE, 7, capacity, 0)

    with Server(module) as server:
        r = server.client()
        # RedisBloom's default: 100 items at 1 %, half of it for the first link.
        per_item = 11.027754
        r("BF.IMPORT", "small", "DIALECT", "redisbloom", struct.pack("<QIII", 0, 1, 5, 2)
          + struct.pack("<QQQddIQB", 144, 1152, 0, 0.005, per_item, 8, 100, 0) + bytes(144))
        true(r("MEMORY", "USAGE", "small") < 1500, r("MEMORY", "USAGE", "small"))
        same(r("BF.ADD", "small", "x"), 1)

        # Links of one capacity: one for each 20 items.
        r("BF.IMPORT", "chain", "DIALECT", "redisbloom",
          struct.pack("<QIII", 0, 1, 5, 1) + link(0, 20) + bytes(64))
        items = ["i%d" % i for i in range(2000)]
        r("BF.MADD", "chain", *items)
        true(r("BF.INFO", "chain", "FILTERS")[0] > 90, r("BF.INFO", "chain"))
        r("RESTORE", "again", "0", r("DUMP", "chain"))
        same(r("BF.MEXISTS", "again", *items), [1] * 2000)
        for field in ("CAPACITY", "FILTERS", "ITEMS", "EXPANSION"):
            same(r("BF.INFO", "again", field), r("BF.INFO", "chain", field), field)
        true(r("MEMORY", "USAGE", "again") < 70000, r("MEMORY", "USAGE", "again"))

        # And in chunks.
        head = struct.pack("<QIII", 0, 200, 5, 1) + 200 * link(0, 20)
        same(r("BF.LOADCHUNK", "many", "1", head), "OK")
        same(r("BF.LOADCHUNK", "many", str(1 + 200 * 64), bytes(200 * 64)), "OK")
        same(r("BF.INFO", "many", "FILTERS"), [200])
        same(r("BF.ADD", "many", "x"), 1)
        head = struct.pack("<QQQQHHH", 0, 32, 0, 1000, 2, 20, 1)
        same(r("CF.LOADCHUNK", "slots", "1", head), "OK")
        same(r("CF.LOADCHUNK", "slots", str(1 + 1000 * 64), bytes(1000 * 64)), "OK")
        same(dict(zip(*[iter(r("CF.INFO", "slots"))] * 2))["Number of filters"], 1000)
        same(r("CF.ADD", "slots", "x"), 1)
        # One bucket of one slot each: refused, whatever the header says.
        head = struct.pack("<QQQQHHH", 0, 1, 0, 60000, 1, 20, 1)
        refused(r, "CF.IMPORT", "tiny", "DIALECT", "redisbloom-cf", head + bytes(60000),
                says="at least 32 bytes each")
        same(r("EXISTS", "tiny"), 0)


run([every_vector, adding, about, cuckoo, chunks_of_redisbloom, valkey_payload, refusals, merging,
     counts_that_cannot_be, links])
