"""BF.*: replies, errors, and what goes beyond RedisBloom."""
import time

from lib import Error, Server, refused, run, same, true, wait_for


def documented_commands(module):
    with Server(module) as server:
        r = server.client()
        same(r("BF.RESERVE", "test", "0.05", "1000"), "OK")
        same(r("BF.MADD", "test", "foo", "bar", "baz"), [1, 1, 1])
        same(r("BF.MADD", "test", "foo", "new", "bar"), [0, 1, 0])
        same(r("BF.MADD", "test", "twice", "twice"), [1, 0])
        same(r("BF.EXISTS", "test", "foo"), 1)
        same(r("BF.EXISTS", "test", "nonexist"), 0)
        same(r("BF.MEXISTS", "test", "nonexist", "foo"), [0, 1])
        same(r("BF.ADD", "made", "foo"), 1)
        same(r("BF.ADD", "made", "foo"), 0)
        same(r("BF.CARD", "made"), 1)
        same(r("BF.CARD", "missing"), 0)
        same(r("BF.EXISTS", "missing", "foo"), 0)
        same(r("BF.MEXISTS", "missing", "a", "b", "c"), [0, 0, 0])
        same(r("EXISTS", "missing"), 0, "questions make nothing")
        same(r("BF.INSERT", "ins", "ERROR", "0.001", "CAPACITY", "50000",
               "EXPANSION", "2", "ITEMS", "foo"), [1])
        same(r("BF.INSERT", "ins", "ERROR", "0.1", "ITEMS", "foo", "bar", "baz"),
             [0, 1, 1])
        same(r("BF.INSERT", "ins", "NOCREATE", "ITEMS", "foo"), [0])
        same(r("BF.INFO", "ins", "CAPACITY"), [50000])
        same(r("BF.INFO", "ins", "items"), [3])
        same(r("BF.INFO", "ins", "FILTERS"), [1])
        same(r("BF.INFO", "ins", "EXPANSION"), [2])
        info = r("BF.INFO", "ins")
        same(info[0::2], ["Capacity", "Size", "Number of filters",
                          "Number of items inserted", "Expansion rate"])
        same([info[1], info[5], info[7], info[9]], [50000, 1, 3, 2])
        same(r("BF.INFO", "ins", "SIZE"), [info[3]])
        same(r("MEMORY", "USAGE", "ins") >= info[3], True)
        r("BF.ADD", "smallest", "x")
        true(r("MEMORY", "USAGE", "smallest") <= 1280, r("MEMORY", "USAGE", "smallest"))
        same(r("TYPE", "ins"), "seen-bf-1")
        # Binary items, the empty one, and more than a piece of them.
        same(r("BF.MADD", "test", b"", b"\x00", b"\x00\x00", b"a\r\n"), [1, 1, 1, 1])
        same(r("BF.MEXISTS", "test", b"", b"\x00", b"\x00\x00", b"a\r\n"), [1] * 4)
        many = ["item%d" % i for i in range(3000)]
        same(sum(r("BF.MADD", "many", *many)) > 2950, True)
        same(r("BF.MEXISTS", "many", *many), [1] * 3000)
        same(r("BF.MADD", "many", *many), [0] * 3000)


def resp3(module):
    with Server(module) as server:
        r = server.client(3)
        same(r("BF.ADD", "test", "item"), True)
        same(r("BF.ADD", "test", "item"), False)
        same(r("BF.CARD", "test"), 1)
        same(r("BF.EXISTS", "test", "item"), True)
        same(r("BF.EXISTS", "none", "item"), False)
        same(r("BF.INSERT", "test", "ITEMS", "item2", "item3", "item2"),
             [True, True, False])
        same(r("BF.MADD", "test", "item4", "item5", "item2"), [True, True, False])
        same(r("BF.MEXISTS", "test", "item4", "item5", "item6"), [True, True, False])
        info = r("BF.INFO", "test")
        same(list(info), ["Capacity", "Size", "Number of filters",
                          "Number of items inserted", "Expansion rate"])
        same(info["Number of items inserted"], 5)
        same(info["Expansion rate"], 2)
        r("BF.RESERVE", "fixed", "0.01", "10", "NONSCALING")
        same(r("BF.INFO", "fixed")["Expansion rate"], None)
        same(r("BF.INFO", "fixed", "ERROR"), [0.01])


def errors(module):
    with Server(module) as server:
        r = server.client()
        r("SET", "string", "x")
        r("BF.RESERVE", "test", "0.01", "100")
        for args in ((), ("foo",), ("foo", "0.001"), ("foo", "0.001", "blah"),
                     ("foo", "0", "0"), ("foo", "0", "100"), ("foo", "blah", "1000"),
                     ("foo", "7.7", "1000"), ("foo", "1", "1000"), ("foo", "nan", "10"),
                     ("foo", "inf", "10"), ("foo", "-0", "10"), ("foo", "0.1", "-1"),
                     ("foo", "0.01", "18446744073709551616"),
                     ("foo", "0.01", "100", "EXPANSION"),
                     ("foo", "0.01", "100", "EXPANSION", "0"),
                     ("foo", "0.01", "100", "EXPANSION", "many"),
                     ("foo", "0.01", "100", "SURPRISE", "1"),
                     ("foo", "0.01", "100", "WINDOW", "0"),
                     ("foo", "0.01", "100", "WINDOW", "-5"),
                     ("foo", "0.01", "100", "GENERATIONS", "4"),
                     ("foo", "0.01", "100", "WINDOW", "5", "GENERATIONS", "64"),
                     ("foo", "0.01", "100", "WINDOW", "5", "NONSCALING"),
                     ("foo", "0.01", "100", "TTL", "0"),
                     ("foo", "0.01", "100", "SECRET", "abc"),
                     ("foo", "LIKE", "nobody"), ("foo", "LIKE", "string"),
                     ("foo", "0.02", "100", "LIKE", "test"),
                     ("foo", "LIKE", "test", "EXPANSION", "2")):
            refused(r, "BF.RESERVE", *args)
            same(r("EXISTS", "foo"), 0, "an error makes nothing")
        refused(r, "BF.RESERVE", "test", "0.01", "100", says="item exists")
        refused(r, "BF.RESERVE", "foo", "0.01", "10", "NONSCALING", "EXPANSION", "2",
                says="Nonscaling filters cannot expand")
        refused(r, "BF.RESERVE", "foo", "0.01", "1000000000000000")
        refused(r, "BF.RESERVE", "foo", "1e-300", "1000")
        refused(r, "BF.RESERVE", "foo", "0.01", "1000000000", says="limit")
        for args in ((), ("test",)):
            for command in ("BF.ADD", "BF.MADD", "BF.EXISTS", "BF.MEXISTS", "BF.INSERT",
                            "BF.SCANDUMP", "BF.LOADCHUNK", "BF.ALLOW", "BF.MERGE"):
                refused(r, command, *args, says="wrong number of arguments")
        for command in ("BF.EXISTS", "BF.ADD"):
            refused(r, command, "test", "1", "2")
        for command in (("BF.ADD", "string", "a"), ("BF.MADD", "string", "a"),
                        ("BF.EXISTS", "string", "a"), ("BF.MEXISTS", "string", "a"),
                        ("BF.INSERT", "string", "ITEMS", "a"), ("BF.INFO", "string"),
                        ("BF.CARD", "string"), ("BF.SCANDUMP", "string", "0"),
                        ("BF.LOADCHUNK", "string", "1", "a"), ("BF.CLEAR", "string"),
                        ("BF.ALLOW", "string", "a"), ("BF.MERGE", "string", "test"),
                        ("BF.MERGE", "test", "string"),
                        ("BF.RESERVE", "string", "0.1", "10")):
            refused(r, *command, says="WRONGTYPE")
        refused(r, "BF.INSERT", "no", "NOCREATE", "ITEMS", "a", says="not found")
        refused(r, "BF.INSERT", "no", "NOCREATE", "CAPACITY", "10", "ITEMS", "a")
        refused(r, "BF.INSERT", "no", "NOCREATE", "ITEMS")
        refused(r, "BF.INSERT", "no", "CAPACITY", "0.3", "ITEMS", "a")
        refused(r, "BF.INSERT", "no", "ERROR", "big", "ITEMS", "a")
        refused(r, "BF.INSERT", "no", "AT", "never", "ITEMS", "a")
        refused(r, "BF.INSERT", "no", "LIKE", "test", "ITEMS", "a")
        refused(r, "BF.INFO", "no", says="not found")
        refused(r, "BF.INFO", "test", "SURPRISE")
        refused(r, "BF.INFO", "test", "CAPACITY", "SIZE")
        refused(r, "BF.CLEAR", "no", says="not found")
        refused(r, "BF.SCANDUMP", "test", "str")
        refused(r, "BF.SCANDUMP", "no", "0", says="not found")
        refused(r, "BF.LOADCHUNK", "no", "str", "data")
        same(r("EXISTS", "no"), 0)


def growth_and_fullness(module):
    with Server(module) as server:
        r = server.client()
        r("BF.RESERVE", "fixed", "0.01", "3", "NONSCALING")
        for i in range(3):
            same(r("BF.ADD", "fixed", "item%d" % i), 1)
        same(r("BF.ADD", "fixed", "item0"), 0, "what is there may come again")
        refused(r, "BF.ADD", "fixed", "extra", says="non scaling filter is full")
        reply = r("BF.MADD", "fixed", "item1", "extra", "item2")
        same(reply[0], 0)
        true(len(reply) == 2 and isinstance(reply[1], Error), "the rest is not done")
        same(r("BF.INFO", "fixed", "ITEMS"), [3])
        # A filter that grows keeps its rate.
        r("BF.RESERVE", "grows", "0.01", "100")
        items = ["in%d" % i for i in range(20000)]
        for i in range(0, 20000, 1000):
            r("BF.MADD", "grows", *items[i:i + 1000])
        same(sum(r("BF.MEXISTS", "grows", *items)), 20000)
        wrong = sum(r("BF.MEXISTS", "grows", *["out%d" % i for i in range(20000)]))
        true(wrong <= 280, "%d of 20000 wrong at 1 %%" % wrong)
        true(r("BF.INFO", "grows", "FILTERS")[0] > 1, "it has grown")
        true(r("BF.INFO", "grows", "CAPACITY")[0] >= r("BF.CARD", "grows"), "capacity")
        # The limit of a key: an error, and everything is as it was.
        r("CONFIG", "SET", "seen.memory-limit", "1048576")
        r("BF.RESERVE", "limited", "0.001", "1000")
        status = None
        for i in range(0, 2000000, 1000):
            reply = r("BF.MADD", "limited", *["x%d" % j for j in range(i, i + 1000)])
            if isinstance(reply[-1], Error):
                status = str(reply[-1])
                break
        true(status and "limit" in status, "the limit is told: %r" % status)
        true(r("MEMORY", "USAGE", "limited") <= 1048576 + 8192, "and kept")
        same(r("BF.EXISTS", "limited", "x1"), 1)
        r("CONFIG", "SET", "seen.memory-limit", "512mb")
        same(r("BF.ADD", "limited", "one more item"), 1, "room again")


def windows(module):
    with Server(module) as server:
        r = server.client()
        same(r("BF.RESERVE", "w", "0.001", "1000", "WINDOW", "3600", "GENERATIONS", "5"), "OK")
        same(r("BF.ADD", "w", "a"), 1)
        same(r("BF.EXISTS", "w", "a"), 1)
        same(r("BF.ADD", "w", "a"), 0)
        same(r("BF.INFO", "w", "GENERATIONS"), [5])
        same(r("BF.INFO", "w", "EXPANSION"), [None])
        # By the server's clock: old items leave, and are new again.
        r("BF.RESERVE", "short", "0.001", "1000", "WINDOW", "0.2", "GENERATIONS", "5")
        same(r("BF.ADD", "short", "a"), 1)
        wait_for(lambda: r("BF.EXISTS", "short", "a") == 0, "an old item to leave")
        same(r("BF.ADD", "short", "a"), 1)
        # Explicit times: the effect is that of the time given.
        r("BF.RESERVE", "at", "0.001", "1000", "WINDOW", "3600")
        now = int(time.time() * 1000)
        same(r("BF.INSERT", "at", "AT", str(now - 7200000), "ITEMS", "old"), [1])
        same(r("BF.EXISTS", "at", "old"), 0, "older than the window")
        same(r("BF.INSERT", "at", "AT", str(now), "ITEMS", "new"), [1])
        same(r("BF.EXISTS", "at", "new"), 1)
        refused(r, "BF.MERGE", "w", "at")


def ttl_and_like(module):
    with Server(module) as server:
        r = server.client()
        r("BF.RESERVE", "t", "0.01", "100", "TTL", "100")
        true(0 < r("TTL", "t") <= 100, "TTL of BF.RESERVE")
        r("BF.INSERT", "u", "TTL", "1000.5", "ITEMS", "a")
        same(r("BF.EXISTS", "u", "a"), 1)
        true(900000 < r("PTTL", "u") <= 1000500, "TTL of BF.INSERT")
        r("BF.INSERT", "brief", "TTL", "0.1", "ITEMS", "a")
        wait_for(lambda: r("EXISTS", "brief") == 0, "the end of a TTL")
        r("BF.INSERT", "t", "TTL", "5000", "ITEMS", "a")
        true(0 < r("TTL", "t") <= 100, "TTL is for filters that are made")
        for options in (("EXPANSION", "4"), ("NONSCALING",), ("WINDOW", "60")):
            r("DEL", "a", "b")
            r("BF.RESERVE", "a", "0.001", "500", *options)
            same(r("BF.RESERVE", "b", "LIKE", "a", "TTL", "50"), "OK")
            same(r("PERSIST", "b"), 1)
            same(r("DEBUG", "DIGEST-VALUE", "a"), r("DEBUG", "DIGEST-VALUE", "b"))
        r("DEL", "a", "b")
        r("BF.RESERVE", "a", "0.001", "500")
        same(r("BF.RESERVE", "b", "0.001", "500", "LIKE", "a"), "OK")


def merging(module):
    with Server(module) as server:
        r = server.client()
        for kind in ((), ("NONSCALING",)):
            r("FLUSHALL")
            r("BF.RESERVE", "a", "0.001", "1000", *kind)
            r("BF.RESERVE", "b", "LIKE", "a")
            r("BF.RESERVE", "c", "LIKE", "a")
            r("BF.MADD", "a", "1", "2")
            r("BF.MADD", "b", "3")
            r("BF.MADD", "c", "4")
            same(r("BF.MERGE", "all", "a", "b", "c"), "OK")
            same(r("BF.MEXISTS", "all", "1", "2", "3", "4", "5"), [1, 1, 1, 1, 0])
            same(r("BF.CARD", "all"), 4)
            same(r("BF.MERGE", "often", *(["a", "b", "c"] * 50), "b"), "OK")
            same(r("DEBUG", "DIGEST-VALUE", "often"), r("DEBUG", "DIGEST-VALUE", "all"))
            refused(r, "BF.MERGE", "often", "a", "a", "nobody", "a", says="not found: nobody")
            same(r("BF.MERGE", "a", "b"), "OK")
            same(r("BF.MEXISTS", "a", "1", "2", "3", "4"), [1, 1, 1, 0])
            r("BF.RESERVE", "x", "0.001", "1000", *kind)
            before = r("DEBUG", "DIGEST-VALUE", "a")
            refused(r, "BF.MERGE", "a", "c", "x", says="LIKE")
            refused(r, "BF.MERGE", "a", "c", "nobody", says="not found")
            same(r("DEBUG", "DIGEST-VALUE", "a"), before, "all of them or none")
            refused(r, "BF.MERGE", "new", "x", "a", says="LIKE")
            same(r("EXISTS", "new"), 0)


def clearing_and_allowing(module):
    with Server(module) as server:
        r = server.client()
        r("BF.MADD", "k", *["i%d" % i for i in range(5000)])
        same(r("BF.CLEAR", "k"), "OK")
        same(r("BF.CARD", "k"), 0)
        same(sum(r("BF.MEXISTS", "k", *["i%d" % i for i in range(5000)])), 0)
        r("BF.MADD", "k", "bad", "ours")
        same(r("BF.ALLOW", "k", "ours"), 1)
        same(r("BF.ALLOW", "k", "ours"), 0)
        same(r("BF.MEXISTS", "k", "bad", "ours"), [1, 0])
        same(r("BF.EXISTS", "k", "ours"), 0)
        same(r("BF.INFO", "k", "ALLOWED"), [1])
        same(r("BF.ALLOW", "k", "ALWAYS", "ITEMS", "front"), 1)
        same(r("BF.MEXISTS", "k", "bad", "ours", "front", "other"), [1, 1, 1, 0])
        same(r("BF.ADD", "k", "front"), 0, "there already, says the list")
        same(r("BF.ALLOW", "k", "REMOVE", "ITEMS", "front", "ours", "x"), 2)
        same(r("BF.MEXISTS", "k", "front", "ours"), [1, 1], "what was added stays")
        same(r("BF.ALLOW", "k", "NEVER"), 1, "an item may have this name")
        refused(r, "BF.ALLOW", "k", "ITEMS")
        refused(r, "BF.ALLOW", "nobody", "a", says="not found")


def chunks(module):
    with Server(module) as server:
        r = server.client()
        r("BF.RESERVE", "big", "0.001", "20000000")  # more than two chunks
        items = ["i%d" % i for i in range(2000)]
        r("BF.MADD", "big", *items)
        r("BF.ALLOW", "big", "i1")
        parts, iterator = [], 0
        while True:
            iterator, chunk = r("BF.SCANDUMP", "big", str(iterator))
            if iterator == 0:
                break
            parts.append((str(iterator), chunk))
        true(len(parts) > 2, "several chunks")
        refused(r, "BF.SCANDUMP", "big", "1000000000", says="iterator")
        for i, part in enumerate(parts):
            same(r("BF.LOADCHUNK", "copy", *part), "OK")
            if i + 1 < len(parts):
                for command in (("BF.EXISTS", "copy", "i1"), ("BF.ADD", "copy", "x"),
                                ("BF.MEXISTS", "copy", "i1"), ("BF.INFO", "copy"),
                                ("BF.CARD", "copy"), ("BF.SCANDUMP", "copy", "0"),
                                ("BF.MERGE", "copy", "big"), ("BF.MERGE", "big", "copy"),
                                ("BF.CLEAR", "copy"), ("BF.ALLOW", "copy", "x"),
                                ("BF.RESERVE", "z", "LIKE", "copy")):
                    refused(r, *command, says="not complete")
                refused(r, "BF.RESERVE", "copy", "0.1", "10", says="item exists")
                refused(r, "BF.LOADCHUNK", "copy", *parts[i], says="bad data") if i else None
        same(r("DEBUG", "DIGEST-VALUE", "copy"), r("DEBUG", "DIGEST-VALUE", "big"))
        same(r("BF.MEXISTS", "copy", "i0", "i1", "i2"), [1, 0, 1])
        # The first chunk starts anew, also over a filter that is there.
        r("EXPIRE", "copy", "1000")
        r("BF.LOADCHUNK", "copy", *parts[0])
        refused(r, "BF.EXISTS", "copy", "i1", says="not complete")
        for part in parts[1:]:
            r("BF.LOADCHUNK", "copy", *part)
        same(r("BF.EXISTS", "copy", "i7"), 1)
        true(r("TTL", "copy") > 900, "its expiry is as it was")
        # A filter that changed meanwhile is found out at the end.
        iterator, chunk = r("BF.SCANDUMP", "big", "0")
        r("BF.LOADCHUNK", "torn", str(iterator), chunk)
        r("BF.MADD", "big", *["late%d" % i for i in range(1000)])
        with_error = None
        while iterator:
            iterator, chunk = r("BF.SCANDUMP", "big", str(iterator))
            if iterator:
                try:
                    r("BF.LOADCHUNK", "torn", str(iterator), chunk)
                except Error as error:
                    with_error = str(error)
        true(with_error and "bad data" in with_error, "a torn dump is refused")
        refused(r, "BF.EXISTS", "torn", "i1", says="not complete")


def loading_options(module):
    with Server(module, ["error=0.1", "capacity=5000", "expansion=4", "keyed=no",
                         "memory-limit=1000000"]) as server:
        r = server.client()
        r("BF.ADD", "k", "a")
        same(r("BF.INFO", "k", "CAPACITY"), [5000])
        same(r("BF.INFO", "k", "EXPANSION"), [4])
        same(r("BF.INFO", "k", "KEYED"), [0])
        same(r("CONFIG", "GET", "seen.capacity"), [b"seen.capacity", b"5000"])
        same(r("CONFIG", "SET", "seen.capacity", "7000"), "OK")
        refused(r, "CONFIG", "SET", "seen.capacity", "0")
        refused(r, "CONFIG", "SET", "seen.error", "2")
        same(r("CONFIG", "SET", "seen.error", "0.25"), "OK")
        same(r("CONFIG", "GET", "seen.error"), [b"seen.error", b"0.25"])
        refused(r, "CONFIG", "SET", "seen.keyed", "perhaps", says="yes or no")
        same(r("CONFIG", "SET", "seen.keyed", "yes"), "OK")
        r("BF.ADD", "keyed", "a")
        same(r("BF.INFO", "keyed", "KEYED"), [1])
        r("CONFIG", "SET", "seen.keyed", "no")
        same(r("CONFIG", "SET", "seen.policy", "items=7,ttl=1h"), "OK")
        true(b"items=7," in r("CONFIG", "GET", "seen.policy")[1], "the policy")
        true("items=7," in r("SEEN.POLICY", "default"), "the same")
        refused(r, "CONFIG", "SET", "seen.policy", "items=none")
        for name, value in (("policy", b"items=8\0,ttl=1h"), ("error", b"0.5\0"), ("keyed", b"no\0")):
            refused(r, "CONFIG", "SET", "seen." + name, value, says="without NUL bytes")
        r("BF.ADD", "l", "a")
        same(r("BF.INFO", "l", "CAPACITY"), [7000])
        r("BF.RESERVE", "j", "0.25", "7000", "EXPANSION", "4", "SECRET", "none")
        r("BF.ADD", "j", "a")
        same(r("DEBUG", "DIGEST-VALUE", "j"), r("DEBUG", "DIGEST-VALUE", "l"),
             "without a secret filters are alike")
        info = r("INFO", "seen").decode()
        true("seen_keyed:no" in info and "seen_bf_keys:4" in info, info)
    with Server(module, ["commands=seen"]) as server:
        refused(server.client(), "BF.ADD", "k", "a", says="unknown command")
    for wrong in ("commands=most", "surprise=1", "capacity=0", "capacity=x", "error=1",
                  "keyed", "memory-limit=99999999999999999999"):
        server = Server(module, [wrong])
        try:
            server.start()
            raise AssertionError("loaded with " + wrong)
        except RuntimeError as error:
            true("seen: argument %s" % wrong in str(error), str(error))
        finally:
            server.__exit__(None, None, None)


def strange_words(module):
    """An error names the word that nobody knows, in one line, however it looks."""
    with Server(module) as server:
        r = server.client()
        for word, told in (("FOO", "FOO"), ("a\r\nb\x00\x7f\t", "a??b???"), ("", ""),
                           ("x" * 40, "x" * 40), ("y" * 41, "y" * 40 + "..."),
                           ("z" * 100000, "z" * 40 + "...")):
            for command in (("BF.RESERVE", "k", "0.01", "10", word, "1"),
                            ("BF.INSERT", "k", word, "ITEMS", "a"),
                            ("CF.RESERVE", "k", "10", word, "1"),
                            ("CF.INSERT", "k", word, "ITEMS", "a")):
                reply = r.many([command])[0]
                true(isinstance(reply, Error), command[0])
                same(str(reply), "ERR unknown argument received: " + told, command[0])
        same(r("PING"), "PONG", "the replies after it are read as they are")
        same(r("EXISTS", "k"), 0)


def parts_of_seconds(module):
    with Server(module) as server:
        r, r3 = server.client(), server.client(3)
        r("BF.RESERVE", "half", "0.01", "10", "WINDOW", "0.5")
        r("BF.RESERVE", "hour", "0.01", "10", "WINDOW", "3600")
        r("BF.RESERVE", "none", "0.01", "10")
        same([r("BF.INFO", k, "WINDOW") for k in ("half", "hour", "none")],
             [[b"0.5"], [b"3600"], [b"0"]])
        same(r3("BF.INFO", "half", "WINDOW"), [0.5])


run([documented_commands, resp3, errors, growth_and_fullness, windows, ttl_and_like,
     merging, clearing_and_allowing, chunks, loading_options, strange_words, parts_of_seconds])
