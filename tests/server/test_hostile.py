"""Bytes and arguments that nobody should send: the server lives, answers with an
error or with a filter that works, and never with a filter that is half there."""
import random
import struct

from lib import SCALE, SEED, Error, Server, run, same, tried, true
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


def crc64(data):
    """The checksum behind a DUMP payload (polynomial ad93d23594c935a9, reflected)."""
    if not crc64.table:
        for i in range(256):
            c = i
            for _ in range(8):
                c = (c >> 1) ^ (0x95AC9329AC4BC9B5 if c & 1 else 0)
            crc64.table.append(c)
    c = 0
    for byte in data:
        c = crc64.table[(c ^ byte) & 0xFF] ^ (c >> 8)
    return c


crc64.table = []


def seal(payload):
    """A payload whose checksum is right again, so that its bytes are looked at."""
    return payload[:-8] + struct.pack("<Q", crc64(payload[:-8]))


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
    if waits:
        same(len(errors), len(replies), "uses of a key that is not complete: %r" % replies)
    else:
        same(errors, [], "uses of a %s that was let in" % kind)
    payload = r("DUMP", "bad")
    same(r("RESTORE", "again", "0", payload, "REPLACE"), "OK", "loading a %s again" % kind)
    same(r("COPY", "bad", "copy", "REPLACE"), 1)
    true(r("DUMP", "again") == payload == r("DUMP", "copy"), "a %s, saved again" % kind)
    true(r("MEMORY", "USAGE", "bad") > 0, "memory")
    # Time may pass between two questions, but it does not come back.
    asked = r.many([(ASKS[kind], key, *PROBES) for key in ("bad", "again", "copy", "bad")])
    if waits:
        true(all("not complete" in e for e in map(str, asked)), "answers %r" % asked)
    elif asked[0] == asked[3]:
        true(asked[0] == asked[1] == asked[2], "answers of a %s, loaded again" % kind)
    return not waits


def corrupt_payloads(module):
    """RESTORE of DUMP payloads with their checksum made right."""
    rng = random.Random(SEED)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        accepted = total = 0
        for name, commands in VALUES.items():
            r("FLUSHALL")
            for command in commands:
                r(*command)
            payload = r("DUMP", "v")
            same(r("RESTORE", "again", "0", seal(payload)), "OK", "the payload as it is")
            n = 150 * SCALE
            for _ in range(n):
                body = spoil(rng, payload[10:-10])
                bad = seal(payload[:10] + body + payload[-10:])
                reply = r.many([("RESTORE", "bad", "0", bad, "REPLACE")])[0]
                total += 1
                if not isinstance(reply, Error):
                    accepted += 1
                    works(r)
            true(server.alive(), "alive after %s" % name)
        print("     %d accepted" % accepted)
        tried(total, "payloads")


def corrupt_chunks(module):
    rng = random.Random(SEED + 1)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        accepted = total = 0
        for name, commands in VALUES.items():
            prefix = name[:2]
            if prefix == "XP":
                continue
            r("FLUSHALL")
            for command in commands:
                r(*command)
            iterator, chunk = r(prefix + ".SCANDUMP", "v", "0")
            for _ in range(150 * SCALE):
                bad = spoil(rng, chunk)
                at = rng.choice((iterator, len(bad) + 1, len(bad) + 1, len(bad) + 1,
                                 rng.getrandbits(63), 0, 1))
                replies = r.many([("DEL", "bad"), (prefix + ".LOADCHUNK", "bad", str(at), bad)])
                total += 1
                if not isinstance(replies[1], Error):
                    accepted += 1
                    payload = r("DUMP", "bad")
                    whole = works(r)
                    cut = rng.randrange(1, len(bad)) if len(bad) > 1 else 1
                    replies = r.many([
                        ("DEL", "bad"),
                        (prefix + ".LOADCHUNK", "bad", str(cut + 1), bad[:cut]),
                        (prefix + ".LOADCHUNK", "bad", str(len(bad) + 1), bad[cut:])])
                    if whole and cut >= HEADER:
                        same(replies[1:], ["OK", "OK"], "loaded in two pieces")
                    if not isinstance(replies[2], Error):
                        true(r("DUMP", "bad") == payload, "loaded in two pieces")
                        same(works(r), whole, "loaded in two pieces")
            true(server.alive(), "alive after %s" % name)
        print("     %d accepted" % accepted)
        tried(total, "chunks")


def corrupt_imports(module):
    """Bytes of other systems, whole and in RedisBloom's chunks; keys half loaded."""
    rng = random.Random(SEED + 4)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        accepted = total = 0
        for name in ("redisbloom-scaling", "redisbloom-2.0", "redisbloom-cf-expanded",
                     "valkey-bloom", "gozero", "leveldb-small", "exposure-list", "guava",
                     "dcso-cli", "bits-and-blooms-json", "parquet", "rocksdb-small"):
            v = Vector(name)
            whole = v.bytes
            for _ in range(80 * SCALE):
                # The beginning is where the numbers are.
                at = rng.choice((32, 256, len(whole)))
                v.bytes = spoil(rng, whole[:at]) + whole[at:]
                commands = [v.command("bad")]
                if name == "valkey-bloom":
                    commands.append(("BF.LOAD", "bad", v.bytes))
                if name.startswith("redisbloom"):
                    v.bytes = v.bytes.ljust(64, b"\0")
                    commands = [(v.family + ".LOADCHUNK", "bad", str(i), c)
                                for i, c in redisbloom_chunks(v, rng.choice((300, 1 << 20)))]
                replies = r.many([("DEL", "bad")] + commands)
                total += 1
                if not all(isinstance(x, Error) for x in replies[1:]):
                    accepted += 1
                    works(r, foreign=True)
            true(server.alive(), "alive after %s" % name)
        # What is saved of a filter that is not complete.
        for name in ("redisbloom-scaling", "redisbloom-cf-expanded"):
            v = Vector(name)
            for i, c in redisbloom_chunks(v, 500)[:2]:
                r(v.family + ".LOADCHUNK", "half " + name, str(i), c)
            payload = r("DUMP", "half " + name)
            for _ in range(150 * SCALE):
                bad = seal(payload[:10] + spoil(rng, payload[10:60]) + payload[60:])
                total += 1
                reply = r.many([("RESTORE", "bad", "0", bad, "REPLACE")])[0]
                if not isinstance(reply, Error):
                    accepted += 1
                    works(r)
            true(server.alive(), "alive after a half of %s" % name)
        print("     %d accepted" % accepted)
        tried(total, "imports")


def corrupt_envelopes(module):
    rng = random.Random(SEED + 3)
    with Server(module, options=["--loglevel", "warning"]) as server:
        r = server.client()
        accepted = total = 0
        for name in ("XP", "XP large"):
            r("FLUSHALL")
            for command in VALUES[name]:
                r(*command)
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
        print("     %d accepted" % accepted)
        tried(total, "envelopes")


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


run([corrupt_payloads, corrupt_chunks, corrupt_imports, corrupt_envelopes, any_arguments])
