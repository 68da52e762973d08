"""Whatever is written is the same everywhere: after every write command of every
type the digest of the data is that of the replica (whose clock is an hour off),
of what RDB and AOF bring back, of DUMP and RESTORE, and of COPY. What changes
nothing is told to nobody."""
import os
import random
import sys
import time

from lib import (SCALE, SEED, Error, Server, refused, run, same, tried, true, wait_for,
                 wait_rewritten)
from payload import payload, rdb_file, type_of
from vectors import Vector, redisbloom_chunks

CLOCK_OFF = os.path.abspath(sys.argv[2])  # a library that shifts the clock
OPTIONS = ["--appendonly", "yes", "--appendfsync", "no", "--repl-ping-replica-period",
           "3600", "--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0"]

NOW = int(time.time() * 1000)


def at(ms):
    return str(NOW + ms)


def items(n, prefix="i"):
    return ["%s%d" % (prefix, i) for i in range(n)]


# Commands that change something, in order. The state that one leaves is what the
# next one finds.
BF = [
    ("BF.ADD", "bf", "a"),
    ("BF.MADD", "bf", "a", "b", "c"),
    ("BF.MADD", "bf", *items(3000)),
    ("BF.RESERVE", "r", "0.001", "1000"),
    ("BF.RESERVE", "fixed", "0.01", "50", "NONSCALING"),
    ("BF.MADD", "fixed", *items(49)),
    ("BF.MADD", "fixed", *items(60)),
    ("BF.RESERVE", "t", "0.01", "10", "EXPANSION", "4", "TTL", "1000"),
    ("BF.INSERT", "r", "ITEMS", "x", "y"),
    ("BF.INSERT", "made2", "CAPACITY", "10", "ERROR", "0.1", "TTL", "5000", "ITEMS", "x"),
    ("BF.INSERT", "made2", "ITEMS", *items(100)),
    ("BF.RESERVE", "w", "0.001", "100", "WINDOW", "0.3", "GENERATIONS", "3"),
    ("BF.ADD", "w", "a"),
    ("BF.MADD", "w", "a", "b"),
    ("BF.INSERT", "w", "ITEMS", *items(50)),
    ("BF.INSERT", "w2", "WINDOW", "60", "ITEMS", "q"),
    ("BF.INSERT", "w2", "AT", at(-30000), "ITEMS", "older"),
    ("BF.INSERT", "w2", "AT", at(90000), "ITEMS", "later"),
    ("BF.RESERVE", "like", "LIKE", "r", "TTL", "100"),
    ("BF.MADD", "like", *items(20, "l")),
    ("BF.MERGE", "r", "like"),
    ("BF.MERGE", "merged", "r", "like"),
    ("BF.ALLOW", "r", "x", "ours"),
    ("BF.ALLOW", "r", "ALWAYS", "ITEMS", "front"),
    ("BF.ADD", "r", "front"),  # "already there", says the list; the bits change
    ("BF.ALLOW", "r", "REMOVE", "ITEMS", "x"),
    ("BF.CLEAR", "like"),
    ("BF.ADD", "w", "late"),
    ("BF.CLEAR", "w"),
]

POLICY = "items=20,generations=3,fpp=0.01,ttl=1d"

XP = [
    ("SEEN.MARK", "u", "a", "b"),
    ("SEEN.MARK", "u", *items(1500)),
    ("SEEN.MARK", "u", "AT", at(1000), "a"),
    ("SEEN.MARK", "u2", "POLICY", POLICY, *items(10)),
    ("SEEN.MARK", "u2", "AT", at(50000), "POLICY", POLICY, *items(30)),
    ("SEEN.MARK", "u2", "AT", at(43200000), "POLICY", POLICY, "ITEMS", "x", "ITEMS"),
    ("SEEN.TAKE", "u", "COUNT", "5", *items(20, "t")),
    ("SEEN.TAKE", "u", "COUNT", "50", "AT", at(2000), *items(20, "t")),
    ("SEEN.TAKE", "made", "COUNT", "1", "a", "b"),
    ("SEEN.TAKEP", "u", "COUNT", "3", "2", "aabbccddeeff"),
    ("SEEN.MARKP", "u", "4", "aaaabbbbccccdddd"),
    ("SEEN.MARKP", "u3", "POLICY", "items=5,ttl=1h", "1", "abcdefghijkl"),
    ("SEEN.FORGET", "u", "a", "t1"),
    ("SEEN.MARK", "u4", "a", "b"),
    ("SEEN.MERGE", "u4", "u", "u2"),
    ("SEEN.MERGE", "u5", "u", "u4"),
    ("SEEN.IMPORT", "u6", "@export u2"),
    ("SEEN.IMPORT", "u6", "@export u4"),
    ("SEEN.IMPORT", "u6", "@export u3", "REPLACE"),
    ("SEEN.FORGET", "made", "a"),
    ("SEEN.FORGET", "u5"),
]

CF = [
    ("CF.ADD", "cf", "a"),
    ("CF.ADD", "cf", "a"),
    ("CF.ADDNX", "cf", "b"),
    ("CF.RESERVE", "c1", "20", "BUCKETSIZE", "4", "MAXITERATIONS", "9", "ERROR", "0.05"),
    ("CF.RESERVE", "c2", "20", "EXPANSION", "0"),
    ("CF.INSERT", "c1", "ITEMS", *items(100)),
    ("CF.INSERT", "c2", "ITEMS", *items(100)),  # some of them find no room
    ("CF.INSERTNX", "c1", "ITEMS", *items(120)),
    ("CF.INSERT", "c3", "CAPACITY", "10", "ITEMS", "x", "x", "y"),
    ("CF.DEL", "c1", "i7"),
    ("CF.INSERT", "c3", "NOCREATE", "ITEMS", *["x"] * 20),
    ("CF.RESERVE", "c4", "4"),
    ("CF.INSERT", "c4", "ITEMS", *items(40)),
    *[("CF.DEL", "c4", "i%d" % i) for i in range(39, -1, -1)],
    ("CF.COMPACT", "c4"),
]

# Filters of other systems.
OTHERS = [
    *[Vector(name).command(name) for name in (
        "redisbloom-scaling", "redisbloom-nonscaling", "redisbloom-2.0", "redisbloom-cf",
        "redisbloom-cf-expanded", "gozero", "leveldb", "exposure-list", "guava", "dcso",
        "bits-and-blooms-json", "parquet", "rocksdb")],
    *[("BF.LOADCHUNK", "chunks", str(i), c)
      for i, c in redisbloom_chunks(Vector("redisbloom-scaling"), 500)],
    *[("CF.LOADCHUNK", "cf-chunks", str(i), c)
      for i, c in redisbloom_chunks(Vector("redisbloom-cf-expanded"), 900)],
    ("BF.LOAD", "valkey", Vector("valkey-bloom").bytes),
    *[("BF.MADD", name, *items(200, "more")) for name in (
        "redisbloom-scaling", "redisbloom-2.0", "chunks", "valkey", "gozero", "exposure-list",
        "guava", "dcso", "bits-and-blooms-json", "parquet", "rocksdb", "leveldb")],
    ("BF.MADD", "exposure-list", *items(2500, "many")),  # the oldest part goes
    ("BF.ADD", "exposure-list", "many1"),
    ("BF.MADD", "redisbloom-nonscaling", *items(200, "more")),  # which is full on the way
    ("BF.ALLOW", "valkey", "ALWAYS", "ITEMS", "front"),
    ("BF.ADD", "valkey", "front"),  # "already there", says the list; the bits change
    ("BF.MERGE", "merged-others", "redisbloom-scaling"),
    ("BF.CLEAR", "gozero"),
    ("BF.CLEAR", "chunks"),
    ("CF.INSERT", "redisbloom-cf-expanded", "ITEMS", *items(2000)),
    ("CF.DEL", "redisbloom-cf-expanded", "i7"),
    ("CF.ADDNX", "redisbloom-cf", "new"),
]

ALL = BF + CF + XP + OTHERS

# What changes nothing, in the state that the commands above leave.
IDLE = [
    ("BF.ADD", "bf", "a"),
    ("BF.MADD", "bf", *items(3000)),
    ("BF.EXISTS", "w", "a"),
    ("BF.MEXISTS", "w2", "a", "q"),
    ("BF.INFO", "w"),
    ("BF.ALLOW", "r", "front"),
    ("BF.CLEAR", "like"),
    ("BF.INSERT", "fixed", "NOCREATE", "ITEMS", *items(50)),
    ("BF.SCANDUMP", "bf", "0"),
    ("CF.ADDNX", "cf", "a"),
    ("CF.INSERTNX", "c1", "ITEMS", *items(120)[8:]),
    ("CF.DEL", "c4", "nothing there"),
    ("CF.COMPACT", "c4"),
    ("CF.COUNT", "cf", "a"),
    ("CF.MEXISTS", "c1", *items(300)),
    ("SEEN.FRESH", "u", *items(300)),
    ("SEEN.CHECK", "u2", *items(300)),
    ("SEEN.TAKE", "u", "COUNT", "0", *items(300)),
    ("SEEN.TAKE", "u", "COUNT", "5", "b", "i1", "i2"),
    ("SEEN.TAKEP", "u", "COUNT", "5", "4", "aaaabbbb"),
    ("SEEN.FORGET", "u", "never shown"),
    ("SEEN.FORGET", "nobody"),
    ("SEEN.MERGE", "u4", "u4"),
    ("SEEN.EXPORT", "u"),
    ("SEEN.INFO", "u"),
    ("BF.MADD", "redisbloom-scaling", *items(200, "more")),
    ("BF.MADD", "guava", *items(200, "more")),
    ("BF.MADD", "valkey", "front", *items(200, "more")),
    ("BF.CLEAR", "gozero"),
    ("BF.CARD", "leveldb"),
    ("BF.INFO", "exposure-list"),
    ("BF.SCANDUMP", "valkey", "0"),
    ("CF.ADDNX", "redisbloom-cf", "new"),
    ("CF.COMPACT", "redisbloom-cf-expanded"),
]


def ready(client, command):
    """A command with `@export KEY` replaced by what SEEN.EXPORT gives."""
    return [client("SEEN.EXPORT", a[8:]) if isinstance(a, str) and a.startswith("@export ") else a
            for a in command]


class Pair:
    """A primary and a replica whose clock is an hour off."""

    def __init__(self, module):
        self.primary = Server(module, options=OPTIONS)
        self.replica = Server(module, options=OPTIONS, environment={
            "LD_PRELOAD": CLOCK_OFF, "SEEN_TEST_CLOCK": "3600"})

    def __enter__(self):
        self.primary.start()
        try:
            self.replica.start()
        except RuntimeError:
            self.primary.__exit__(None, None, None)
            raise
        self.p, self.r = self.primary.client(), self.replica.client()
        off = int(self.r("TIME")[0]) - int(self.p("TIME")[0])
        true(3590 < off < 3610, "the replica's clock is off by %d s" % off)
        self.attach()
        return self

    def attach(self):
        self.r("REPLICAOF", "127.0.0.1", str(self.primary.port))
        wait_for(lambda: b"master_link_status:up" in self.r("INFO", "replication"),
                 "the replica")

    def __exit__(self, *failure):
        self.replica.__exit__(*failure)
        self.primary.__exit__(*failure)

    def offset(self, client):
        info = client("INFO", "replication").decode()
        return int(info.split("master_repl_offset:")[1].split("\r")[0])

    def settle(self):
        wait_for(lambda: self.offset(self.p) == self.offset(self.r), "the replica to catch up")

    def digest(self, client=None):
        return (client or self.p)("DEBUG", "DIGEST")

    def values(self):
        """Digests with names, to see which key differs."""
        keys = sorted(self.p("KEYS", "*"))
        values = self.p("DEBUG", "DIGEST-VALUE", *keys) if keys else []
        return [self.digest()] + list(zip(keys, values))


def check_files(pair, what):
    """RDB and AOF bring back the same; so does a rewritten AOF."""
    p, before = pair.p, pair.values()
    p("DEBUG", "RELOAD")
    same(pair.values(), before, "DEBUG RELOAD after %s" % (what,))
    p("DEBUG", "LOADAOF")
    same(pair.values(), before, "DEBUG LOADAOF after %s" % (what,))


def check_rewrite(pair, what):
    p, before = pair.p, pair.values()
    p("BGREWRITEAOF")
    wait_rewritten(p)
    same(b"aof_last_bgrewrite_status:ok" in p("INFO", "persistence"), True, "rewrite")
    p("DEBUG", "LOADAOF")
    same(pair.values(), before, "rewrite and LOADAOF after %s" % (what,))


def check_copies(pair, key, what):
    p = pair.p
    value = p("DEBUG", "DIGEST-VALUE", key)
    payload, ttl = p("DUMP", key), p("PTTL", key)
    p("RESTORE", "{seen}restored", str(max(ttl, 0)), payload, "REPLACE")
    p("COPY", key, "{seen}copied", "REPLACE")
    same(p("DEBUG", "DIGEST-VALUE", "{seen}restored"), value, "DUMP, RESTORE: %s" % (what,))
    same(p("DEBUG", "DIGEST-VALUE", "{seen}copied"), value, "COPY: %s" % (what,))
    p("DEL", "{seen}restored", "{seen}copied")


def every_write_command(module):
    with Pair(module) as pair:
        for command in ALL:
            before = pair.digest()
            reply = pair.p.many([ready(pair.p, command)])[0]
            true(not isinstance(reply, Error), "%s: %s" % (command, reply))
            true(pair.digest() != before, "%s changes something" % (command,))
            pair.settle()
            same(pair.digest(pair.r), pair.digest(), "replica after %s" % (command,))
            check_files(pair, command)
            if pair.p("EXISTS", command[1]):
                check_copies(pair, command[1], command)
        check_rewrite(pair, "all of them")
        time.sleep(0.5)  # the windows' generations are over by now
        check_files(pair, "a while")
        pair.settle()
        same(pair.digest(pair.r), pair.digest(), "replica")
        for command in IDLE:
            pair.settle()
            before, offset = pair.digest(), pair.offset(pair.p)
            pair.p(*command)
            same(pair.digest(), before, "%s changes nothing" % (command,))
            same(pair.offset(pair.p), offset, "%s is not replicated" % (command,))


def half_loaded(module):
    """A filter of which only some bytes have come is saved and copied, too."""
    with Pair(module) as pair:
        p = pair.p
        for prefix, add in (("BF", "BF.MADD"), ("CF", "CF.INSERT")):
            p("FLUSHALL")
            p(add, "whole", *(["ITEMS"] if prefix == "CF" else []), *items(1000))
            chunk = p(prefix + ".SCANDUMP", "whole", "0")[1]
            cuts = [0, len(chunk) // 3, len(chunk) - 1, len(chunk)]
            for start, end in zip(cuts, cuts[1:]):
                p(prefix + ".LOADCHUNK", "half", str(1 + end), chunk[start:end])
                pair.settle()
                same(pair.digest(pair.r), pair.digest(), "replica, bytes to %d" % end)
                check_files(pair, "bytes to %d" % end)
                check_copies(pair, "half", "bytes to %d" % end)
                check_rewrite(pair, "bytes to %d" % end)
            same(p("DEBUG", "DIGEST-VALUE", "half"), p("DEBUG", "DIGEST-VALUE", "whole"))


def scandump(p, key):
    """All chunks with their iterators."""
    iterator, chunks = 0, []
    while True:
        iterator, chunk = p(key[:2].upper() + ".SCANDUMP", key, str(iterator))
        if iterator == 0:
            return chunks
        chunks.append((str(iterator), chunk))


def in_many_pieces(module):
    """Keys of more bytes than are saved at a time, 16 MiB: a grown one with a list, a
    chain whose filters lie across the cuts, a window, one of another system, one half
    loaded."""
    with Pair(module) as pair:
        p = pair.p
        p("BF.RESERVE", "bf-grown", "0.000001", "3200000")
        for i in range(0, 3300000, 50000):
            p("BF.MADD", "bf-grown", *items(50000, "%d-" % i))
        p("BF.ALLOW", "bf-grown", "i1", "ours")
        p("BF.RESERVE", "bf-window", "0.001", "20000000", "WINDOW", "3600")
        p("BF.MADD", "bf-window", *items(1000))
        p("CF.RESERVE", "cf-chain", "500000", "ERROR", "1e-7")
        for i in range(0, 4700000, 50000):
            p("CF.INSERT", "cf-chain", "ITEMS", *items(50000, "%d-" % i))
        bits = random.Random(SEED).randbytes(25000000)
        p("BF.IMPORT", "bf-other", "DIALECT", "gozero", bits, "BITS", "200000000")
        whole = b"".join(chunk for _, chunk in scandump(p, "bf-grown"))
        cuts = [0, 10 << 20, 20 << 20, len(whole)]
        for start, end in zip(cuts, cuts[1:-1]):
            p("BF.LOADCHUNK", "bf-half", str(1 + end), whole[start:end])
        keys = ("bf-grown", "bf-window", "cf-chain", "bf-other", "bf-half")
        sizes = [p("MEMORY", "USAGE", key) >> 20 for key in keys]
        true(min(sizes) > 16, "more than a piece: %s" % sizes)
        true(p("BF.INFO", "bf-grown")[5] > 1 and p("CF.INFO", "cf-chain")[5] > 8, "grown")
        pair.settle()
        same(pair.digest(pair.r), pair.digest(), "the replica has them")
        check_rewrite(pair, "large keys")
        check_files(pair, "large keys")
        for key in keys:
            check_copies(pair, key, key)
        p("BF.LOADCHUNK", "bf-half", str(1 + len(whole)), whole[cuts[2]:])
        same(p("DEBUG", "DIGEST-VALUE", "bf-half"), p("DEBUG", "DIGEST-VALUE", "bf-grown"))

        # Filters of a chain that are of two moments do not go together.
        chunks = scandump(p, "cf-chain")
        same(p("CF.DEL", "cf-chain", "4650000-49999"), 1)
        for iterator, chunk in chunks[:-1]:
            p("CF.LOADCHUNK", "two", iterator, chunk)
        refused(p, "CF.LOADCHUNK", "two", *scandump(p, "cf-chain")[-1], says="bad data")
        same(p("CF.LOADCHUNK", "two", *chunks[-1]), "OK")


def near_the_limit(module):
    """What may be there may go out piece by piece, and come in again, by RESTORE and in
    chunks, without twice as much memory."""
    with Server(module, arguments=["memory-limit=60000000"]) as server:
        r = server.client()
        r("BF.RESERVE", "bf", "0.001", "25000000", "NONSCALING")
        true(r("MEMORY", "USAGE", "bf") > 40 << 20, "a large one")
        value = r("DEBUG", "DIGEST-VALUE", "bf")

        def memory(what):
            return int(r("INFO", "memory").decode().split(what + ":")[1].split()[0]) >> 20
        before = memory("used_memory")
        r("CONFIG", "RESETSTAT")
        data = b"".join(chunk for _, chunk in scandump(r, "bf"))
        more = memory("used_memory_peak") - before
        true(more < 40, "%d MB more: a piece, and it again as a reply" % more)
        same(r("RESTORE", "restored", "0", r("DUMP", "bf")), "OK")
        same(r("DEBUG", "DIGEST-VALUE", "restored"), value)
        for end in range(5 << 20, len(data) + (5 << 20), 5 << 20):
            chunk = data[end - (5 << 20):end]
            same(r("BF.LOADCHUNK", "loaded", str(1 + min(end, len(data))), chunk), "OK")
        same(r("DEBUG", "DIGEST-VALUE", "loaded"), value)
        refused(r, "BF.RESERVE", "more", "0.001", "50000000", says="memory-limit")


def encodings(module):
    """What the first encoding saved is read; pieces that lie are not."""
    with Server(module, options=["--rdbcompression", "no"]) as server:
        r = server.client()
        for prefix, name, add in (("BF", "seen-bf-1", "BF.MADD"), ("CF", "seen-cf-1", "CF.INSERT")):
            r("FLUSHALL")
            r(add, "key", *(["ITEMS"] if prefix == "CF" else []), *items(100))
            dump, data = r("DUMP", "key"), r(prefix + ".SCANDUMP", "key", "0")[1]
            size, value = len(data), r("DEBUG", "DIGEST-VALUE", "key")

            def restore(*what):
                return r("RESTORE", "new", "0", payload(dump, name, *what), "REPLACE")
            same(payload(dump, name, 2, 0, size, data), dump)
            for good in ((1, 0, data), (2, 0, size, data[:99], data[99:]),
                         (2, 0, size, *[data[i:i + 7] for i in range(0, size, 7)])):
                same(restore(*good), "OK")
                same(r("DEBUG", "DIGEST-VALUE", "new"), value, good[:3])
            for half in ((1, 1, data[:200]), (2, 1, 200, data[:200]), (2, 1, 200, data[:1],
                                                                       data[1:200])):
                same(restore(*half), "OK")
                refused(r, prefix + ".EXISTS", "new", "i1", says="not complete")
                same(r(prefix + ".LOADCHUNK", "new", str(1 + size), data[200:]), "OK")
                same(r("DEBUG", "DIGEST-VALUE", "new"), value, half[:2])
            first = data[:8] + b"\x01" + data[9:88] + bytes(8) + data[96:]  # without a sum
            same(restore(1, 0, first), "OK")
            same(r("DEBUG", "DIGEST-VALUE", "new"), value)
            r("DEL", "new")
            for bad in ((0, 0, data), (3, 0, size, data), (2, 0, size + 1, data),
                        (2, 0, size - 1, data), (2, 0, 0, data), (2, 0, 1 << 62, data),
                        (2, 0, size, b"", data), (2, 0, size, data[:99]), (2, 0, size),
                        (2, 0, data), (2, 0, size, data[:99], data[98:]), (1, 0, data[:-1]),
                        (2, 0, size, size), (2, 1, size, data), (1, 1, data), (2, 0, 0),
                        (1, 0, data[:8] + b"\x01" + data[9:]), (1, 0, first[:8] + b"\x02" + first[9:]),
                        (1, 0, first[:8] + b"\x00" + first[9:]), (1, 0, data[:8] + b"\x03" + data[9:])):
                refused(r, "RESTORE", "new", "0", payload(dump, name, *bad), says="Bad data")
            same(r("EXISTS", "new"), 0)


def a_replica_that_comes_late(module):
    """Full synchronisation in the middle, and transactions and scripts."""
    with Pair(module) as pair:
        p = pair.p
        pair.r("REPLICAOF", "NO", "ONE")
        for command in ALL:
            p.many([ready(p, command)])
        p.many([("MULTI",), ("BF.ADD", "multi", "a"), ("BF.MADD", "multi", "a", "b"),
                ("BF.INSERT", "w9", "WINDOW", "5", "ITEMS", "a"),
                ("SEEN.MARK", "multi3", "a"), ("CF.ADD", "multi4", "a"), ("EXEC",)])
        pair.attach()
        pair.settle()
        same(pair.digest(pair.r), pair.digest(), "after a full synchronisation")
        p.many([("MULTI",), ("BF.ADD", "multi", "c"), ("BF.MADD", "multi2", "a", "b"),
                ("BF.MADD", "w9", "a", "b"), ("SEEN.TAKE", "multi3", "COUNT", "1", "a", "b"),
                ("CF.ADD", "multi4", "a"), ("EXEC",)])
        p("EVAL", "redis.call('BF.ADD', KEYS[1], 'x') "
          "redis.call('SEEN.MARK', KEYS[3], 'y', 'z') "
          "return redis.call('BF.MADD', KEYS[2], 'y', 'z')", "3", "script", "w9", "user")
        pair.settle()
        same(pair.digest(pair.r), pair.digest(), "after MULTI and EVAL")
        check_files(pair, "MULTI and EVAL")


def random_commands(module):
    """Any order."""
    rng = random.Random(SEED)
    with Pair(module) as pair:
        for round_ in range(6 * SCALE):
            for _ in range(200):
                command = list(rng.choice(ALL + IDLE))
                if rng.random() < 0.3:
                    name, key = rng.choice(ALL)[:2]
                    add = {"BF": ["BF.MADD", key], "CF": ["CF.INSERT", key, "ITEMS"],
                           "SE": ["SEEN.MARK", key]}[name[:2]]
                    command = add + items(rng.randint(1, 300), "r")
                pair.p.many([ready(pair.p, command)])
            pair.settle()
            same(pair.digest(pair.r), pair.digest(), "replica, round %d" % round_)
            check_files(pair, "round %d" % round_)
            check_rewrite(pair, "round %d" % round_)
            for key in set(c[1] for c in ALL):
                if pair.p("EXISTS", key):
                    check_copies(pair, key, "round %d" % round_)
            if rng.random() < 0.5:
                pair.p("FLUSHALL")
        tried(6 * SCALE * 200, "random commands")


def another_secret(module):
    """A server whose AOF has users of another secret does not go on without them."""
    with Server(module, options=OPTIONS) as server:
        secrets = [os.path.join(server.directory, name) for name in ("ours", "other")]
        for n, path in enumerate(secrets):
            with open(path, "w") as f:
                f.write("%032x\n" % (n + 1))
        server.stop()
        server.arguments = ["secret-file=" + secrets[0]]
        server.start()
        r = server.client()
        r("SEEN.MARK", "user", "a", "b")
        r("BGREWRITEAOF")
        wait_rewritten(r)
        digest = r("DEBUG", "DIGEST")
        server.stop()
        server.arguments = ["secret-file=" + secrets[1]]
        try:
            server.start()
            true(False, "it started under another secret")
        except RuntimeError:
            pass
        true("user in the AOF" in server.log(), server.log())
        true("is secret-file the one it was written with?" in server.log(), server.log())
        server.arguments = ["secret-file=" + secrets[0]]
        server.start()
        same(server.client()("DEBUG", "DIGEST"), digest, "nothing is lost")


def ten_days_ago(r, key):
    """A mark that the default of 5 days would call fresh."""
    r("SEEN.MARK", key, "AT", str(int(time.time() * 1000) - 10 * 86400000), "old")


def policies(module):
    """What SEEN.POLICY sets is data: equal on the replica, after loading, after a full
    synchronisation, after a promotion; what changes nothing is told to nobody."""
    with Pair(module) as pair:
        p, r = pair.p, pair.r

        def equal(what):
            pair.settle()
            same(r("SEEN.POLICY"), p("SEEN.POLICY"), what)
            same(pair.digest(r), pair.digest(), what)
        built_in = p("SEEN.POLICY", "default")
        p("SEEN.POLICY", "default", "ttl=30d")
        p("SEEN.POLICY", "feed", "items=20,ttl=1h")
        ten_days_ago(p, "user")
        equal("as they are set")
        for client in (p, r):
            same(client("SEEN.CHECK", "user", "old"), [1], "ten days are fewer than 30")
            info = client("INFO", "seen").decode()
            true("seen_policies_set:2" in info and "ttl=2592000000ms" in info, info)
        before = p("SEEN.POLICY")
        for way in (("DEBUG", "RELOAD"), ("DEBUG", "LOADAOF")):
            p(*way)
            same(p("SEEN.POLICY"), before, way)
            same(p("SEEN.CHECK", "user", "old"), [1], way)
        pair.settle()
        offset = pair.offset(p)
        p("SEEN.POLICY", "feed", "ttl=60m,items=20")
        same(pair.offset(p), offset, "the same policy is not replicated")
        refused(p, "SEEN.POLICY", "nobody", "RESET", says="expected the name of a policy")
        refused(p, "SEEN.POLICY", b"a\0b", "items=1", says="a name of 1 to 31")
        refused(p, "SEEN.POLICY", "a\nb", "items=1", says="a name of 1 to 31")
        refused(p, "SEEN.POLICY", "b", b"items=1\0,", says="a policy: ")
        for what in ("items=7", "RESET"):
            refused(r, "SEEN.POLICY", "feed", what, says="READONLY")
        refused(p, "CONFIG", "SET", "seen.policy", "ttl=2d", says="SEEN.POLICY has set")
        same(p("CONFIG", "GET", "seen.policy")[1].decode(), p("SEEN.POLICY", "default"))
        equal("what was refused changed nothing")
        p.many([("MULTI",), ("SEEN.POLICY", "feed", "RESET"),
                ("SEEN.POLICY", "news", "ttl=1d"), ("EXEC",)])
        equal("in a transaction")
        set_it = "return redis.call('SEEN.POLICY', 'script', ARGV[1])"
        refused(p, "EVAL_RO", set_it, "0", "items=9", says="read-only scripts")
        p("EVAL", set_it, "0", "items=9")
        equal("in a script")
        p("EVAL", set_it, "0", "RESET")
        same(p("SEEN.POLICY")[0::2], [b"default", b"news"])
        # A replica that had others loses them with its data.
        r("REPLICAOF", "NO", "ONE")
        same(r("SEEN.POLICY", "own", "items=5"), "OK", "a replica that was promoted")
        pair.attach()
        equal("after a full synchronisation")
        p("SEEN.POLICY", "default", "RESET")
        p("SEEN.POLICY", "news", "RESET")
        equal("taken back")
        same(p("SEEN.POLICY"), [b"default", built_in.encode()])
        r("REPLICAOF", "NO", "ONE")
        r("SEEN.POLICY", "own", "items=5")
        pair.attach()
        equal("after a full synchronisation with nothing set")
        for i in range(32):
            p("SEEN.POLICY", "name%d" % i, "items=%d" % (i + 1))
        refused(p, "SEEN.POLICY", "more", "items=1", says="32 are set")
        equal("as many as there may be")
        # Paused clients: the server must not write, and does not. A rewritten file has
        # them again, replicas do not hear of that.
        pair.settle()
        offset = pair.offset(p)
        p("CLIENT", "PAUSE", "500", "WRITE")
        p("BGREWRITEAOF")
        wait_rewritten(p)
        same(pair.offset(p), offset, "a rewritten AOF is no news to replicas")
        p("SEEN.POLICY", "name31", "items=100")  # waits for the end of the pause
        equal("after a pause")


def policies_after_a_restart(module):
    """With every way to keep data, with and without keys; who wins over whom."""
    aof = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble"]
    for options, save in ((aof + ["no"], None), (aof + ["no"], "BGREWRITEAOF"),
                          (aof + ["yes"], "BGREWRITEAOF"), ([], "SAVE")):
        with Server(module, options=options) as server:
            r = server.client()
            r("SEEN.POLICY", "default", "ttl=30d")
            r("SEEN.POLICY", "feed", "items=20")
            set_ = r("SEEN.POLICY")
            for keys in (False, True):
                if keys:
                    ten_days_ago(r, "user")
                if save:
                    r(save)
                    wait_rewritten(r)
                server.stop()
                server.arguments = ["policy=ttl=2d", "policy.conf=items=5"]
                server.start()
                r = server.client()
                same(r("SEEN.POLICY")[:2], set_[:2], "set wins over configured: %s" % (save,))
                same(sorted(r("SEEN.POLICY")[0::2]), [b"conf", b"default", b"feed"], save)
                same(r("SEEN.POLICY", "feed").encode(), set_[3], save)
                if keys:
                    same(r("SEEN.CHECK", "user", "old"), [1], save)
            r("SEEN.POLICY", "default", "RESET")
            r("SEEN.POLICY", "conf", "items=6")
            r("SEEN.POLICY", "conf", "RESET")
            true("ttl=172800000ms" in r("SEEN.POLICY", "default"), "what is configured")
            true("items=5," in r("SEEN.POLICY", "conf"), "what is configured")
            if save:
                r(save)
                wait_rewritten(r)
            server.stop()
            server.arguments = ["policy=ttl=3d"]
            server.start()
            r = server.client()
            true("ttl=259200000ms" in r("SEEN.POLICY", "default"), "another configuration")
            same(sorted(r("SEEN.POLICY")[0::2]), [b"default", b"feed"], save)


def policies_in_a_rewritten_file(module):
    """Rewritten while clients are paused, when nothing may be appended: the policies come
    with the first key of ours, whatever its type and database; where there is none, as soon
    as the pause is over. Without a pause the appended ones are enough."""
    paused = [("CLIENT", "PAUSE", "60000", "WRITE")]
    cases = [([("BF.ADD", "k", "a")], paused), ([("CF.ADD", "k", "a")], paused),
             ([("SEEN.MARK", "k", "a")], paused), ([("SET", "before", "a"), ("SELECT", "7"),
                                                    ("BF.ADD", "k", "a")], paused),
             ([], []), ([("SET", "k", "a")], []),
             ([], [("CLIENT", "PAUSE", "300", "WRITE")])]
    for keys, pause in cases:
        with Server(module, options=OPTIONS) as server:
            r = server.client()
            r("SEEN.POLICY", "default", "ttl=30d")
            r("SEEN.POLICY", "feed", "items=20")
            r("SEEN.POLICY", "gone", "items=20")
            r("SEEN.POLICY", "gone", "RESET")
            before = r("SEEN.POLICY")
            r.many(keys + pause + [("BGREWRITEAOF",)])
            wait_rewritten(r)
            if pause and not keys:
                r("SET", "waits", "for the end of the pause")
                time.sleep(0.3)  # it tries again every tenth of a second
            digest = r("DEBUG", "DIGEST")
            server.stop()  # at once
            server.start()
            r = server.client()
            same(r("SEEN.POLICY"), before, (keys, pause))
            same(r("DEBUG", "DIGEST"), digest, (keys, pause))


def policies_of_other_files(module):
    """RDB files of a module that knew no policies are read; those that lie are not."""
    with Server(module) as server:
        def start_with(*aux):
            server.stop()
            with open(os.path.join(server.directory, "dump.rdb"), "wb") as f:
                f.write(rdb_file(*aux))
            server.start()
            return server.client()("SEEN.POLICY")
        names = start_with()
        same(names[0::2], [b"default"], "an earlier file")
        # From 7.2 on a file names the module only if it has to.
        r = server.client()
        version = r("INFO", "server").decode().split("redis_version:")[1].split("\r")[0]
        for set_ in (False, True):
            if set_:
                r("SEEN.POLICY", "feed", "items=7")
            r("SAVE")
            with open(os.path.join(server.directory, "dump.rdb"), "rb") as f:
                found = b"\xf7" + type_of("seen-xp-1", 2) in f.read()
            later = [int(n) for n in version.split(".")] >= [7, 2]
            same(found, set_ or not later, "in a file of %s" % version)
        same(start_with("seen-xp-1", 2, 0), names, "none")
        given = start_with("seen-xp-1", 2, 2, b"default", b"ttl=30d", b"feed", b"items=7")
        same(given[0::2], [b"default", b"feed"])
        true(b"ttl=2592000000ms" in given[1] and b"items=7," in given[3], given)
        for bad in ((1,), (1, b"a"), (1, b"a,b", b"items=1"), (1, b"", b"items=1"),
                    (1, b"a", b"items=0"), (1, b"a", b"items=1\0"), (2, b"a", b"items=1"),
                    (1 << 40, b"a", b"items=1"), (1, b"a", b"fpp=nan"), (0, b"a", b"items=1"),
                    (33, *[x for i in range(33) for x in (b"n%d" % i, b"items=1")])):
            try:
                start_with("seen-xp-1", 2, *bad)
                true(False, "started with %r" % (bad,))
            except RuntimeError:
                pass
            true(bad[0] == 0 or "seen: a policy cannot be loaded" in server.log(), server.log())
            os.truncate(server.log_file(), 0)


run([every_write_command, half_loaded, in_many_pieces, near_the_limit, encodings,
     a_replica_that_comes_late, another_secret, policies,
     policies_after_a_restart, policies_in_a_rewritten_file, policies_of_other_files, random_commands])
