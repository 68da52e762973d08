"""CF.*: cuckoo filters."""
import random

from lib import SEED, Error, Server, refused, run, same, true


def documented_commands(module):
    with Server(module) as server:
        r = server.client()
        same(r("CF.RESERVE", "cf", "1000"), "OK")
        same(r("CF.EXISTS", "cf", "k1"), 0)
        same(r("CF.ADD", "cf", "k1"), 1)
        same(r("CF.ADD", "cf", "k1"), 1)
        same(r("CF.EXISTS", "cf", "k1"), 1)
        same(r("CF.COUNT", "cf", "k1"), 2)
        same(r("CF.DEL", "cf", "k1"), 1)
        same(r("CF.COUNT", "cf", "k1"), 1)
        same(r("CF.DEL", "cf", "k1"), 1)
        same(r("CF.COUNT", "cf", "k1"), 0)
        same(r("CF.DEL", "cf", "k1"), 0)
        same(r("CF.ADDNX", "nx", "k1"), 1)
        same(r("CF.ADDNX", "nx", "k1"), 0)
        same(r("CF.COUNT", "nx", "k1"), 1)
        same(r("CF.INSERT", "f2", "ITEMS", "foo"), [1])
        same(r("CF.INSERTNX", "f2", "items", "foo"), [0])
        same(r("CF.INSERT", "f3", "CAPACITY", "10000", "ITEMS", "foo"), [1])
        same(r("CF.INSERTNX", "f3", "ITEMS", "foo", "bar", "baz"), [0, 1, 1])
        same(r("CF.INSERT", "f3", "NOCREATE", "ITEMS", "foo"), [1])
        same(r("CF.MEXISTS", "f3", "foo", "bar", "qux"), [1, 1, 0])
        same(r("CF.EXISTS", "nonexist", "blah"), 0)
        same(r("CF.MEXISTS", "nonexist", "blah"), [0])
        same(r("CF.COUNT", "nonexist", "blah"), 0)
        r("CF.RESERVE", "a", "1000", "BUCKETSIZE", "4", "MAXITERATIONS", "50", "EXPANSION", "2")
        info = r("CF.INFO", "a")
        same(info[0::2], ["Size", "Number of buckets", "Number of filters",
                          "Number of items inserted", "Number of items deleted", "Bucket size",
                          "Expansion rate", "Max iterations"])
        same(info[5::2], [1, 0, 0, 4, 2, 50])
        true(info[3] * 4 >= 1000, "buckets")
        same(r("TYPE", "a"), "seen-cf-1")


def resp3(module):
    with Server(module) as server:
        r = server.client(3)
        r("CF.RESERVE", "a", "9", "EXPANSION", "0")
        same(r("CF.ADD", "a", "3"), True)
        same(r("CF.ADD", "a", "4"), True)
        same(r("CF.ADDNX", "a", "4"), False)
        same(r("CF.ADDNX", "a", "9"), True)
        same(r("CF.INSERT", "a", "ITEMS", "4", "5"), [True, True])
        same(r("CF.INSERTNX", "a", "ITEMS", "4", "6"), [0, 1])
        same(r("CF.DEL", "a", "3"), True)
        same(r("CF.DEL", "a", "3"), False)
        same(r("CF.EXISTS", "a", "3"), False)
        same(r("CF.MEXISTS", "a", "4", "3"), [True, False])
        same(r("CF.COUNT", "a", "4"), 2)
        info = r("CF.INFO", "a")
        same((info["Number of items inserted"], info["Number of items deleted"],
              info["Expansion rate"]), (5, 1, 0))


def errors(module):
    with Server(module) as server:
        r = server.client()
        r("SET", "string", "x")
        r("CF.RESERVE", "cf", "1000")
        refused(r, "CF.RESERVE", "cf", "1000", says="item exists")
        for args in ((), ("x",), ("x", "str"), ("x", "1"), ("x", "-5"), ("x", "10", "EXPANSION"),
                     ("x", "10", "EXPANSION", "-1"), ("x", "10", "EXPANSION", "32769"),
                     ("x", "10", "BUCKETSIZE", "0"), ("x", "10", "BUCKETSIZE", "256"),
                     ("x", "10", "BUCKETSIZE", "str"), ("x", "10", "MAXITERATIONS", "0"),
                     ("x", "10", "MAXITERATIONS", "65536"), ("x", "10", "ERROR", "1"),
                     ("x", "10", "ERROR", "nan"), ("x", "10", "SURPRISE", "1"),
                     ("x", "10", "SECRET", "abc"), ("x", "1000000000000000"),
                     ("x", "10", "ERROR", "1e-300"), ("x", "10000000000")):
            refused(r, "CF.RESERVE", *args)
        for command in ("ADD", "ADDNX", "EXISTS", "MEXISTS", "DEL", "COUNT", "INSERT",
                        "INSERTNX", "SCANDUMP", "LOADCHUNK"):
            refused(r, "CF." + command, "cf", says="wrong number")
        for command in (("ADD", "a"), ("ADDNX", "a"), ("INSERT", "ITEMS", "a"), ("EXISTS", "a"),
                        ("MEXISTS", "a"), ("DEL", "a"), ("COUNT", "a"), ("INFO",), ("COMPACT",),
                        ("SCANDUMP", "0"), ("LOADCHUNK", "1", "a"), ("RESERVE", "100")):
            refused(r, "CF." + command[0], "string", *command[1:], says="WRONGTYPE")
        r("BF.ADD", "bf", "a")
        refused(r, "CF.ADD", "bf", "a", says="WRONGTYPE")
        refused(r, "BF.ADD", "cf", "a", says="WRONGTYPE")
        refused(r, "CF.INSERT", "x", "CAPACITY", "3", "ITEMS", "a", says="Capacity")
        refused(r, "CF.INSERT", "x", "NOCREATE", "ITEMS", "a", says="not found")
        refused(r, "CF.INSERT", "x", "DONTEXIST", "ITEMS", "a")
        refused(r, "CF.INSERT", "x", "ITEMS")
        refused(r, "CF.INSERT", "cf", "element", "other")
        refused(r, "CF.DEL", "x", "a", says="Not found")
        refused(r, "CF.COMPACT", "x")
        refused(r, "CF.INFO", "x", says="not found")
        same(r("EXISTS", "x"), 0)


def growth_and_fullness(module):
    rng = random.Random(SEED)
    with Server(module) as server:
        r = server.client()
        for expansion, rate in (("1", 0.01), ("2", 0.9), ("4", 0.9)):
            # At 0.9 items are taken for one another all the time: what is
            # there must stay, whatever else is taken out.
            key = "grows" + expansion
            r("CF.RESERVE", key, "100", "EXPANSION", expansion, "ERROR", str(rate))
            model = {}
            for _ in range(4000):  # every answer against a model with counts
                item = "i%d" % rng.randrange(900)
                if rng.random() < 0.7:
                    if model.get(item, 0) < 3:
                        same(r("CF.ADD", key, item), 1)
                        model[item] = model.get(item, 0) + 1
                elif model.get(item):
                    same(r("CF.DEL", key, item), 1)
                    model[item] -= 1
            there = [i for i in model if model[i]]
            same(sum(r("CF.MEXISTS", key, *there)), len(there), "no false negative")
            true(all(r("CF.COUNT", key, i) >= model[i] for i in there[:300]), "counts")
            wrong = sum(r("CF.MEXISTS", key, *["out%d" % i for i in range(10000)]))
            true(wrong < 10000 * rate, "%d of 10000 wrong at %g" % (wrong, rate))
            info = r("CF.INFO", key)
            true(info[5] > 1, "it has grown")
            same(info[7], sum(model.values()))
            for item, n in model.items():
                for _ in range(n):
                    same(r("CF.DEL", key, item), 1)
            same(r("CF.INFO", key)[7], 0)
            same(r("CF.COMPACT", key), "OK")
            same(r("CF.INFO", key)[5], 1, "empty filters are given back")
        r("CF.RESERVE", "fixed", "4", "EXPANSION", "0")
        replies = r.many([("CF.ADD", "fixed", str(i)) for i in range(300)])
        same(replies[:4], [1] * 4)
        errors_ = [x for x in replies if isinstance(x, Error)]
        true(len(errors_) > 200 and all("full" in str(x) for x in errors_), errors_[:1])
        there = [str(i) for i in range(300) if replies[i] == 1]
        same(r("CF.MEXISTS", "fixed", *there), [1] * len(there))
        same(r("CF.INFO", "fixed")[5:8:2], [1, len(there)])
        more = r("CF.INSERT", "fixed", "ITEMS", *[str(i) for i in range(1000, 1100)])
        true(set(more) <= {1, -1} and more.count(-1) > 90, more)
        # Copies of an item are counted, and do not make the filter grow.
        r("CF.RESERVE", "same", "1000", "EXPANSION", "1")
        size = r("MEMORY", "USAGE", "same")
        same(r.many([("CF.ADD", "same", "x")] * 300), [1] * 300)
        same(r("CF.COUNT", "same", "x"), 300)
        same(r.many([("CF.DEL", "same", "x")] * 45), [1] * 45)
        same(r("CF.COUNT", "same", "x"), 255)
        same(r("MEMORY", "USAGE", "same"), size)
        same(r("CF.INFO", "same")[5:8:2], [1, 255])
        # The limit of a key.
        r("CONFIG", "SET", "seen.memory-limit", "100000")
        r("CF.RESERVE", "limited", "10000", "EXPANSION", "2")
        error = None
        for i in range(0, 200000, 1000):
            reply = r("CF.INSERT", "limited", "ITEMS", *["x%d" % j for j in range(i, i + 1000)])
            if isinstance(reply[-1], Error):
                error = str(reply[-1])
                break
        true(error and "limit" in error, "the limit is told: %r" % error)
        same(r("CF.EXISTS", "limited", "x1"), 1)


def chunks(module):
    with Server(module) as server:
        r = server.client()
        r("CF.RESERVE", "cf", "100", "EXPANSION", "2")
        for i in range(1000):
            r("CF.ADD", "cf", "i%d" % i)
        iterator, chunk = r("CF.SCANDUMP", "cf", "0")
        same(r("CF.SCANDUMP", "cf", str(iterator)), [0, b""])
        half = len(chunk) // 2
        same(r("CF.LOADCHUNK", "copy", str(half + 1), chunk[:half]), "OK")
        for command in (("EXISTS", "copy", "a"), ("ADD", "copy", "a"), ("DEL", "copy", "a"),
                        ("INFO", "copy"), ("COUNT", "copy", "a"), ("COMPACT", "copy")):
            refused(r, "CF." + command[0], *command[1:], says="not complete")
        same(r("CF.LOADCHUNK", "copy", str(len(chunk) + 1), chunk[half:]), "OK")
        same(r("DEBUG", "DIGEST-VALUE", "copy"), r("DEBUG", "DIGEST-VALUE", "cf"))
        refused(r, "BF.LOADCHUNK", "bf", str(iterator), chunk, says="bad data")
        iterator, bf = r("BF.INSERT", "b", "ITEMS", "a") and r("BF.SCANDUMP", "b", "0")
        refused(r, "CF.LOADCHUNK", "new", str(iterator), bf, says="bad data")


# ---- Items that collide under MurmurHash64A, whatever the seed ---------------

M, MASK = 0xC6A4A7935BD1E995, (1 << 64) - 1
INVERSE = pow(M, -1, 1 << 64)


def murmur64a(data, seed):
    h = (seed ^ len(data) * M) & MASK
    for i in range(0, len(data) // 8 * 8, 8):
        k = int.from_bytes(data[i:i + 8], "little") * M & MASK
        k = (k ^ k >> 47) * M & MASK
        h = (h ^ k) * M & MASK
    h = (h ^ h >> 47) * M & MASK
    return h ^ h >> 47


def flipped(block):
    """The block whose mixed form differs in the top bit only."""
    k = int.from_bytes(block, "little") * M & MASK
    k = ((k ^ k >> 47) * M & MASK) ^ 1 << 63
    k = k * INVERSE & MASK
    return ((k ^ k >> 47) * INVERSE & MASK).to_bytes(8, "little")


def partner(item, at=0):
    return item[:at] + flipped(item[at:at + 8]) + flipped(item[at + 8:at + 16]) + item[at + 16:]


def attack(module):
    rng = random.Random(SEED)
    items = [rng.randbytes(16) for _ in range(1000)]
    twins = [partner(i) for i in items]
    for i, t in zip(items, twins):
        true(i != t and all(murmur64a(i, s) == murmur64a(t, s) for s in (0, 1, M, 2**64 - 1)),
             "they collide")
    with Server(module) as server:
        r = server.client()
        r("BF.RESERVE", "bf", "0.000001", "10000")
        r("BF.MADD", "bf", *items)
        same(sum(r("BF.MEXISTS", "bf", *twins)), 0, "twins of what was added are absent")
        r("CF.RESERVE", "cf", "10000", "ERROR", "0.000001")
        r("CF.INSERT", "cf", "ITEMS", *items)
        same(sum(r("CF.DEL", "cf", t) for t in twins), 0, "and take nothing out")
        same(sum(r("CF.MEXISTS", "cf", *items)), 1000)
        # 128 items that all collide: seven pairs of blocks, each flipped or not.
        many = [rng.randbytes(112)]
        for pair in range(7):
            many += [partner(i, 16 * pair) for i in many]
        same(len({murmur64a(i, 7) for i in many}), 1)
        r("CF.RESERVE", "grow", "1000")
        size = r("MEMORY", "USAGE", "grow")
        for item in many[:125]:
            same(r("CF.ADD", "grow", item), 1)
        same(r("MEMORY", "USAGE", "grow"), size, "125 colliding adds grow nothing")
        same(sum(r("CF.MEXISTS", "grow", *many[:125])), 125)


run([documented_commands, resp3, errors, growth_and_fullness, chunks, attack])
