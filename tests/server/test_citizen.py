"""The module as a part of its server: COMMAND, ACL, INFO, events, WATCH, memory
limits, replicas, clusters."""
import os
import re
import sys
import time

from lib import Error, Server, refused, run, same, true, wait_for

OTHER_BF = os.path.abspath(sys.argv[3])  # a module that has BF.ADD already

WRITES = ("reserve add madd insert addnx insertnx loadchunk merge clear allow del compact "
          "mark take markp takep forget import load").split()


def commands():
    path = os.path.join(os.path.dirname(__file__), "../../module/commands.def")
    with open(path) as f:
        return re.findall(r'^COMMAND\("([a-z.]+)", \w+, "([a-z -]+)", (-?\d+), (\w+), "([^"]+)"',
                          f.read(), re.M)


def syntax(arguments, between=" "):
    """What COMMAND DOCS tells of arguments, as commands.def writes it."""
    return between.join(syntax_of(dict(zip(a[::2], a[1::2]))) for a in arguments)


def syntax_of(a):
    name, token, kind = a[b"name"].decode(), a.get(b"token", b"").decode(), a[b"type"]
    flags = a.get(b"flags", [])
    if kind == b"oneof":
        text = "(%s)" % syntax(a[b"arguments"], " | ")
    elif kind == b"block":
        text = syntax(a[b"arguments"])
    elif kind == b"pure-token":
        text = token
    else:
        types = {b"integer": ":int", b"double": ":double", b"unix-time": ":ms", b"key": ":key"}
        text = token + " " * bool(token) + name + types.get(kind, "") * (name != "key")
    text += "..." * ("multiple" in flags)
    if "optional" in flags:
        text = "[%s]" % (text[1:-1] if kind == b"oneof" else text)
    return text


def command_tells(module):
    with Server(module) as server:
        r = server.client()
        true("Invalid command" not in server.log(), server.log())
        true(len(commands()) > 35, "commands.def is read")
        for name, flags, arity, keys, arguments in commands():
            info = r("COMMAND", "INFO", name)[0]
            same(info[1], int(arity), name)
            told = set(info[2])
            for flag in flags.split():
                if flag == "may-replicate":  # COMMAND does not tell; test_persist.py tries it
                    continue
                flag = {"deny-oom": "denyoom", "getkeys-api": "movablekeys"}.get(flag, flag)
                true(flag in told, (name, flag, told))
            same("write" in told, name.split(".")[1] in WRITES, name)
            true("readonly" in told or "write" in told or "admin" in told, name)
            # What grows is refused when memory is short; what shrinks is not.
            if "write" in told:
                same("denyoom" in told, name.split(".")[1] not in
                     ("del", "clear", "forget", "compact"), name)
            same(info[3:6], {"KEY_NONE": [0, 0, 0], "KEYS_MERGE": [1, -1, 1]}.get(keys, [1, 1, 1]))
            docs = r("COMMAND", "DOCS", name)[1]
            true(len(docs[docs.index(b"summary") + 1]) > 10, name)
            same(syntax(docs[docs.index(b"arguments") + 1]), arguments, name)
        same(r("COMMAND", "GETKEYS", "SEEN.MERGE", "a", "b", "c"), [b"a", b"b", b"c"])
        same(r("COMMAND", "GETKEYS", "BF.MERGE", "a", "b"), [b"a", b"b"])
        same(r("COMMAND", "GETKEYS", "BF.RESERVE", "a", "LIKE", "b"), [b"a", b"b"])
        same(r("COMMAND", "GETKEYS", "BF.RESERVE", "a", "0.1", "10", "LIKE", "b"), [b"a", b"b"])
        same(r("COMMAND", "GETKEYS", "SEEN.TAKE", "u", "COUNT", "1", "x"), [b"u"])


def access_lists(module):
    with Server(module) as server:
        r = server.client()
        r("BF.ADD", "k", "a")
        r("SEEN.MARK", "u", "a")
        r("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+bf.exists", "+seen.fresh")
        r("ACL", "SETUSER", "partly", "on", ">pw", "%RW~mine:*", "%R~all:*", "+@all")
        reader, partly = server.client(), server.client()
        reader("AUTH", "reader", "pw")
        partly("AUTH", "partly", "pw")
        same(reader("BF.EXISTS", "k", "a"), 1)
        same(reader("SEEN.FRESH", "u", "a", "b"), [b"b"])
        for command in (("BF.ADD", "k", "b"), ("CF.ADD", "c", "b"), ("SEEN.MARK", "u", "b"),
                        ("SEEN.TAKE", "u", "COUNT", "1", "b"), ("SEEN.POLICY",)):
            refused(reader, *command, says="NOPERM")
        r("SEEN.MARK", "all:u", "x")
        r("BF.ADD", "all:b", "x")
        same(partly("SEEN.MERGE", "mine:u", "all:u"), "OK")
        same(partly("BF.RESERVE", "mine:b", "LIKE", "all:b"), "OK")
        refused(partly, "SEEN.MERGE", "all:u", "mine:u", says="NOPERM")
        refused(partly, "SEEN.MERGE", "mine:u", "u", says="NOPERM")
        refused(partly, "BF.RESERVE", "mine:c", "LIKE", "k", says="NOPERM")


def version(r):
    """(7, 0) and so on; Valkey tells that of the Redis it stands in for."""
    told = r("INFO", "server").decode().split("redis_version:")[1].split()[0]
    return tuple(int(part) for part in told.split(".")[:2])


def a_category_of_its_own(module):
    """Servers from 7.2 on let modules have one: @seen, and of it what reads or writes."""
    with Server(module) as server:
        r = server.client()
        if version(r) < (7, 2):
            print("     left out: the server has no categories of modules")
            same(b"seen" in r("ACL", "CAT"), False)
            return
        for name, *_ in commands():  # ACL CAT seen tells no commands in Valkey 8.0
            true("@seen" in r("COMMAND", "INFO", name)[0][6], name)
        r("ACL", "SETUSER", "all", "on", ">pw", "~*", "+@seen")
        r("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@seen", "-@write")
        writer, reader = server.client(), server.client()
        writer("AUTH", "all", "pw")
        reader("AUTH", "reader", "pw")
        same(writer("BF.ADD", "k", "a"), 1)
        same(writer("SEEN.MARK", "u", "a"), 1)
        refused(writer, "SET", "s", "x", says="NOPERM")
        same(reader("BF.EXISTS", "k", "a"), 1)
        same(reader("SEEN.CHECK", "u", "a"), [1])
        for command in (("BF.ADD", "k", "b"), ("CF.ADD", "c", "b"), ("SEEN.MARK", "u", "b"),
                        ("SEEN.TAKE", "u", "COUNT", "1", "b"), ("SEEN.FORGET", "u")):
            refused(reader, *command, says="NOPERM")


def info(r):
    return dict(line.split(":", 1) for line in r("INFO", "seen").decode().split("\r\n")
                if ":" in line)


def numbers_in_info(module):
    with Server(module) as server:
        r = server.client()
        before = int(r("INFO", "memory").decode().split("used_memory:")[1].split()[0])
        for i in range(50):
            r("BF.RESERVE", "b%d" % i, "0.01", "10000")
            r("CF.RESERVE", "c%d" % i, "10000")
            r("SEEN.MARK", "u%d" % i, *["x%d" % j for j in range(500)])
        now = info(r)
        same((now["seen_bf_keys"], now["seen_cf_keys"], now["seen_users"]), ("50", "50", "50"))
        used = int(r("INFO", "memory").decode().split("used_memory:")[1].split()[0]) - before
        held = int(now["seen_bytes"])
        true(0.85 * used < held <= used, "%d of %d bytes are ours" % (held, used))
        sum_of_keys = sum(r("MEMORY", "USAGE", k) for k in r("KEYS", "*"))
        true(0.9 * used < sum_of_keys < 1.1 * used, "MEMORY USAGE: %d of %d"
             % (sum_of_keys, used))
        r("BF.MADD", "b0", "a", "b")
        r("BF.MEXISTS", "b0", "a", "b", "c")
        r("SEEN.CHECK", "u0", "x0", "y")
        later = info(r)
        same(int(later["seen_adds"]) - int(now["seen_adds"]), 2)
        same(int(later["seen_checks"]) - int(now["seen_checks"]), 5)
        same(int(later["seen_hits"]) - int(now["seen_hits"]), 3)
        # One rule for all commands: adds, checks, hits.
        fresh, ids = ["n%02d" % i for i in range(40)], "".join("p%02d" % i for i in range(40))
        for command, expected in (
                (("BF.EXISTS", "b0", "a"), (0, 1, 1)),
                (("BF.EXISTS", "nothing", "a"), (0, 1, 0)),
                (("BF.MEXISTS", "nothing", "a", "b"), (0, 2, 0)),
                (("BF.ADD", "b0", "a"), (1, 0, 0)),
                (("BF.INSERT", "b0", "ITEMS", "a", "b", "z"), (3, 0, 0)),
                (("CF.ADD", "c0", "a"), (1, 0, 0)),
                (("CF.ADDNX", "c0", "a"), (0, 1, 1)),
                (("CF.INSERTNX", "c0", "ITEMS", "a", "b"), (1, 2, 1)),
                (("CF.EXISTS", "c0", "a"), (0, 1, 1)),
                (("CF.MEXISTS", "nothing", "a", "b"), (0, 2, 0)),
                (("CF.COUNT", "c0", "a"), (0, 1, 1)),
                (("CF.COUNT", "nothing", "a"), (0, 1, 0)),
                (("SEEN.MARK", "s", *fresh[:10]), (10, 0, 0)),
                (("SEEN.MARK", "s", "AT", "1", *fresh[:10]), (10, 0, 0)),
                (("SEEN.CHECK", "s", *fresh[5:15]), (0, 10, 5)),
                (("SEEN.CHECK", "nothing", "a"), (0, 1, 0)),
                (("SEEN.FRESH", "s", "LIMIT", "1", *fresh[5:15]), (0, 10, 5)),
                (("SEEN.TAKE", "s", "COUNT", "2", *fresh[5:15]), (2, 7, 5)),
                (("SEEN.TAKE", "s", "COUNT", "99", *fresh[5:15]), (3, 10, 7)),
                (("SEEN.TAKE", "s", "COUNT", "0", *fresh), (0, 0, 0)),
                (("SEEN.MARKP", "s", "3", ids[:30]), (10, 0, 0)),
                (("SEEN.MARKP", "s", "AT", "1", "3", ids[:30]), (10, 0, 0)),
                (("SEEN.FRESHP", "s", "3", ids[15:45]), (0, 10, 5)),
                (("SEEN.TAKEP", "s", "COUNT", "2", "3", ids[15:45]), (2, 7, 5)),
                (("SEEN.TAKEP", "s", "COUNT", "99", "3", ids[15:45]), (3, 10, 7)),
                (("SEEN.TAKEP", "s", "COUNT", "0", "3", ids), (0, 0, 0)),
                (("SEEN.TAKEP", "s", "COUNT", "5", "3", ""), (0, 0, 0))):
            now = info(r)
            r(*command)
            later = info(r)
            same(tuple(int(later[n]) - int(now[n]) for n in
                       ("seen_adds", "seen_checks", "seen_hits")), expected, command)
        # 3 generations of 10 items, so of 60 there remain 30; then all are too old.
        same(later["seen_evicted_generations"], "0")
        policy = "items=10,generations=3,ttl=1h"
        at = int(time.time() * 1000)
        r("SEEN.MARK", "e", "AT", str(at), "POLICY", policy, *["e%d" % i for i in range(60)])
        same(info(r)["seen_evicted_generations"], "3")
        r("SEEN.TAKE", "e", "COUNT", "1", "AT", str(at + 3600001), "POLICY", policy, "x")
        same(info(r)["seen_evicted_generations"], "6")
        for i in range(100):  # policies that are forgotten are not
            r("SEEN.MARK", "e2", "POLICY", "items=%d" % (1000 + i), "x")
        same(info(r)["seen_evicted_generations"], "6")
        r("DEL", "e", "e2")
        r("UNLINK", *["b%d" % i for i in range(50)])
        r("DEL", *["c%d" % i for i in range(50)])
        r("FLUSHALL", "ASYNC")
        wait_for(lambda: info(r)["seen_bytes"] == "0", "all memory to be given back")
        now = info(r)
        same((now["seen_bf_keys"], now["seen_cf_keys"], now["seen_users"]), ("0", "0", "0"))


def events_and_watch(module):
    with Server(module) as server:
        r, listener = server.client(), server.client()
        r("CONFIG", "SET", "notify-keyspace-events", "Ed")
        listener("PSUBSCRIBE", "__keyevent@0__:*")
        writes = [("BF.ADD", "b", "a"), ("BF.ADD", "b", "a"), ("BF.CLEAR", "b"),
                  ("BF.ALLOW", "b", "x"), ("CF.ADD", "c", "a"), ("CF.DEL", "c", "a"),
                  ("CF.DEL", "c", "a"), ("SEEN.MARK", "u", "a"), ("SEEN.FRESH", "u", "b"),
                  ("SEEN.TAKE", "u", "COUNT", "1", "a"), ("SEEN.FORGET", "u", "a")]
        for command in writes:
            r(*command)
        expected = ["bf.reserve", "bf.add", "bf.clear", "bf.allow", "cf.reserve", "cf.add",
                    "cf.del", "seen.mark", "seen.forget"]
        got = [listener.reply()[2].decode().split(":")[1] for _ in expected]
        same(got, expected, "no event where nothing changed")

        def watched(command):
            r("BF.ADD", "w", "here")
            r("SEEN.MARK", "v", "here")
            r("WATCH", "w", "v")
            server.client()(*command)
            return r.many([("MULTI",), ("PING",), ("EXEC",)])[2]

        same(watched(("BF.ADD", "w", "new")), None, "a change is seen by WATCH")
        same(watched(("BF.ADD", "w", "here")), ["PONG"], "no change, no conflict")
        same(watched(("BF.EXISTS", "w", "here")), ["PONG"])
        same(watched(("SEEN.TAKE", "v", "COUNT", "5", "here")), ["PONG"])
        same(watched(("SEEN.MARK", "v", "there")), None)


def memory_is_short(module):
    with Server(module) as server:
        r = server.client()
        r("BF.MADD", "b", "a", "b")
        r("CF.INSERT", "c", "ITEMS", "a", "b")
        r("SEEN.MARK", "u", "a", "b")
        r("CONFIG", "SET", "maxmemory", "1")
        for command in (("BF.ADD", "b", "x"), ("BF.RESERVE", "n", "0.1", "10"),
                        ("CF.ADD", "c", "x"), ("SEEN.MARK", "u", "x"), ("BF.MERGE", "n", "b"),
                        ("SEEN.TAKE", "u", "COUNT", "1", "x"), ("BF.ALLOW", "b", "x")):
            refused(r, *command, says="OOM")
        same(r("BF.EXISTS", "b", "a"), 1)
        same(r("CF.DEL", "c", "a"), 1, "taking out works")
        same(r("SEEN.FORGET", "u", "a"), 1)
        same(r("BF.CLEAR", "b"), "OK")
        r("CONFIG", "SET", "maxmemory", "0")
        r("FLUSHALL")
        used = int(r("INFO", "memory").decode().split("used_memory:")[1].split()[0])
        r("CONFIG", "SET", "maxmemory", str(used + 3000000))
        r("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        for i in range(300):
            r("BF.RESERVE", "e%d" % i, "0.01", "20000")
        true(0 < r("DBSIZE") < 300, "old keys were evicted")
        same(r("EXISTS", "e299"), 1)


def replicas_answer(module):
    with Server(module) as primary, Server(module) as replica:
        p, r = primary.client(), replica.client()
        p("BF.ADD", "b", "a")
        p("SEEN.MARK", "u", "a")
        p("BF.RESERVE", "w", "0.01", "100", "WINDOW", "0.2")
        p("BF.ADD", "w", "a")
        r("REPLICAOF", "127.0.0.1", str(primary.port))
        wait_for(lambda: b"master_link_status:up" in r("INFO", "replication"), "the replica")
        same(r("BF.EXISTS", "b", "a"), 1)
        same(r("SEEN.FRESH", "u", "a", "b"), [b"b"])
        time.sleep(0.4)
        same(r("BF.EXISTS", "w", "a"), 0, "time passes on a replica that hears nothing")
        refused(r, "BF.ADD", "b", "x", says="READONLY")
        refused(r, "SEEN.TAKE", "u", "COUNT", "1", "x", says="READONLY")
        # A replica takes what its primary took, whatever its own limit is.
        r("CONFIG", "SET", "seen.memory-limit", "65536")
        p("BF.RESERVE", "large", "0.001", "1000000")
        wait_for(lambda: r("EXISTS", "large") == 1, "a filter past the replica's limit")
        same(r("DEBUG", "DIGEST"), p("DEBUG", "DIGEST"))
        r("REPLICAOF", "NO", "ONE")
        refused(r, "BF.RESERVE", "large2", "0.001", "1000000", says="limit")


def other_databases(module):
    with Server(module) as server:
        r = server.client()
        r("BF.ADD", "k", "a")
        r("SEEN.MARK", "u", "a")
        r("CF.ADD", "c", "a")
        digests = r("DEBUG", "DIGEST-VALUE", "k", "u", "c")
        for key in ("k", "u", "c"):
            same(r("MOVE", key, "3"), 1)
        r("SELECT", "3")
        for key in ("k", "u", "c"):
            r("RENAME", key, key + "2")
        same(r("DEBUG", "DIGEST-VALUE", "k2", "u2", "c2"), digests)
        same(r("SEEN.CHECK", "u2", "a"), [1])


def beside_another_bloom(module):
    options = ["--loadmodule", OTHER_BF]
    with Server(module, ["commands=auto"], options=options) as server:
        r = server.client()
        same(r("BF.ADD", "k", "a"), "another module's")
        same(r("BF.MADD", "k", "a"), [1])
        true("bf.add already, ours is left out" in server.log(), "the log says so")
    server = Server(module, options=options)
    try:
        server.start()
        raise AssertionError("loaded over another module's commands")
    except RuntimeError as error:
        true("commands=auto" in str(error), str(error))
    finally:
        server.__exit__(None, None, None)


# ---- Cluster -----------------------------------------------------------------

CLUSTER = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
           "--cluster-node-timeout", "2000"]


def slots_move(module):
    """Slots are moved from one node to another while items are added."""
    with Server(module, options=CLUSTER) as one, Server(module, options=CLUSTER) as two:
        a, b = one.client(), two.client()
        a("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        a("CLUSTER", "MEET", "127.0.0.1", str(two.port))
        wait_for(lambda: len(b("CLUSTER", "NODES").decode().strip().split("\n")) == 2
                 and b"cluster_state:ok" in a("CLUSTER", "INFO")
                 and b"cluster_state:ok" in b("CLUSTER", "INFO"), "two nodes")
        refused(a, "BF.MERGE", "x", "y", says="CROSSSLOT")
        refused(a, "SEEN.MERGE", "x", "y", says="CROSSSLOT")
        refused(a, "BF.RESERVE", "x", "LIKE", "y", says="CROSSSLOT")
        ids = {"a": a("CLUSTER", "MYID").decode(), "b": b("CLUSTER", "MYID").decode()}
        keys = {"BF": "{t}bf", "CF": "{t}cf", "SEEN": "{t}user", "W": "{t}window"}
        slot = str(a("CLUSTER", "KEYSLOT", "{t}"))
        a("BF.RESERVE", keys["W"], "0.001", "1000", "WINDOW", "3600")
        redirects = 0

        def send(*command):
            """As a client does: follow MOVED and ASK."""
            nonlocal redirects
            node, asking = a, False
            for _ in range(8):
                replies = node.many([("ASKING",), command] if asking else [command])
                reply, asking = replies[-1], False
                if not isinstance(reply, Error):
                    return reply
                word = str(reply).split()[0]
                if word in ("MOVED", "ASK"):
                    redirects += 1
                    node = b if str(reply).endswith(":%d" % two.port) else a
                    asking = word == "ASK"
                elif word != "TRYAGAIN":
                    raise reply
            raise AssertionError("no end of redirections: %r" % (command,))

        added = []

        def add_some(n):
            for _ in range(n):
                item = "i%d" % len(added)
                added.append(item)
                send("BF.ADD", keys["BF"], item)
                send("BF.ADD", keys["W"], item)
                send("CF.ADD", keys["CF"], item)
                send("SEEN.MARK", keys["SEEN"], item)

        add_some(300)
        b("CLUSTER", "SETSLOT", slot, "IMPORTING", ids["a"])
        a("CLUSTER", "SETSLOT", slot, "MIGRATING", ids["b"])
        for key in list(keys.values()):
            add_some(50)
            same(a("MIGRATE", "127.0.0.1", str(two.port), key, "0", "5000"), "OK")
        add_some(50)
        for node in (b, a):
            node("CLUSTER", "SETSLOT", slot, "NODE", ids["b"])
        add_some(50)
        same(sum(send("BF.MEXISTS", keys["BF"], *added)), len(added))
        same(sum(send("BF.MEXISTS", keys["W"], *added)), len(added))
        same(sum(send("CF.MEXISTS", keys["CF"], *added)), len(added))
        same(sum(send("SEEN.CHECK", keys["SEEN"], *added)), len(added))
        true(redirects > 100, "%d redirections" % redirects)
        same(a("DBSIZE"), 0)


run([command_tells, access_lists, a_category_of_its_own, numbers_in_info, events_and_watch,
     memory_is_short, replicas_answer, other_databases, beside_another_bloom, slots_move])
