"""Lists of `count::base64` filters (redis+list://), as services keep them: beside a
writer that does what those do, and on the way to another store. Arguments: module - -
seen."""
import base64
import math
import os
import random
import subprocess
import tempfile
import threading

from lib import Server, run, same, true
from program import SEEN, bad, good, lines

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")
DAYS5 = 5 * 86400
M32 = (1 << 32) - 1


class Service:
    """What the services do, from the facts in docs/DIALECTS.md: the newest element is
    read, changed here and written back."""

    def __init__(self, client, n=1000, p=0.001):
        self.r, self.n = client, n
        bits = math.ceil(-n * math.log(p) / math.log(2) ** 2)
        self.k = math.ceil(math.log(2) * bits / n)
        self.m = (bits + 31) // 32 * 32

    @staticmethod
    def hash(item, seed):
        a = 2166136261 ^ seed
        for c in item:
            a = (a ^ c) * 16777619 & M32
        a = (a + (a << 13)) & M32
        a ^= a >> 7
        a = (a + (a << 3)) & M32
        a ^= a >> 17
        return (a + (a << 5)) & M32

    def bits(self, item):
        x, b = self.hash(item, 0) % self.m, self.hash(item, 1576284489)
        for _ in range(self.k):
            yield 4 * (x // 32) + 3 - x % 32 // 8, 1 << x % 8
            x = ((x + b) & M32) % self.m

    def has(self, filter, item):
        return all(filter[byte] & bit for byte, bit in self.bits(item))

    @staticmethod
    def decode(element):
        count, text = element.split(b"::")
        return int(count), bytearray(base64.b64decode(text, validate=True))

    def mark(self, user, items, meanwhile=lambda: None):
        head = self.r("LINDEX", user, 0)
        meanwhile()
        count, filter = self.decode(head) if head else (0, None)
        push = filter is None or count + len(items) >= self.n + 10
        if push:
            count, filter = 0, bytearray(self.m // 8)
        new = 0
        for item in items:
            if not self.has(filter, item):
                new += 1
                for byte, bit in self.bits(item):
                    filter[byte] |= bit
        if new == 0:
            return
        element = b"%d::%s" % (count + new, base64.b64encode(bytes(filter)))
        if push:
            self.r("LPUSH", user, element)
        else:
            self.r("LSET", user, 0, element)
        self.r("LTRIM", user, 0, 4)
        self.r("EXPIRE", user, DAYS5)

    def missing(self, user, items):
        filters = [self.decode(e)[1] for e in self.r("LRANGE", user, 0, -1)]
        return [i for i in items if not any(self.has(f, i) for f in filters)]


def at(server, rest=""):
    return "redis+list://127.0.0.1:%d%s" % (server.port, rest)


def counts(client, user):
    return [int(e.split(b"::")[0]) for e in client("LRANGE", user, 0, -1)]


def as_the_services_wrote_them(module):
    """The recorded list comes out of the same calls, byte for byte."""
    with open(os.path.join(VECTORS, "exposure-list", "vector.txt")) as f:
        facts = dict(line.rstrip("\n").split(" ", 1) for line in f if " " in line)
    with open(os.path.join(VECTORS, "keys", facts["keys"] + ".txt")) as f:
        keys = f.read().split()
    with open(os.path.join(VECTORS, "exposure-list", "filter.bin"), "rb") as f:
        recorded = f.read().split()
    with Server(module) as server:
        u, r = at(server), server.client()
        for i in range(0, len(keys), 100):
            good("mark", "--hex", u, "reader", *keys[i:i + 100])
        same(r("LRANGE", "reader", 0, -1), recorded)
        true(b"items     1,300" in good("info", u, "--user", "reader"), "info counts")
        same(good("fresh", "--hex", u, "reader", text=lines(keys)), b"")
        with open(os.path.join(VECTORS, "strangers", facts["strangers"] + ".txt")) as f:
            strangers = f.read().split()
        same(good("fresh", "--hex", u, "reader", text=lines(strangers)), lines(strangers))


def side_by_side(module):
    """Random calls: to a service on one key, to us on another. The lists are the same,
    and each reads what the other wrote."""
    with Server(module) as server:
        u, r = at(server, "?prefix=ours:"), server.client()
        service, total = Service(r), 0
        for call in range(60):
            n = random.choice([1, 2, 9, 10, 11, 50, 200])
            start = max(0, total - random.choice([0, 0, 5]))  # some come again
            items = ["post-%d" % i for i in range(start, start + n)]
            total = start + n
            service.mark("theirs:reader", [i.encode() for i in items])
            good("mark", u, "reader", *items)
            same(r("LRANGE", "ours:reader", 0, -1), r("LRANGE", "theirs:reader", 0, -1),
                 "call %d" % call)
        shown = ["post-%d" % i for i in range(max(0, total - 3000), total)]
        asked = shown + ["other-%d" % i for i in range(20000)]
        theirs = service.missing("ours:reader", [i.encode() for i in asked])
        same(good("fresh", at(server, "?prefix=theirs:"), "reader", text=lines(asked)).split(),
             theirs)
        true(not set(shown) & {i.decode() for i in theirs}, "none is lost")
        true(19800 < len(theirs) < 20000, "%d of 20000" % len(theirs))
        # A call of more than n is calls of n.
        good("mark", u, "big", *[str(i) for i in range(2500)])
        service.mark("theirs:big", [b"%d" % i for i in range(1000)])
        service.mark("theirs:big", [b"%d" % i for i in range(1000, 2000)])
        service.mark("theirs:big", [b"%d" % i for i in range(2000, 2500)])
        same(r("LRANGE", "ours:big", 0, -1), r("LRANGE", "theirs:big", 0, -1))
        # Another n and p: base64 with padding.
        odd, q = Service(r, 300, 0.02), "&n=300&p=0.02"
        for i in range(0, 900, 7):
            odd.mark("theirs:odd", [b"%d" % j for j in range(i, i + 7)])
            good("mark", u + q, "odd", *[str(j) for j in range(i, i + 7)])
        same(r("LRANGE", "ours:odd", 0, -1), r("LRANGE", "theirs:odd", 0, -1))


def the_rules(module):
    with Server(module) as server:
        u, r = at(server), server.client()
        for verb in (["mark", u, "a", "i"], ["fresh", u, "a"], ["take", u, "a", "-n", "1"],
                     ["info", u, "--user", "a"], ["forget", u, "a"]):
            bad("users of 2 or more", *verb, text=b"i\n")
        same(r("DBSIZE"), 0)
        bad("users of 2 or more", "mark", u, text=b"bob\ti\nb\ti\n")
        # A new filter when count and items reach n + 10.
        good("mark", u, "bob", *[str(i) for i in range(1000)])
        good("mark", u, "bob", *["x%d" % i for i in range(9)])
        low, = counts(r, "bob")
        true(1005 <= low <= 1009, "%d" % low)
        r("DEL", "bob")
        good("mark", u, "bob", *[str(i) for i in range(1000)])
        size, = counts(r, "bob")
        good("mark", u, "bob", *["x%d" % i for i in range(1010 - size)])
        same(counts(r, "bob"), [1010 - size, size])
        # Nothing new: neither expiry nor trim is renewed.
        for _ in range(6):
            r("RPUSH", "bob", r("LINDEX", "bob", -1))
        r("EXPIRE", "bob", 100)
        good("mark", u, "bob", "x1", "x2")
        true(r("TTL", "bob") <= 100, "the expiry stays")
        same(r("LLEN", "bob"), 8)
        same(good("take", u, "bob", "-n", "5", text=b"x1\nx2\n"), b"")
        true(r("TTL", "bob") <= 100, "the expiry stays")
        good("mark", u, "bob", "y")
        true(DAYS5 - 10 <= r("TTL", "bob") <= DAYS5, "five days")
        same(r("LLEN", "bob"), 5)
        good("mark", u + "?ttl=60", "ben", "y")
        true(r("TTL", "ben") <= 60, "a minute")
        # Taking: in order, each once, what is asked for.
        same(good("take", u, "eve", "-n", "3", text=lines("abacadae")), b"a\nb\nc\n")
        same(good("take", u, "eve", "-n", "9", text=lines("abacadae")), b"d\ne\n")
        same(counts(r, "eve"), [5])
        same(good("take", u, "-n", "1", text=b"eve\ta\neve\tz\nian\ta\nian\tb\n"),
             b"eve\tz\nian\ta\n")
        true(b"users     4" in good("info", u), "four users")
        # Forgetting.
        bad("cannot be taken out", "forget", u, "eve", "a")
        good("forget", u, "eve")
        same(r("EXISTS", "eve"), 0)
        for rest in ("?p=2", "?p=", "?p=x", "?n=0", "?ttl=0", "?n=1000000", "?bits=3"):
            bad("URL:", "mark", u + rest, "bob", "i")
        bad("policy is that of the service", "mark", u, "--policy", "items=500", "bob", "i")
        secret = os.path.join(server.directory, "secret")
        with open(secret, "w") as f:
            f.write("00112233445566778899aabbccddeeff\n")
        bad("no secret", "mark", u, "--secret-file", secret, "bob", "i")
        bad("BGSAVE", "backup", u, os.path.join(server.directory, "copy"))
        bad("expire on the server", "sweep", u)


def strange_lists(module):
    """What is no such list is said to be none, and stays as it is."""
    with Server(module) as server:
        u, r = at(server), server.client()
        good("mark", u, "good", "a")
        element = r("LINDEX", "good", 0)
        strange = [b"hello", b"", b"1::", b"::" + element[3:], element[:-4], element + b"AAAA",
                   b"x" + element, element[:-1] + b"!", b"1::" + b"!" * (len(element) - 3)]
        for i, text in enumerate(strange):
            r("DEL", "odd")
            r("RPUSH", "odd", text)
            bad("as the service has them\n", "fresh", u, "odd", text=b"a\n")
            bad("not a list of count::base64", "fresh", u, "odd", text=b"a\n")
            if i == 7:  # one strange letter: who changes another does not see it
                continue
            bad("not a list of count::base64", "mark", u, "odd", "a", "b")
            bad("not a list of count::base64", "take", u, "odd", "-n", "1", text=b"a\n")
            same(r("LRANGE", "odd", 0, -1), [text])
        r("SET", "text", "x")
        bad("WRONGTYPE", "mark", u, "text", "a")
        bad("WRONGTYPE", "fresh", u, "text", text=b"a\n")
        bad("as n=500 and p=0.001", "mark", u + "?n=500", "good", "a")
        same(r("LRANGE", "good", 0, -1), [element])


def together(threads):
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def eight_writers(module):
    """10,000 marks on one user by eight writers at once: of ours none is lost. Reading
    and writing back, as the services do it, loses what another wrote meanwhile; how much
    is told. In rounds of 2500, as five filters remember no more than 5000."""
    with Server(module) as server:
        u, r = at(server), server.client()
        lost = {"ours": 0, "theirs": 0}
        for start in range(0, 10000, 2500):
            items = [b"post-%d" % i for i in range(start, start + 2500)]
            shares = [items[w::8] for w in range(8)]
            # A line of somebody else between two keeps every mark a call of its own.
            together([threading.Thread(target=good, args=("mark", u), kwargs={
                "text": b"".join(b"ours\t%s\nwriter%d\t%s\n" % (i, w, i) for i in share)})
                for w, share in enumerate(shares)])

            def serve(share):
                service = Service(server.client())
                for item in share:
                    service.mark("theirs", [item])
            together([threading.Thread(target=serve, args=(share,)) for share in shares])
            for who in lost:
                lost[who] += len(Service(r).missing(who, items))
                if who == "ours":
                    same(good("fresh", u, who, text=b"\n".join(items)), b"")
        print("     10,000 marks by 8 writers: %d lost; reading and writing back: %d lost"
              % (lost["ours"], lost["theirs"]))
        same(lost["ours"], 0)
        one, other = Service(server.client()), Service(r)
        one.mark("both", [b"first"])
        one.mark("both", [b"a"], lambda: other.mark("both", [b"b"]))
        same(other.missing("both", [b"first", b"a", b"b"]), [b"b"], "written over")
        same(len(counts(r, "ours")), 5)
        for c in counts(r, "ours")[1:]:
            true(1000 <= c <= 1009, "%r" % counts(r, "ours"))


def eight_takers(module):
    """Who takes at once gets different items."""
    with Server(module) as server:
        candidates, taken = lines(range(2000)), []
        together([threading.Thread(target=lambda: taken.append(good(
            "take", at(server), "reader", "-n", "100", text=candidates).split()))
            for _ in range(8)])
        same([len(t) for t in taken], [100] * 8)
        same(len(set(sum(taken, []))), 800)


def a_move(module):
    """Read both, write new: from lists to a directory, and to our module."""
    with Server(module) as server, tempfile.TemporaryDirectory() as directory:
        r = server.client()
        service, old = Service(r), at(server, "?prefix=shown:")
        shown = ["post-%d" % i for i in range(2000)]
        for user in ("ann", "bob"):
            for i in range(0, 2000, 50):
                service.mark("shown:" + user, [p.encode() for p in shown[i:i + 50]])
        before = r("LRANGE", "shown:ann", 0, -1)
        candidates = lines("post-%d" % i for i in range(1900, 2200))
        for new in (os.path.join(directory, "feed"), "redis://127.0.0.1:%d" % server.port):
            first = good("take", new, "ann", "-n", "50", "--also", old, text=candidates)
            second = good("take", new, "ann", "-n", "50", "--also", old, text=candidates)
            same(len(first.split()), 50)
            same(len(second.split()), 50)
            true(not set(first.split()) & set(second.split()), "taken once")
            true(not set((first + second).decode().split()) & set(shown), "or shown before")
            rest = good("fresh", new, "ann", "--also", old, text=candidates).split()
            true(97 <= len(rest) <= 100, "%d left of 200" % len(rest))
            both = b"ann\tpost-5\nann\tnew\nbob\tpost-5\nbob\tnew\n"
            same(good("fresh", new, "--also", old, text=both), b"ann\tnew\nbob\tnew\n")
            same(r("LRANGE", "shown:ann", 0, -1), before, "the old one is only read")
            # After one ttl the lists are gone, and the new store knows the rest.
            good("mark", new, "bob", "post-7")
            same(good("fresh", new, "ann", text=first + second), b"")
            same(good("fresh", new, "bob", text=b"post-5\npost-7\n"), b"post-5\n")
        # What cannot be asked is not fresh.
        r("SET", "shown:eve", "x")
        bad("WRONGTYPE", "take", new, "eve", "-n", "1", "--also", old, text=b"a\n")
        same(good("fresh", new, "eve", text=b"a\n"), b"a\n")


def forgotten_scripts(module):
    with Server(module) as server:
        u, r = at(server), server.client()
        marking = subprocess.Popen([SEEN, "mark", u, "--ack"], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        events = ["user%d\titem%d\n" % (i % 100, i) for i in range(4000)]
        for i in range(0, 4000, 500):
            marking.stdin.write("".join(events[i:i + 500]).encode())
            marking.stdin.flush()
            r("SCRIPT", "FLUSH")
        marking.stdin.close()
        true(marking.wait() == 0, marking.stderr.read().decode())
        same(good("fresh", u, text="".join(events).encode()), b"")


run([as_the_services_wrote_them, side_by_side, the_rules, strange_lists, eight_writers,
     eight_takers, a_move, forgotten_scripts])
