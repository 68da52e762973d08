"""SEEN.*: exposure sets."""
import os
import struct
import tempfile
import time

from lib import Error, Server, refused, run, same, true, wait_rewritten
from payload import payload

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
        # More than the policy holds would be fresh again at once.
        small, nine = "items=3,generations=2", ["n%d" % i for i in range(9)]
        for few in (["COUNT", "7"], ["COUNT", "100"]):
            refused(r, "SEEN.TAKE", "new", "POLICY", small, *few, *nine, says="holds 6 of a user")
            refused(r, "SEEN.TAKEP", "new", "POLICY", small, *few, "8", bytes(range(72)), says="holds 6 of a user")
        same(len(r("SEEN.TAKE", "fits", "POLICY", small, "COUNT", "6", *nine)), 6)
        same(len(r("SEEN.TAKE", "fits2", "POLICY", small, "COUNT", "100", *nine[:5])), 5)
        r("DEL", "fits", "fits2")
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
        same(info[0::2], ["Items", "Bytes", "Newest", "Rate", "Generations", "Policy"])
        true(2985 <= info[1] <= 3000, "items")
        same(len(info[9]), 3, "generations of 1000")
        r3 = server.client(3)
        same(r3("SEEN.CHECK", "m", ids(1)[0], "never"), [True, False])
        same(type(r3("SEEN.INFO", "m")), dict)


def used_memory(r):
    return int(r("INFO", "memory").decode().split("used_memory:")[1].split()[0])


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
        # What a large command worked in is not kept; a larger one is refused.
        most = 1 << 22
        same(r("SEEN.MARKP", "many", "1", bytes(most)), 1)
        same(r("SEEN.FRESHP", "many", "1", bytes(most)), bytes(most // 8))
        info = r("INFO", "seen").decode()
        same(int(info.split("policy_bytes:")[1].split()[0]) < 64 << 20, True, "room is given back")
        for command in (("MARKP", "many"), ("FRESHP", "many"), ("TAKEP", "many", "COUNT", "1")):
            refused(r, "SEEN." + command[0], *command[1:], "1", bytes(most + 1), says="at most 4194304 ids")


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
        # One policy, however it is written, has one room to work in: megabytes, here.
        ways = ["items=100000", "items=100000,generations=5", "ttl=120h,items=100000"]
        r("SEEN.MARK", "room", "POLICY", ways[0], "a")
        before = used_memory(r)
        for i in range(30):
            r("SEEN.MARK", "room", "POLICY", ways[i % 3], "a%d" % i)
        true(used_memory(r) - before < 1 << 20, "%d bytes" % (used_memory(r) - before))


def kept(r, user, n=100):
    """How many of the first n items the user still has, as commands without a POLICY
    tell, all of them alike."""
    counts = {sum(r("SEEN.CHECK", user, *ids(n))), n - len(r("SEEN.FRESH", user, *ids(n))),
              r("SEEN.INFO", user)[1]}
    true(len(counts) == 1, counts)
    return counts.pop()


def own_policies(module):
    """A user keeps the policy that it was marked with, and loses nothing to another."""
    wide, default = "items=10,generations=10,fpp=1e-6,ttl=30d", "items=1000"
    with Server(module) as server:
        r = server.client()
        now = int(time.time() * 1000)
        same(r("SEEN.MARK", "u", "AT", str(now - 20 * DAY), "POLICY", wide, *ids(50)), 50)
        same(r("SEEN.MARK", "u", "POLICY", wide, *ids(50, 50)), 50)
        same(kept(r, "u"), 100)
        text = r("SEEN.POLICY", wide)
        same(r("SEEN.INFO", "u")[11], text)
        same(struct.unpack("<IIIdQ", r("SEEN.EXPORT", "u")[12:40]), (10, 10, 1, 1e-6, 30 * DAY))
        same(r("SEEN.FORGET", "u", "item-00000099"), 1)
        same(kept(r, "u", 99), 99, "but for the one that is forgotten")
        same(r("SEEN.MARK", "u", "item-00000099"), 1)
        same(kept(r, "u"), 100, "a mark without a policy")
        same(r("SEEN.TAKE", "u", "COUNT", "1", *ids(100)), [])
        packed = "".join(ids(100)).encode()
        same(r("SEEN.FRESHP", "u", "13", packed), bytes(13))
        same(r("SEEN.TAKEP", "u", "COUNT", "9", "13", packed), bytes(13))
        # It goes where the user goes.
        blob = r("DUMP", "u")
        r("COPY", "u", "copy")
        r("RESTORE", "restored", str(r("PTTL", "u")), blob)
        r("SEEN.IMPORT", "imported", r("SEEN.EXPORT", "u"))
        r("DEBUG", "RELOAD")
        for name in ("u", "copy", "restored", "imported"):
            same(r("SEEN.INFO", name)[11], text, name)
            same(kept(r, name), 100, name)
            same(r("DEBUG", "DIGEST-VALUE", name), r("DEBUG", "DIGEST-VALUE", "u"))
        true(r("PTTL", "imported") > 29 * DAY, "the ttl of its policy")
        # A question with a policy leaves it alone; a mark with one changes it.
        same(sum(r("SEEN.CHECK", "u", "POLICY", default, *ids(100))), 50)
        same(kept(r, "u"), 100)
        r("SEEN.MARK", "u", "POLICY", default, "new")
        same(r("SEEN.INFO", "u")[11], r("SEEN.POLICY", default))
        # Who has none of his own follows the default, and its changes.
        same(r("SEEN.MARK", "plain", *ids(100)), 100)
        same(r("SEEN.INFO", "plain")[11], "default")
        same(r("SEEN.EXPORT", "plain")[20:24], bytes(4))
        bytes_of_plain = r("MEMORY", "USAGE", "plain")
        r("SEEN.MARK", "copy", "POLICY", "default", "x")
        same(r("SEEN.INFO", "copy")[11], "default", "again")
        r("SEEN.POLICY", "default", wide)
        same(r("SEEN.MARK", "plain", *ids(10)), 0)
        same(len(r("SEEN.INFO", "plain")[9]), 2, "a generation of the new default")
        r("SEEN.MARK", "next", "a")
        true(r("PTTL", "next") > 29 * DAY, "the new default's ttl")
        true(bytes_of_plain <= 256 + 64, "no bytes for no policy: %d" % bytes_of_plain)
        r("SEEN.POLICY", "default", default)
        # Files tell who follows the default, whatever that was when they were written.
        r("CONFIG", "SET", "appendonly", "yes")
        r("SEEN.MARK", "follows", "a")
        r("SEEN.TAKEP", "follows2", "COUNT", "1", "1", "a")
        r("SEEN.MARK", "not", "POLICY", wide, "a")
        wait_rewritten(r)
        r("SEEN.POLICY", "default", "ttl=1d")
        for rewrite in (False, True):
            if rewrite:
                r("BGREWRITEAOF")
                wait_rewritten(r)
            r("DEBUG", "LOADAOF")
            same([r("SEEN.INFO", u)[11] for u in ("follows", "follows2", "not")],
                 ["default", "default", text])
        # Bytes of the encoding before, which had no policy.
        dump, record = r("DUMP", "next"), r("SEEN.EXPORT", "next")[48:]
        same(payload(dump, "seen-xp-1", 2, record, b""), dump)
        same(r("RESTORE", "old", "0", payload(dump, "seen-xp-1", 1, record)), "OK")
        same((r("SEEN.CHECK", "old", "a"), r("SEEN.INFO", "old")[11]), ([1], "default"))
        # Policies from outside: whole, or an error.
        def policy(items, generations, ttl, fpp):
            return struct.pack("<I", items)[:3] + bytes([generations]) + struct.pack(
                "<Q", ttl)[:6] + struct.pack("<d", fpp)
        good = policy(20, 3, DAY, 0.01)
        same(r("RESTORE", "good", "0", payload(dump, "seen-xp-1", 2, record, good)), "OK")
        same(r("SEEN.INFO", "good")[11], r("SEEN.POLICY", "items=20,generations=3,fpp=0.01,"
                                           "ttl=1d"))
        for bad in (good[:-1], good + b"x", b"x", bytes(18), policy(0, 3, DAY, 0.01),
                    policy(20, 65, DAY, 0.01), policy(20, 0, DAY, 0.01), policy(20, 3, 0, 0.01),
                    policy(20, 3, DAY, 0.9), policy(20, 3, DAY, float("nan")),
                    policy(1 << 21, 3, DAY, 0.01), policy(1 << 20, 64, DAY, 1e-9)):
            refused(r, "RESTORE", "bad", "0", payload(dump, "seen-xp-1", 2, record, bad))
        same(r("EXISTS", "bad"), 0)


def unions(module):
    """Nothing is lost that one of the policies keeps."""
    wide = "items=10,generations=10,ttl=30d"
    with Server(module) as server:
        r = server.client()
        old = str(int(time.time() * 1000) - 20 * DAY)
        r("SEEN.MARK", "wide", "AT", old, "POLICY", wide, *ids(40))
        r("SEEN.MARK", "wide", *ids(20, 40))
        r("SEEN.MARK", "plain", *ids(40, 60))
        same(r("SEEN.MERGE", "plain", "wide", "missing"), "OK")
        same(kept(r, "plain"), 100)
        same(r("SEEN.INFO", "plain")[11], r("SEEN.POLICY", "items=1000,generations=10,ttl=30d"))
        true(r("PTTL", "plain") > 29 * DAY, "the longer ttl")
        same(r("SEEN.MERGE", "new", "wide"), "OK")
        same((kept(r, "new", 60), r("SEEN.INFO", "new")[11]), (60, r("SEEN.POLICY", wide)))
        same(r("SEEN.MERGE", "wide", "wide"), "OK")
        same((kept(r, "wide", 60), r("SEEN.INFO", "wide")[11]), (60, r("SEEN.POLICY", wide)))
        # A name that comes again changes nothing.
        same(r("SEEN.MERGE", "once", "plain", "wide", "missing"), "OK")
        same(r("SEEN.MERGE", "often", *(["plain", "wide", "missing"] * 50)), "OK")
        same(r("DEBUG", "DIGEST-VALUE", "often"), r("DEBUG", "DIGEST-VALUE", "once"))
        r("SEEN.MARK", "a", "x")
        same(r("SEEN.MERGE", "b", "a"), "OK")
        same(r("SEEN.INFO", "b")[11], "default", "both follow it")
        # The same with envelopes.
        envelope = r("SEEN.EXPORT", "wide")
        r("SEEN.MARK", "other", *ids(40, 60))
        same(r("SEEN.IMPORT", "other", envelope), "OK")
        same(kept(r, "other"), 100)
        true(r("PTTL", "other") > 29 * DAY, "the longer ttl")
        same(r("SEEN.IMPORT", "other", envelope, "REPLACE"), "OK")
        same((kept(r, "other", 60), r("SEEN.INFO", "other")[11]), (60, r("SEEN.POLICY", wide)))
        refused(r, "SEEN.IMPORT", "other", envelope[:20] + b"\x02" + envelope[21:])
        # Policies that do not go together are an error, and nothing has changed.
        r("SEEN.MARK", "fine", "POLICY", "fpp=1e-9,items=10,generations=5", "x")
        r("SEEN.MARK", "large", "POLICY", "fpp=0.1,items=1000000,generations=60", "y")
        before = r("DEBUG", "DIGEST-VALUE", "fine")
        refused(r, "SEEN.MERGE", "fine", "large", says="items x generations / fpp")
        refused(r, "SEEN.IMPORT", "fine", r("SEEN.EXPORT", "large"), says="do not go together")
        same(r("DEBUG", "DIGEST-VALUE", "fine"), before)


def late_marks(module):
    """A key without an expiry gets that of its newest mark, whatever comes late."""
    with Server(module) as server:
        r = server.client()
        for mark in (("SEEN.MARK", "k", "AT", "1000", "b"),
                     ("SEEN.MARKP", "k", "AT", "1000", "1", "b"),
                     ("SEEN.TAKE", "k", "COUNT", "1", "AT", "1000", "b"),
                     ("SEEN.TAKEP", "k", "COUNT", "1", "AT", "1000", "1", "b")):
            r("FLUSHALL")
            r("SEEN.MARK", "k", "a")
            r("PERSIST", "k")
            r(*mark)
            same(r("SEEN.CHECK", "k", "a", "b"), [1, 1], mark)
            true(4.9 * DAY < r("PTTL", "k") < 5.4 * DAY, mark)
        r("RESTORE", "k", "0", r("DUMP", "k"), "REPLACE")
        same(r("PTTL", "k"), -1)
        r("SEEN.MARK", "k", "AT", "1000", "c")
        same(r("SEEN.CHECK", "k", "a", "c"), [1, 1])
        true(4.9 * DAY < r("PTTL", "k") < 5.4 * DAY, "restored")
        r("SEEN.MARK", "new", "AT", "1000", "c")
        same(r("EXISTS", "new"), 0, "all that it holds is too old")


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
        # An empty list is a mistake, not the whole user.
        r("SEEN.MARK", "u", "a")
        for command in (("MARK",), ("FRESH",), ("TAKE", "COUNT", "1"), ("CHECK",), ("FORGET",),
                        ("FORGET", "AT", "5"), ("INFO",), ("EXPORT",)):
            refused(r, "SEEN." + command[0], "u", *command[1:], "ITEMS", says="behind ITEMS")
        same(r("SEEN.CHECK", "u", "a"), [1])
        # Policies: the reason.
        for bad, why in (("generations=65", "generations 65: expected 1 to 64"),
                         ("fpp=0.9", "fpp 0.9: expected 1e-9 to 0.5"), ("items=2000000", "items 2000000: expected 1 to 2^20"),
                         ("items=1,ttl=1000", "items=1000,generations=5"),
                         ("items=1\0", "items=1000"), ("items=" + "9" * 200, "127 letters")):
            refused(r, "SEEN.MARK", "u", "POLICY", bad, "a", says=why)
            if "\0" not in bad:
                refused(r, "SEEN.POLICY", "name", bad, says=why)


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


run([marks_and_questions, packed_forms, time_and_policies, own_policies, unions, late_marks,
     whole_records, errors, secrets])
