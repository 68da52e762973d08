"""SEEN.*: exposure sets."""
import os
import struct
import tempfile
import time

from lib import Error, Server, refused, run, same, true

DAY = 86400000


def ids(n, start=0):
    return ["item-%08d" % i for i in range(start, start + n)]


def marks_and_questions(module):
    with Server(module) as server:
        r = server.client()
        same(r("SEEN.MARK", "u", "a", "b", "c"), 3)
        same(r("SEEN.MARK", "u", "b", "c", "d", "d"), 1)
        same(r("SEEN.CHECK", "u", "a", "d", "e"), [1, 1, 0])
        same(r("SEEN.FRESH", "u", "x", "a", "y", "b", "x", "z"), [b"x", b"y", b"z"])
        same(r("SEEN.FRESH", "u", "LIMIT", "2", "x", "a", "y", "b", "z"), [b"x", b"y"])
        same(r("SEEN.TAKE", "u", "COUNT", "2", "a", "x", "b", "y", "z"), [b"x", b"y"])
        same(r("SEEN.TAKE", "u", "COUNT", "2", "a", "x", "b", "y", "z"), [b"z"])
        same(r("SEEN.TAKE", "u", "COUNT", "2", "a", "x", "b", "y", "z"), [])
        same(r("SEEN.TAKE", "new", "COUNT", "0", "a"), [])
        same(r("EXISTS", "new"), 0)
        same(r("SEEN.CHECK", "nobody", "a"), [0])
        same(r("SEEN.FRESH", "nobody", "a", "a", "b"), [b"a", b"b"])
        same(r("EXISTS", "nobody"), 0)
        # Words among the items.
        same(r("SEEN.MARK", "words", "ITEMS", "AT", "POLICY", "ITEMS"), 3)
        same(r("SEEN.CHECK", "words", "ITEMS", "AT", "POLICY", "ITEMS", "LIMIT"), [1, 1, 1, 0])
        same(r("SEEN.FORGET", "u", "x", "nothing"), 1)
        same(r("SEEN.CHECK", "u", "a", "x", "y"), [1, 0, 1])
        same(r("SEEN.FORGET", "u"), 1)
        same(r("EXISTS", "u"), 0)
        same(r("SEEN.FORGET", "u"), 0)
        r("SEEN.MARK", "u", "one")
        same(r("SEEN.FORGET", "u", "one"), 1)
        same(r("EXISTS", "u"), 0, "nothing left to keep")
        # Many, and a model.
        shown = set()
        for i in range(50):
            some = ids(40, i * 20)
            same(r("SEEN.MARK", "m", *some), len(set(some) - shown))
            shown |= set(some)
        same(r("SEEN.FRESH", "m", *ids(1500)), [x.encode() for x in ids(1500)
                                                 if x not in shown])
        true(2985 <= r("SEEN.MARK", "big", *ids(3000)) <= 3000, "but for false positives")
        same(sum(r("SEEN.CHECK", "big", *ids(3000))), 3000)
        same(r("TYPE", "big"), "seen-xp-1")
        info = r("SEEN.INFO", "big")
        same(info[0::2], ["Items", "Bytes", "Newest", "Rate", "Generations"])
        true(2985 <= info[1] <= 3000, "items")
        same(len(info[9]), 3, "generations of 1000")
        r3 = server.client(3)
        same(r3("SEEN.CHECK", "m", ids(1)[0], "never"), [True, False])
        same(type(r3("SEEN.INFO", "m")), dict)


def packed_forms(module):
    """The same ids, as text of 8 bytes and packed, mean the same."""
    with Server(module) as server:
        r = server.client()
        numbers = [i * 7919 for i in range(300)]
        packed = b"".join(struct.pack("<Q", n) for n in numbers)
        plain = [struct.pack("<Q", n) for n in numbers]
        same(r("SEEN.MARK", "u", *plain[:100]), 100)
        bits = r("SEEN.FRESHP", "u", "8", packed)
        same(len(bits), 38)
        answers = [bits[i // 8] >> (7 - i % 8) & 1 for i in range(300)]
        same(answers, [0] * 100 + [1] * 200)
        r("SET", "bits", bits)
        same([r("GETBIT", "bits", "99"), r("GETBIT", "bits", "100")], [0, 1])
        bits = r("SEEN.TAKEP", "u", "COUNT", "10", "8", packed)
        same([i for i in range(300) if bits[i // 8] >> (7 - i % 8) & 1], list(range(100, 110)))
        same(r("SEEN.CHECK", "u", plain[100], plain[109], plain[110]), [1, 1, 0])
        same(r("SEEN.MARKP", "u", "8", packed), 190)
        same(sum(r("SEEN.CHECK", "u", *plain)), 300)
        same(r("SEEN.FRESHP", "u", "8", b""), b"")
        same(r("SEEN.FRESHP", "u", "LIMIT", "1", "1", b"abc"), b"\x80")
        same(r("SEEN.MARKP", "nobody", "8", b""), 0)
        same(r("EXISTS", "nobody"), 0)
        same(r("SEEN.FRESHP", "big", "4", bytes(4 * 5000))[:2], b"\x80\x00", "fresh once")
        for bad in (("0", b"x"), ("3", b"abcd"), ("x", b"ab"), ("65537", b"")):
            refused(r, "SEEN.FRESHP", "u", *bad, says="width")
        refused(r, "SEEN.TAKEP", "u", "8", packed, "x", "y")


def time_and_policies(module):
    with Server(module) as server:
        r = server.client()
        now = int(time.time() * 1000)
        policy = "items=10,generations=3,fpp=0.001,ttl=10d"
        # By count: the last items x (generations - 1) stay at least.
        for i in range(50):
            r("SEEN.MARK", "c", "AT", str(now + i), "POLICY", policy, "item%d" % i)
        answers = r("SEEN.CHECK", "c", "POLICY", policy, *["item%d" % i for i in range(50)])
        same(answers[30:], [1] * 20)
        same(sum(answers[:20]), 0)
        # By age: each generation leaves by itself.
        for day in range(12, 0, -1):
            r("SEEN.MARK", "t", "AT", str(now - day * DAY), "POLICY", policy, "day%d" % day)
        answers = dict(zip(range(1, 13), r("SEEN.CHECK", "t", "POLICY", policy,
                                           *["day%d" % d for d in range(1, 13)])))
        same([answers[d] for d in range(1, 11)], [1] * 10)
        ttl = r("PTTL", "t")
        true(9 * DAY < ttl <= (9 + 10 / 16 + 0.1) * DAY, "the key expires with its last "
             "generation: %d" % ttl)
        before = r("DEBUG", "DIGEST-VALUE", "t")
        r("SEEN.MARK", "t", "AT", "1000", "POLICY", policy, "past")  # the clock stood wrong
        same(r("SEEN.CHECK", "t", "past"), [1])
        true(r("DEBUG", "DIGEST-VALUE", "t") != before, "marked")
        # Named policies.
        same(r("SEEN.POLICY", "feed", "items=20,ttl=1h"), "OK")
        same(r("SEEN.POLICY", "feed"), "items=20,generations=5,fpp=0.001,ttl=3600000ms"
             .replace("0.001", "%.17g" % 0.001))
        names = r("SEEN.POLICY")[0::2]
        true(b"default" in names and b"feed" in names, names)
        same(r("SEEN.MARK", "f", "POLICY", "feed", "a"), 1)
        true(3500000 < r("PTTL", "f") < 3900000, "the ttl of the policy")
        for bad in ("items=0", "items", "ttl=5", "ttl=-1d", "fpp=2", "generations=65", "x=1",
                    "items=1,,ttl=1d", "=", "fpp=nan", "items=99999999999"):
            refused(r, "SEEN.MARK", "x", "POLICY", bad, "a")
            refused(r, "SEEN.POLICY", "bad", bad)
        refused(r, "SEEN.MARK", "x", "POLICY", "nobody", "a", says="name")
        refused(r, "SEEN.POLICY", "a,b", "items=1")
        for i in range(200):  # more than are remembered
            same(r("SEEN.MARK", "many", "POLICY", "items=%d" % (10 + i), "a%d" % i), 1)
        for i in range(70):
            replies = r.many([("SEEN.POLICY", "name%d" % i, "items=5")])
        true(isinstance(replies[0], Error), "names are limited")
        same(r("SEEN.MARK", "x", "POLICY", "items=12345", "a"), 1, "numbers always work")


def whole_records(module):
    with Server(module) as server:
        r = server.client()
        r("SEEN.MARK", "a", "1", "2")
        r("SEEN.MARK", "b", "2", "3")
        same(r("SEEN.MERGE", "a", "b", "missing"), "OK")
        same(r("SEEN.CHECK", "a", "1", "2", "3", "4"), [1, 1, 1, 0])
        same(r("SEEN.MERGE", "new", "a", "b"), "OK")
        same(r("SEEN.CHECK", "new", "1", "2", "3"), [1, 1, 1])
        true(r("PTTL", "new") > 0, "it expires")
        same(r("SEEN.MERGE", "none", "missing"), "OK")
        same(r("EXISTS", "none"), 0)
        blob = r("SEEN.EXPORT", "a")
        same(blob[:8], b"\x89SEENXP\x1a")
        same(struct.unpack("<IIIIdQ", blob[8:40]), (1, 1000, 5, 0, 0.001, 5 * DAY))
        same(r("SEEN.EXPORT", "missing"), None)
        same(r("SEEN.IMPORT", "c", blob), "OK")
        same(r("DEBUG", "DIGEST-VALUE", "c"), r("DEBUG", "DIGEST-VALUE", "a"))
        r("SEEN.MARK", "d", "9")
        same(r("SEEN.IMPORT", "d", blob), "OK")
        same(r("SEEN.CHECK", "d", "1", "9"), [1, 1], "united")
        same(r("SEEN.IMPORT", "d", blob, "REPLACE"), "OK")
        same(r("SEEN.CHECK", "d", "1", "9"), [1, 0], "replaced")
        for bad in (b"", blob[:47], blob[:48], blob[:-1], b"x" + blob[1:], blob + b"x"):
            refused(r, "SEEN.IMPORT", "e", bad)
        refused(r, "SEEN.IMPORT", "e", blob[:40] + b"otherkey" + blob[48:], says="secret")
        refused(r, "SEEN.IMPORT", "e", blob, "SURPRISE")
        same(r("EXISTS", "e"), 0)


def errors(module):
    with Server(module) as server:
        r = server.client()
        r("SET", "string", "x")
        for command in (("MARK", "a"), ("FRESH", "a"), ("CHECK", "a"), ("MARKP", "1", "a"),
                        ("TAKE", "COUNT", "1", "a"), ("FRESHP", "1", "a"), ("FORGET", "a"),
                        ("TAKEP", "COUNT", "1", "1", "a"), ("MERGE", "a"), ("EXPORT",),
                        ("IMPORT", "x"), ("INFO",)):
            refused(r, "SEEN." + command[0], "string", *command[1:], says="WRONGTYPE")
        refused(r, "SEEN.MERGE", "a", "string", says="WRONGTYPE")
        for command in ("MARK", "FRESH", "CHECK", "TAKE", "MARKP", "FRESHP", "TAKEP", "MERGE",
                        "IMPORT"):
            refused(r, "SEEN." + command, "u", says="wrong number")
        refused(r, "SEEN.TAKE", "u", "a", "b", says="COUNT")
        refused(r, "SEEN.TAKE", "u", "COUNT", "-1", "b")
        refused(r, "SEEN.TAKE", "u", "COUNT", "x", "b")
        refused(r, "SEEN.FRESH", "u", "LIMIT", "x", "b")
        refused(r, "SEEN.MARK", "u", "AT", "x", "b")
        refused(r, "SEEN.MARK", "u", "AT", "99999999999999999", "b")
        refused(r, "SEEN.MARK", "u", "AT", "5")
        refused(r, "SEEN.INFO", "u", says="not found")
        same(r("EXISTS", "u"), 0)


def secrets(module):
    directory = tempfile.mkdtemp(prefix="seen-secret-")
    path = os.path.join(directory, "key")
    with open(path, "w") as f:
        f.write("00112233445566778899aabbccddeeff\n")
    with Server(module) as public, Server(module, ["secret-file=" + path]) as secret:
        p, s = public.client(), secret.client()
        true(b"seen_keyed:no" in p("INFO", "seen"), "says that it is not keyed")
        true(b"seen_keyed:yes" in s("INFO", "seen"), "keyed")
        p("SEEN.MARK", "u", "a")
        s("SEEN.MARK", "v", "a")
        refused(s, "RESTORE", "u", "0", p("DUMP", "u"))
        refused(s, "SEEN.IMPORT", "u", p("SEEN.EXPORT", "u"), says="secret")
        same(s("RESTORE", "w", "0", s("DUMP", "v")), "OK")
        same(s("SEEN.CHECK", "w", "a"), [1])
    with open(path, "wb") as f:
        f.write(bytes.fromhex("00112233445566778899aabbccddeeff"))
    with Server(module, ["policy.x=items=7", "secret-file=" + path, "policy=ttl=1h"]) as again:
        s = again.client()
        s("SEEN.MARK", "v", "a")
        same(s("SEEN.EXPORT", "v")[40:48] != b"", True)
        true(s("PTTL", "v") < 4000000, "the default policy")
    for text in ("", "short", "00112233445566778899aabbccddeefg\n"):
        with open(path, "w") as f:
            f.write(text)
        server = Server(module, ["secret-file=" + path])
        try:
            server.start()
            raise AssertionError("loaded with secret %r" % text)
        except RuntimeError as error:
            true("secret-file" in str(error), str(error))
        finally:
            server.__exit__(None, None, None)
    os.unlink(path)
    os.rmdir(directory)


run([marks_and_questions, packed_forms, time_and_policies, whole_records, errors, secrets])
