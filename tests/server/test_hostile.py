"""Bytes and arguments that nobody should send: the server lives, answers with an
error or with a filter that works, and never with a filter that is half there."""
import random
import struct

from lib import SCALE, SEED, Error, Server, refused, run, same, tried, true
from payload import payload, values_in
from sums import layout, put, reseal, spoil_bits, spoil_object
from vectors import Vector, redisbloom_chunks

WORDS = ["", "0", "-1", "1", "2", "nan", "inf", "-inf", "-0", "1e-300", "1e300", "0.5",
         "0.01", "9223372036854775807", "9223372036854775808", "18446744073709551616",
         "-9223372036854775808", "2147483648", "4294967296", "x" * 300, "\x00", "\xff\xfe",
         "ITEMS", "NOCREATE", "CAPACITY", "ERROR", "EXPANSION", "NONSCALING", "WINDOW",
         "GENERATIONS", "TTL", "LIKE", "SECRET", "AT", "ALWAYS", "NEVER", "REMOVE",
         "BUCKETSIZE", "MAXITERATIONS", "POLICY", "COUNT", "LIMIT", "REPLACE", "items=5,ttl=1d", "items=x", "default",
         "none", "0" * 32, "key", "other", "string", "nothing", "DIALECT", "gozero", "leveldb",
         "redisbloom-cf", "BITS", "HASHES"]

COMMANDS = ["BF.RESERVE", "BF.ADD", "BF.MADD", "BF.INSERT", "BF.EXISTS", "BF.MEXISTS",
            "BF.INFO", "BF.CARD", "BF.SCANDUMP", "BF.LOADCHUNK", "BF.MERGE", "BF.CLEAR",
            "BF.ALLOW", "CF.RESERVE", "CF.ADD", "CF.ADDNX", "CF.INSERT", "CF.INSERTNX",
            "CF.EXISTS", "CF.MEXISTS", "CF.DEL", "CF.COUNT", "CF.INFO", "CF.COMPACT",
            "CF.SCANDUMP", "CF.LOADCHUNK", "SEEN.MARK", "SEEN.FRESH", "SEEN.TAKE", "SEEN.CHECK", "SEEN.MARKP",
            "SEEN.FRESHP", "SEEN.TAKEP", "SEEN.FORGET", "SEEN.MERGE", "SEEN.EXPORT",
            "SEEN.IMPORT", "SEEN.INFO", "SEEN.POLICY", "BF.IMPORT", "CF.IMPORT", "BF.LOAD"]

# What makes a value `v` of each sort.
VALUES = {
    "BF": [("BF.RESERVE", "v", "0.01", "100"), ("BF.MADD", "v", "a", "b", "c")],
    "BF grown": [("BF.RESERVE", "v", "0.1", "3"),
                 ("BF.MADD", "v", *["i%d" % i for i in range(100)])],
    "BF fixed": [("BF.RESERVE", "v", "0.01", "100", "NONSCALING"), ("BF.ADD", "v", "a")],
    "BF window": [("BF.RESERVE", "v", "0.01", "50", "WINDOW", "60"), ("BF.ADD", "v", "a")],
    "CF": [("CF.RESERVE", "v", "100"), ("CF.ADD", "v", "a")],
    "CF chain": [("CF.RESERVE", "v", "4"),
                 ("CF.INSERT", "v", "ITEMS", *["i%d" % i for i in range(40)])],
    "XP": [("SEEN.MARK", "v", "a", "b", "c")],
    "XP large": [("SEEN.MARK", "v", *["i%d" % i for i in range(2500)])],
    "BF listed": [("BF.ADD", "v", "a"), ("BF.ALLOW", "v", "b", "c")],
    "BF of RedisBloom": [Vector("redisbloom-scaling").command("v"), ("BF.ADD", "v", "a")],
    "BF of go-zero": [Vector("gozero").command("v")],
    "BF of a list": [Vector("exposure-list").command("v")],
    "CF of RedisBloom": [Vector("redisbloom-cf-expanded").command("v")],
}


def spoil(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        how = rng.randrange(5)
        at = rng.randrange(len(data)) if data else 0
        if how == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1 and data:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif how == 2 and len(data) >= at + 8:
            data[at:at + 8] = struct.pack("<Q", rng.choice(
                (0, 1, 2**31, 2**32, 2**63, 2**64 - 1, rng.getrandbits(64))))
        elif how == 3:
            del data[at:at + rng.choice((1, 8, 64, len(data)))]
        else:
            data[at:at] = bytes(rng.choices(range(256), k=rng.choice((1, 8, 64))))
    return bytes(data)


USES = {
    "seen-bf-1": [("BF.MEXISTS", "bad", "a", "zzz"), ("BF.INFO", "bad"), ("BF.CARD", "bad"),
                  ("BF.ADD", "bad", "new"), ("BF.SCANDUMP", "bad", "0")],
    "seen-cf-1": [("CF.MEXISTS", "bad", "a", "zzz"), ("CF.INFO", "bad"), ("CF.ADD", "bad", "new"),
                  ("CF.DEL", "bad", "a"), ("CF.COUNT", "bad", "new"), ("CF.COMPACT", "bad"),
                  ("CF.INSERT", "bad", "ITEMS", *["n%d" % i for i in range(50)]),
                  ("CF.SCANDUMP", "bad", "0")],
    "seen-xp-1": [("SEEN.CHECK", "bad", "a", "zzz"), ("SEEN.INFO", "bad"),
                  ("SEEN.MARK", "bad", "new"), ("SEEN.TAKE", "bad", "COUNT", "1", "x", "y"),
                  ("SEEN.FORGET", "bad", "a"), ("SEEN.EXPORT", "bad")],
}

ANY_BITS = ("BF", "BF grown", "BF fixed", "BF listed")  # whose payload may be any
LIMITS = ("non scaling filter is full",)  # what a filter says that holds all it can
HEADER = 96  # of a chunk, which says how long the whole is
CANNOT = "ERR not supported by this kind or format"
ASKS = {"seen-bf-1": "BF.MEXISTS", "seen-cf-1": "CF.MEXISTS", "seen-xp-1": "SEEN.CHECK"}
PROBES = ["a", "b", "c", "new", "x", "y"] + ["i%d" % i for i in range(40)] + \
         ["n%d" % i for i in range(50)] + ["stranger%d" % i for i in range(50)]


def errors_in(reply):
    if isinstance(reply, list):
        return [e for x in reply for e in errors_in(x)]
    return [str(reply)] if isinstance(reply, Error) else []


def works(r, foreign=False):
    """The key `bad`, which was let in, either waits for chunks, and then every use of it
    says so, or takes every use (but for BF.ADD, which some filters of other systems do not
    know). Saved and loaded again it is the same, byte for byte, and answers the same.
    True: it does not wait."""
    kind = r("TYPE", "bad")
    replies = r.many(USES[kind])
    if foreign and kind == "seen-bf-1" and str(replies[3]) == CANNOT:
        replies[3] = 0
    errors = [e for reply in replies for e in errors_in(reply)]
    waits = bool(errors) and all("not complete" in e for e in errors)
    errors = [e for e in errors if not any(limit in e for limit in LIMITS)]
    if kind == "seen-cf-1" and "Filter is full" in str(errors):  # it may not grow
        info = r("CF.INFO", "bad")
        info = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2]))
        same(info["Expansion rate"], 0, "a %s that is full" % kind)
        errors = [e for e in errors if "Filter is full" not in e]
    if waits:
        same(len(errors), len(replies), "uses of a key that is not complete: %r" % replies)
    else:
        same(errors, [], "uses of a %s that was let in" % kind)
    dump, ttl = r("DUMP", "bad"), max(r("PTTL", "bad"), 0)
    same(r("RESTORE", "again", str(ttl), dump, "REPLACE"), "OK", "loading a %s again" % kind)
    same(r("COPY", "bad", "copy", "REPLACE"), 1)
    keys = ["bad", "again", "copy"]
    if not waits and kind != "seen-xp-1":
        iterator, chunk = replies[-1]
        r("DEL", "chunked")
        same(r(kind[5:7].upper() + ".LOADCHUNK", "chunked", str(iterator), chunk), "OK", "its chunk")
        keys.append("chunked")
    true(all(r("DUMP", key) == dump for key in keys), "a %s, saved again" % kind)
    values = r("DEBUG", "DIGEST-VALUE", *keys)
    true(len(set(values)) == 1, "digests of a %s, loaded again: %s" % (kind, values))
    true(r("MEMORY", "USAGE", "bad") > 0, "memory")
    # Time may pass between two questions, but it does not come back.
    asked = r.many([(ASKS[kind], key, *PROBES) for key in keys + ["bad"]])
    if waits:
        true(all("not complete" in e for e in map(str, asked)), "answers %r" % asked)
    elif asked[0] == asked[-1]:
        true(all(a == asked[0] for a in asked), "answers of a %s, loaded again" % kind)
    return not waits


class Watch:
    """How much memory the server has taken at most, in its life, beyond what it has without
    keys: bytes decide it, not what they claim."""

    def __init__(self, r):
        self.r = r
        self.start()

    def memory(self, what):
        return int(self.r("INFO", "memory").decode().split(what + ":")[1].split()[0])

    def start(self):
        self.r("FLUSHALL")
        self.before = self.memory("used_memory")

    def check(self, what):
        more = self.memory("used_memory_peak") - self.before
        true(more < 32 << 20, "%s: %d MB for payloads of kilobytes" % (what, more >> 20))


def make(r, commands):
    r("FLUSHALL")
    for command in commands:
        r(*command)


def corrupt_payloads(module):
    """RESTORE of DUMP payloads with all sums made right, the server's and our own."""
    rng = random.Random(SEED)
    with Server(module, options=["--loglevel", "warning", "--rdbcompression", "no"]) as server:
        r = server.client()
        watch = Watch(r)
        accepted = total = sealed = sealed_in = 0

        def restore(name, *values):
            bad = payload(dump, name, 2, *values)
            return not isinstance(r.many([("RESTORE", "bad", "0", bad, "REPLACE")])[0], Error)
        for name, commands in VALUES.items():
            watch.start()
            make(r, commands)
            dump, kind = r("DUMP", "v"), r("TYPE", "v")
            encoding, values = values_in(dump)
            same(payload(dump, kind, encoding, *values), dump, "made by hand")
            got_in = {"any": 0, "sealed": 0, "bits": 0}
            n = 50 * SCALE
            for i in range(3 * n):
                how = ("any", "sealed", "bits")[i % 3]
                if kind == "seen-xp-1":  # has no sums
                    record = spoil(rng, values[0])
                    let_in = restore(kind, record, values[1] if i % 2 else spoil(rng, values[1]))
                elif how == "any":
                    body = bytearray(values[2])
                    body[rng.randrange(HEADER, len(body))] ^= 1 << rng.randrange(8)
                    let_in = restore(kind, *values[:2], bytes(body))
                else:
                    body = spoil_bits(rng, values[2]) if how == "bits" else \
                        spoil_object(rng, values[2], spoil)
                    let_in = restore(kind, values[0], len(body), body)
                total += 1
                got_in[how] += let_in
                if let_in:
                    works(r)
            accepted += sum(got_in.values())
            print("     %-18s %3d%% of any, %3d%% of sealed, %3d%% of bits let in"
                  % (name, *[100 * got_in[how] // n for how in got_in]))
            if kind != "seen-xp-1":
                same(got_in["any"], 0, "%s: sums show every change of a filter" % name)
                sealed, sealed_in = sealed + n, sealed_in + got_in["sealed"]
            if name in ANY_BITS:
                same(got_in["bits"], n, "%s: any bits are right" % name)
            true(server.alive(), "alive after %s" % name)
            watch.check(name)
        # A third is usual. Fewer: the bytes are refused for their sums, and nothing is tried.
        true(sealed_in > sealed / 6, "%d of %d changes with right sums let in" % (sealed_in, sealed))
        tried(total, "payloads")
        tried(accepted, "payloads let in")


def corrupt_chunks(module):
    rng = random.Random(SEED + 1)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        watch = Watch(r)
        accepted = complete = total = 0
        for name, commands in VALUES.items():
            prefix = name[:2]
            if prefix == "XP":
                continue
            watch.start()
            make(r, commands)
            iterator, chunk = r(prefix + ".SCANDUMP", "v", "0")
            for i in range(150 * SCALE):
                bad = spoil_object(rng, chunk, spoil) if i % 2 else spoil(rng, chunk)
                at = len(bad) + 1 if i % 2 else rng.choice((iterator, len(bad) + 1,
                                                             rng.getrandbits(63), 0, 1))
                replies = r.many([("DEL", "bad"), (prefix + ".LOADCHUNK", "bad", str(at), bad)])
                total += 1
                if not isinstance(replies[1], Error):
                    accepted += 1
                    dump = r("DUMP", "bad")
                    whole = works(r)
                    complete += whole
                    cut = rng.randrange(1, len(bad)) if len(bad) > 1 else 1
                    replies = r.many([
                        ("DEL", "bad"),
                        (prefix + ".LOADCHUNK", "bad", str(cut + 1), bad[:cut]),
                        (prefix + ".LOADCHUNK", "bad", str(len(bad) + 1), bad[cut:])])
                    if whole and cut >= HEADER:
                        same(replies[1:], ["OK", "OK"], "loaded in two pieces")
                    if not isinstance(replies[2], Error):
                        true(r("DUMP", "bad") == dump, "loaded in two pieces")
                        same(works(r), whole, "loaded in two pieces")
            true(server.alive(), "alive after %s" % name)
            watch.check(name)
        print("     %d accepted, %d of them whole" % (accepted, complete))
        true(complete > total / 20, "changes pass the sums")
        tried(total, "chunks")
        tried(accepted, "chunks let in")


def corrupt_imports(module):
    """Bytes of other systems, whole and in RedisBloom's chunks; keys half loaded."""
    rng = random.Random(SEED + 4)
    with Server(module, options=["--loglevel", "warning", "--rdbcompression", "no"]) as server:
        r = server.client()
        watch = Watch(r)
        accepted = total = 0
        for name in ("redisbloom-scaling", "redisbloom-2.0", "redisbloom-cf-expanded",
                     "valkey-bloom", "gozero", "leveldb-small", "exposure-list", "guava",
                     "dcso-cli", "bits-and-blooms-json", "parquet", "rocksdb-small"):
            watch.start()
            v = Vector(name)
            whole, let_in = v.bytes, 0
            for _ in range(80 * SCALE):
                # The beginning is where the numbers are.
                at = rng.choice((32, 256, len(whole)))
                v.bytes = spoil(rng, whole[:at]) + whole[at:]
                commands = [v.command("bad")]
                if name == "valkey-bloom":
                    commands.append(("BF.LOAD", "bad", v.bytes))
                if name.startswith("redisbloom") and rng.random() < 0.5:
                    v.bytes = v.bytes.ljust(64, b"\0")
                    commands = [(v.family + ".LOADCHUNK", "bad", str(i), c)
                                for i, c in redisbloom_chunks(v, rng.choice((300, 1 << 20)))]
                replies = r.many([("DEL", "bad")] + commands)
                total += 1
                if not all(isinstance(x, Error) for x in replies[1:]):
                    let_in += 1
                    works(r, foreign=True)
            accepted += let_in
            print("     %-22s %3d%% let in" % (name, 100 * let_in // (80 * SCALE)))
            true(server.alive(), "alive after %s" % name)
            watch.check(name)
        # What is saved of a filter that is not complete.
        for name in ("redisbloom-scaling", "redisbloom-cf-expanded"):
            watch.start()
            v, let_in = Vector(name), 0
            for i, c in redisbloom_chunks(v, 500)[:2]:
                r(v.family + ".LOADCHUNK", "half", str(i), c)
            dump, kind = r("DUMP", "half"), r("TYPE", "half")
            encoding, values = values_in(dump)
            for _ in range(150 * SCALE):
                body = spoil(rng, values[2][:50]) + values[2][50:]
                bad = payload(dump, kind, encoding, rng.choice((values[0], rng.randrange(100))),
                              len(body), body)
                total += 1
                reply = r.many([("RESTORE", "bad", "0", bad, "REPLACE")])[0]
                if not isinstance(reply, Error):
                    let_in += 1
                    works(r)
            accepted += let_in
            true(server.alive(), "alive after a half of %s" % name)
            watch.check(name)
        true(accepted > total / 5, "something is let in")
        tried(total, "imports")
        tried(accepted, "imports let in")


def corrupt_envelopes(module):
    rng = random.Random(SEED + 3)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        watch = Watch(r)
        accepted = total = 0
        for name in ("XP", "XP large"):
            watch.start()
            make(r, VALUES[name])
            envelope = r("SEEN.EXPORT", "v")
            for _ in range(150 * SCALE):
                bad = spoil(rng, envelope)
                reply = r.many([("SEEN.IMPORT", "bad", bad, "REPLACE")])[0]
                total += 1
                if not isinstance(reply, Error):
                    accepted += 1
                    # Under the ttl of a spoilt policy it may be gone at any moment.
                    if r("PTTL", "bad") > 60000:
                        works(r)
            true(server.alive(), "alive after %s" % name)
            watch.check(name)
        true(accepted > total / 20, "something is let in")
        tried(total, "envelopes")
        tried(accepted, "envelopes let in")


def rates_that_are_none(module):
    """NaN and the like, in every place that holds a rate."""
    with Server(module, options=["--loglevel", "warning", "--rdbcompression", "no"]) as server:
        r = server.client()
        for name, commands in VALUES.items():
            make(r, commands)
            dump, kind = r("DUMP", "v"), r("TYPE", "v")
            encoding, values = values_in(dump)
            if kind == "seen-xp-1":
                envelope = r("SEEN.EXPORT", "v")
            for rate in (float("nan"), float("-nan"), float("inf"), float("-inf"), -0.01, 1.5):
                bad = struct.pack("<d", rate)
                if kind == "seen-xp-1":
                    refused(r, "SEEN.IMPORT", "bad", envelope[:24] + bad + envelope[32:])
                    policy = bytes([20, 0, 0, 3]) + (1 << 30).to_bytes(6, "little") + bad
                    tries = [(values[0], policy)]
                else:
                    body = bytearray(values[2])
                    f = layout(body)[0]
                    tries = []
                    for at in [32, f.start + 32] + [f.state + 24] * ("of" in name):
                        changed = bytearray(body)
                        changed[at:at + 8] = bad
                        changed = reseal(changed)
                        tries.append((values[0], len(changed), changed))
                        refused(r, kind[5:7] + ".LOADCHUNK", "bad", str(len(changed) + 1), changed)
                for values_ in tries:
                    refused(r, "RESTORE", "bad", "0", payload(dump, kind, encoding, *values_),
                            says="Bad data")
            for rate in ("nan", "-nan", "inf", "0", "1", "-1", "1e400"):
                refused(r, "BF.RESERVE", "bad", rate, "100")
                refused(r, "CF.RESERVE", "bad", "100", "ERROR", rate)
                refused(r, "BF.IMPORT", "bad", "DIALECT", "gozero", "x", "BITS", "64", "ERROR", rate)
                if rate != "1":
                    refused(r, "SEEN.MARK", "bad", "POLICY", "fpp=" + rate, "a")
            same(r("EXISTS", "bad"), 0)


def claims(module):
    """Few bytes that speak of many: an error, or memory in proportion to what is there;
    and what the options of a command ask for, up to memory-limit."""
    with Server(module, arguments=["memory-limit=200000000"],
                options=["--loglevel", "warning", "--rdbcompression", "no"]) as server:
        r = server.client()
        watch = Watch(r)
        # Every size of an object and of its filters, alone and where it agrees with others.
        for name, commands in VALUES.items():
            make(r, commands)
            dump, kind = r("DUMP", "v"), r("TYPE", "v")
            encoding, values = values_in(dump)
            if kind == "seen-xp-1":
                continue
            body = values[2]
            f = layout(body)[0]
            places = [24, f.start + 16, f.start + 24, f.start + 96, f.start + 56] + \
                list(range(f.state, f.list - 7, 8))
            for large in (1 << 30, 1 << 33, 1 << 40, 1 << 47):
                for these in [[p] for p in places] + [[24, f.start + 16], places[1:4],
                                                      [24, *places[1:3], *places[5:]]]:
                    bad = bytearray(body)
                    for at in these:
                        put(bad, at, 8, large)
                    bad = reseal(bad)
                    r.many([("RESTORE", "bad", "0", payload(dump, kind, encoding, 0, len(bad), bad),
                             "REPLACE"), ("DEL", "bad"),
                            ("RESTORE", "bad", "0", payload(dump, kind, encoding, 0, large, bad)),
                            (kind[5:7] + ".LOADCHUNK", "bad", str(len(bad) + 1), bad),
                            ("DEL", "bad")])
            # The first bytes of something large, in chunks.
            first = bytearray(body[:200])
            put(first, 16, 8, 1 << 45)
            same(r(kind[5:7] + ".LOADCHUNK", "half", str(len(first) + 1), bytes(first)), "OK")
            true(r("MEMORY", "USAGE", "half") < 4096, "a promise takes no room")
            watch.check(name)
        # RedisBloom's headers: a link of 2^40 bytes; 2^30 buckets.
        v = Vector("redisbloom-scaling")
        head = bytearray(redisbloom_chunks(v, 500)[0][1])
        put(head, 20, 8, 1 << 40)
        r("DEL", "half")
        same(r("BF.LOADCHUNK", "half", "1", bytes(head)), "OK")
        head = bytearray(redisbloom_chunks(Vector("redisbloom-cf-expanded"), 500)[0][1])
        put(head, 8, 8, 1 << 30)
        r("CF.LOADCHUNK", "half cf", "1", bytes(head))
        watch.check("RedisBloom's headers")
        # Envelopes whose policies want room to work in.
        watch.start()
        r("SEEN.MARK", "v", "a")
        envelope = r("SEEN.EXPORT", "v")
        for i in range(24):
            bad = bytearray(envelope)
            put(bad, 12, 4, (1 << 20) - i)
            same(r("SEEN.IMPORT", "user%d" % i, bytes(bad)), "OK")
            r("SEEN.MARK", "user%d" % i, "b")
        more = watch.memory("used_memory_peak") - watch.before
        true(more < 400 << 20, "%d MB for two dozen small users" % (more >> 20))
        # What an option asks for may be large; its dump has the bytes for that, so that
        # RESTORE takes no more than it is given.
        same(r("BF.IMPORT", "large", "DIALECT", "gozero", "x", "BITS", str(1 << 30)), "OK")
        dump = r("DUMP", "large")
        true(len(dump) > 1 << 27, "a dump with the bytes of its bits")
        same(r("RESTORE", "again", "0", dump), "OK")
    with Server(module, arguments=["memory-limit=1000000"]) as server:
        r = server.client()
        watch = Watch(r)
        refused(r, "BF.IMPORT", "large", "DIALECT", "gozero", "x", "BITS", str(1 << 30),
                says="memory-limit")
        refused(r, "BF.RESERVE", "large", "0.001", "10000000", says="memory-limit")
        refused(r, "CF.RESERVE", "large", "10000000", says="memory-limit")
        watch.check("memory-limit")
        refused(r, "RESTORE", "large", "0", dump, says="Bad data")


def any_arguments(module):
    rng = random.Random(SEED + 2)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        r("SET", "string", "x")
        errors = 0
        total = 500 * SCALE
        for i in range(total):
            if i % 50 == 0:
                for command in VALUES["BF"]:
                    r.many([["key" if a == "v" else a for a in command]])
            name = rng.choice(COMMANDS)
            arguments = ["key"] if rng.random() < 0.6 else []
            arguments += rng.choices(WORDS, k=rng.randrange(0, 9))
            reply = r.many([[name] + arguments])[0]
            errors += isinstance(reply, Error)
            if isinstance(reply, Error):
                true(len(str(reply)) > 8, "%s %r: %s" % (name, arguments, reply))
            # Whatever that made must not fill the memory of the machine.
            if i % 25 == 0:
                true(int(r("INFO", "memory").decode().split("used_memory:")[1].split()[0])
                     < 4 << 30, "memory")
                r("FLUSHALL")
                r("SET", "string", "x")
        same(r("PING"), "PONG")
        print("     %d errors" % errors)
        tried(total, "argument lists")


run([corrupt_payloads, corrupt_chunks, corrupt_imports, corrupt_envelopes, rates_that_are_none,
     claims, any_arguments])
