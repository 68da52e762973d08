"""The program against servers: users (redis://), filters (?key=), plain strings
(redis+plain://), bitmaps (redis+bitmap://). Arguments: module - - seen."""
import os
import subprocess
import tempfile
import threading

from between import CLOSE, Between
from lib import Server, free_port, run, same, true, wait_for
from program import SEEN, Run, bad, good, lines


def url(server, rest=""):
    return "redis://127.0.0.1:%d%s" % (server.port, rest)


def users_on_a_server(module):
    with Server(module) as server:
        u = url(server)
        good("mark", u, "alice", "a", "b", "longer")
        same(good("fresh", u, "alice", text=lines(["a", "x", "b", "yy", "x"])), b"x\nyy\n")
        same(good("take", u, "alice", "-n", "1", text=lines(["a", "x", "y"])), b"x\n")
        same(good("take", u, "alice", "-n", "9", text=lines(["a", "x", "y"])), b"y\n")
        good("mark", u, text=b"u1\tx\nu2\ty\nu1\tz\n")
        same(good("take", u, "-n", "5", text=b"u1\tx\nu1\tq\nu2\ty\nu2\tr\n"), b"u1\tq\nu2\tr\n")
        true(b"3" in good("info", u), "three users")
        true(b"items     3" in good("info", u, "--user", "u1"), "u1 has three")
        good("forget", u, "alice", "a")
        same(good("fresh", u, "alice", text=b"a\nb\n"), b"a\n")
        good("forget", u, "alice")
        same(server.client()("EXISTS", "seen:alice"), 0)
        good("mark", url(server, "/3?prefix=p:"), "bob", "i")
        r = server.client()
        r("SELECT", 3)
        same(r("KEYS", "*"), [b"p:bob"])
        # Many users, more than one page of them.
        many = "".join("user%d\titem\n" % i for i in range(5000)).encode()
        good("mark", u, text=many)
        true(b"users     5,002" in good("info", u), good("info", u).decode())
        bad("is not the number of a database", "mark", url(server, "/x"), "u", "i")
        bad("no parameter is called", "mark", url(server, "?nope=1"), "u", "i")
        bad("BGSAVE", "backup", u, os.path.join(server.directory, "copy"))
        bad("expire on the server", "sweep", u)
        bad("TLS", "mark", "rediss://localhost", "u", "i")
        server.stop()
        bad("Connection refused", "fresh", u + "?patience=10", "alice", text=b"a\n")


def servers_without_the_module(module):
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "",
                                   "--dir", directory], stdout=subprocess.DEVNULL)
        try:
            u = "redis://127.0.0.1:%d" % port
            wait_for(lambda: "Connection refused" not in Run("mark", u, "u", "i").err, "server")
            bad("load seen.so", "mark", u, "u", "i")
            bad("holds users", "add", u, "-n", "10", "-p", "1%", text=b"a\n")
            bad("unknown command", "add", u + "?key=k", "-n", "10", "-p", "1%", text=b"a\n")
            plain = "redis+plain://127.0.0.1:%d/k" % port
            good("add", plain, "-n", "10", "-p", "1%", text=b"a\n")
            same(good("check", plain, text=b"a\n"), b"a\n")
        finally:
            server.kill()
            server.wait()


def passwords(module):
    with Server(module) as server:
        server.client()("CONFIG", "SET", "requirepass", "p@ss")
        bad("NOAUTH", "mark", url(server), "u", "i")
        bad("WRONGPASS", "mark", "redis://default:no@127.0.0.1:%d" % server.port, "u", "i")
        for login in (":p%40ss", "default:p%40ss", "p%40ss"):
            good("mark", "redis://%s@127.0.0.1:%d" % (login, server.port), "u", "i")


def the_same_ids_everywhere(module):
    """Under one secret, a directory, memory, the server and its packed commands
    give the same answers, the wrong ones too."""
    with tempfile.TemporaryDirectory() as directory:
        secret = os.path.join(directory, "secret")
        with open(secret, "w") as f:
            f.write("00112233445566778899aabbccddeeff\n")
        policy = "items=500,generations=4,fpp=0.05,ttl=5d"
        with Server(module, arguments=["secret-file=" + secret]) as server:
            store = os.path.join(directory, "feed")
            for form, make in (([], lambda i: "item-%d" % i), (["--u64"], str)):
                shown = lines(make(i) for i in range(1500))
                asked = lines(make(i) for i in range(40000))
                answers = []
                for where, more in ((store, ["--secret-file", secret]), (url(server), [])):
                    user = "reader" + "".join(form)
                    events = b"".join(b"%s\t%s\n" % (user.encode(), line)
                                      for line in shown.split())
                    good("mark", where, "--policy", policy, *more, *form, text=events)
                    answers.append(good("fresh", where, user, *form, text=asked))
                true(answers[0] == answers[1], "a directory and a server differ %r" % form)
                fresh = answers[0].count(b"\n")
                true(36500 < fresh < 38400, "%d of 38500 fresh" % fresh)


def filters(module):
    with Server(module) as server:
        keys = lines(range(20000))
        asked = lines(range(10000, 30000))
        for u in (url(server, "?key=bf"),
                  "redis+plain://127.0.0.1:%d/plain" % server.port):
            bad("no such filter", "check", u, text=asked)
            bad("add -n ITEMS -p RATE", "add", u, text=keys)
            good("add", u, "-n", "20000", "-p", "1%", text=keys)
            found = int(good("check", "-c", u, text=asked))
            true(10000 <= found <= 10200, "%d found" % found)
            same(good("check", "-c", u, text=keys), b"20000\n")
            true(b"20,000" in good("info", u), "capacity")
            bad("cannot remove single keys", "remove", u, text=keys)
        # An evicted part is not an empty one.
        r = server.client()
        plain = "redis+plain://127.0.0.1:%d/plain" % server.port
        part = [k for k in r("KEYS", "plain:*")][0]
        r("DEL", part)
        bad("is gone", "check", plain, text=asked)
        bad("is gone", "add", plain, text=keys)  # which made it anew, and short
        bad("is gone", "check", plain, text=asked)
        bad("is gone", "check", plain, text=keys)
        # Two lines a key.
        u = "redis+plain://127.0.0.1:%d/?key=fine" % server.port
        good("add", u, "-n", "20000", "-p", "0.01%", text=keys)
        same(good("check", "-c", u, text=keys), b"20000\n")
        true(int(good("check", "-c", u, text=asked)) < 10020, "rate")


def go_zero(module):
    """The string is, byte for byte, the one that the dialect's file has: and that
    is compared with strings go-zero wrote."""
    with Server(module) as server, tempfile.TemporaryDirectory() as directory:
        u = "redis+gozero://127.0.0.1:%d/bloom?bits=400000" % server.port
        keys, path = lines(range(20000)), os.path.join(directory, "file")
        same(good("check", "-v", "-c", u, text=keys), b"20000\n")  # not there: empty
        for command in (("check", "-q"), ("info",)):
            for where in (u, u.replace("gozero", "bitmap")):
                r = Run(*command, where, text=b"1\n")
                true("nothing is there, so that every key is absent: is the name right?" in r.err, repr(r.err))
        true("nothing is there" not in Run("add", u + "&key=other", text=b"1\n").err, "a new filter")
        good("add", u, text=keys)
        good("build", "--dialect", "gozero", "--bits", "400000", "-o", path, text=keys)
        with open(path, "rb") as f:
            whole = f.read().rstrip(b"\0")
        r = server.client()
        same(r("GET", "bloom").rstrip(b"\0"), whole)
        same(good("check", "-c", u, text=keys), b"20000\n")
        true(int(good("check", "-c", u, text=lines(range(20000, 60000)))) < 20, "rate")
        r("SCRIPT", "FLUSH")
        same(good("check", "-c", u, text=keys), b"20000\n")
        # Flushed between opening and asking.
        marking = subprocess.Popen([SEEN, "add", u], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        r("SCRIPT", "FLUSH")
        marking.stdin.write(lines(range(30000)))
        marking.stdin.close()
        same(marking.wait(), 0)
        same(good("check", "-c", u, text=lines(range(30000))), b"30000\n")
        bad("bits=M", "check", "redis+gozero://127.0.0.1:%d/bloom" % server.port, text=keys)
        # A short string ends in zeros.
        r("DEL", "bloom")
        good("add", u, text=b"again\n")
        true(0 < r("STRLEN", "bloom") < 50000, "short")
        same(good("check", u, text=b"again\n0\n"), b"again\n")
        # So that the length tells another filter: longer than all bits, or with so
        # many ones that some of them would lie farther behind.
        r("SET", "bloom", whole)
        for verb in ("check", "add", "info"):
            for bits, says in ((399992, "takes 49999 at most"), (20000, "takes 2500"),
                               (400800, "not a filter of bits=400800"),
                               (400200, "not a filter of bits=400200"),
                               (4000000000, "not a filter of bits=4000000000")):
                bad(says, verb, u.replace("400000", str(bits)), text=b"0\n")
        same(r("GET", "bloom"), whole)
        # Within the last byte, its ones tell.
        for last, bits, good_bits in ((b"\x01", 399999, 400000), (b"\x10", 399995, 399996),
                                      (b"\x80", None, 399993)):
            r("SET", "bloom", whole[:49999].ljust(49999, b"\0") + last)
            for verb in ("check", "add", "info"):
                if bits:
                    bad("has ones at or beyond bits=%d" % bits, verb,
                        u.replace("400000", str(bits)), text=b"0\n")
            true(Run("check", u.replace("400000", str(good_bits)), text=b"0\n").code in (0, 1),
                 "bits=%d" % good_bits)
            same(r("GETRANGE", "bloom", "-1", "-1"), last)
        r("SET", "bloom", whole[:1000])
        bad("not a filter of bits=400000", "check", u, text=keys)
        # Few keys end anywhere: the right number is not suspected.
        for i in range(10):
            r("DEL", "bloom")
            good("add", u, text=b"key%d\n" % i)
            few = Run("check", u, text=b"key%d\n" % i)
            same((few.code, few.err), (0, ""))
        # With few keys it can only be suspected: 14 bits in the first third are 2e-7.
        for i in range(3):
            r("DEL", "bloom")
            good("add", u.replace("400000", "130000"), text=b"key%d\n" % i)
            few = Run("check", u, text=b"key%d\n" % i)
            same((few.code, "warning: " in few.err), (1, True), few.err)
        for kind, make in (("hash", ("HSET", "bloom", "a", "b")), ("list", ("LPUSH", "bloom", "a"))):
            r("DEL", "bloom")
            r(*make)
            for verb in ("check", "add", "info"):
                for layout in ("redis+gozero://%s/bloom?bits=4000", "redis+plain://%s/bloom",
                               "redis+bitmap://%s/bloom?bits=4000", "redis://%s?key=bloom"):
                    bad("bloom: is a %s on the server, expected" % kind, verb,
                        layout % ("127.0.0.1:%d" % server.port), text=b"1\n")


def bitmaps(module):
    with Server(module) as server:
        u = "redis+bitmap://127.0.0.1:%d/bits?bits=1000" % server.port
        good("add", u, text=lines(range(0, 1000, 3)))
        same(good("check", "-c", u, text=lines(range(1000))), b"334\n")
        r = server.client()
        same(r("GETBIT", "bits", 999), 1)
        same(r("GETBIT", "bits", 998), 0)
        bad("not below the bound", "add", u, text=lines([5, 1000]))
        same(r("BITCOUNT", "bits"), 334)
        bad("bits=M", "add", "redis+bitmap://127.0.0.1:%d/bits" % server.port, text=b"1\n")
        for verb in ("add", "check", "remove"):  # refused before anything is sent
            r("CONFIG", "RESETSTAT")
            bad("not below the bound", verb, u, text=lines([5, 6, 1000]))
            true(b"bit:" not in r("INFO", "commandstats"), "nothing was sent")
        # Exact, so numbers can be taken out again.
        good("remove", u, text=lines([3, 4, 999]))
        same(good("check", u, text=lines([0, 3, 4, 999])), b"0\n")
        same(r("BITCOUNT", "bits"), 332)
        r("SET", "bits", b"\xff")  # short: the rest is not set
        same(good("check", "-c", u, text=lines(range(1000))), b"8\n")
        good("add", u, text=b"700\n")
        same(good("check", u, text=b"7\n8\n700\n999\n"), b"7\n700\n")
        # Numbers beyond the bound: right answers, and a word.
        longer = Run("check", u.replace("=1000", "=100"), text=b"7\n8\n")
        same((longer.code, longer.out), (0, b"7\n"))
        true("warning: " in longer.err and "numbers from 100 on" in longer.err, longer.err)


def leaving(module):
    """Expiry and deletion, of every layout; also of what is not there."""
    with Server(module) as server:
        r, where = server.client(), "127.0.0.1:%d" % server.port
        for u, more in (("redis+gozero://%s/z?bits=4000" % where, []),
                        ("redis+bitmap://%s/b?bits=4000" % where, []),
                        ("redis+plain://%s/p" % where, ["-n", "1000", "-p", "1%"]),
                        ("redis://%s?key=bf" % where, ["-n", "1000", "-p", "1%"])):
            same(Run("forget", u).err.split(": ")[-1], "was not there\n")
            good("add", u, *more, text=lines(range(100)))
            same({r("TTL", k) for k in r("KEYS", "*")}, {-1})
            good("add", u, "--ttl", "1h", text=lines(range(100, 200)))
            true(all(3590 <= r("TTL", k) <= 3600 for k in r("KEYS", "*")), "an hour")
            same(good("check", "-c", u, text=lines(range(200))), b"200\n")
            same(good("forget", "--json", u).count(b"true"), 1)
            same(r("KEYS", "*"), [])
            good("add", u, *more, "--ttl", "30ms", text=b"7\n")
            wait_for(lambda: not r("KEYS", "*"), "the end")
            if more:  # expired is not empty
                bad("no such filter", "check", u, text=b"7\n")
            else:
                same(good("check", "-v", u, text=b"7\n"), b"7\n")
                true("not found" in Run("add", u, "--ttl", "1h").err, "nothing to expire")
        bad("as a whole", "forget", "redis+bitmap://%s/b?bits=40" % where, "1")
        bad("is for filters on servers", "add", os.path.join(server.directory, "f"), "-n", "9",
            "-p", "1%", "--ttl", "1h", text=b"a\n")


def a_server_that_comes_back(module):
    """Marks go on when a server is killed and comes back: none is lost."""
    with Server(module, options=["--appendonly", "yes", "--appendfsync", "always"]) as server:
        u = url(server, "?patience=60000")
        events = ["user%d\titem%d\n" % (i % 500, i) for i in range(40000)]
        marking = subprocess.Popen([SEEN, "mark", u], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        marking.stdin.write("".join(events[:20000]).encode())
        marking.stdin.flush()
        wait_for(lambda: server.client()("DBSIZE") > 0, "the first marks")
        server.stop()
        server.process = subprocess.Popen(server.process.args, env=server.environment,
                                          stdout=subprocess.DEVNULL)
        marking.stdin.write("".join(events[20000:]).encode())
        marking.stdin.close()
        true(marking.wait() == 0, marking.stderr.read().decode())
        wait_for(server.wait_up, "the server")
        same(good("fresh", u, text="".join(events).encode()), b"")


def clusters(module):
    """Three primaries: every user on his node, all of them found; a slot that
    moves while marks go on loses none."""
    servers = [Server(module, options=["--cluster-enabled", "yes", "--cluster-config-file",
                                       "nodes.conf"]) for _ in range(3)]
    try:
        clients = []
        for server in servers:
            server.start()
            clients.append(server.client())
        cuts = [0, 5461, 10923, 16384]
        for i, client in enumerate(clients):
            client("CLUSTER", "ADDSLOTSRANGE", cuts[i], cuts[i + 1] - 1)
            client("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for server in servers[1:]:
            clients[0]("CLUSTER", "MEET", "127.0.0.1", server.port)
        wait_for(lambda: all(b"cluster_state:ok" in c("CLUSTER", "INFO")
                             and c("CLUSTER", "SLOTS").__len__() == 3 for c in clients),
                 "the cluster")
        u = url(servers[0])
        events = "".join("user%d\titem%d\n" % (i % 3000, i) for i in range(9000)).encode()
        good("mark", u, text=events)
        sizes = [c("DBSIZE") for c in clients]
        same(sum(sizes), 3000)
        true(min(sizes) > 500, "spread over nodes: %r" % sizes)
        true(b"users     3,000" in good("info", u), "all users are found")
        same(good("fresh", url(servers[2]), text=events), b"")
        f = "redis+plain://127.0.0.1:%d/wide" % servers[1].port
        good("add", f, "-n", "5000", "-p", "1%", text=lines(range(5000)))
        same(good("check", "-c", f, text=lines(range(5000))), b"5000\n")
        # Four strings of 32 MB, each where its own name belongs.
        f = "redis+plain://127.0.0.1:%d/{}wider" % servers[1].port
        good("add", f, "-n", "60M", "-p", "0.1%", text=lines(range(5000)))
        same(good("check", "-c", f, text=lines(range(5000))), b"5000\n")
        true(b"in 4 parts" in good("info", f), "four parts")
        slots = {clients[0]("CLUSTER", "KEYSLOT", key) for c in clients
                 for key in c("KEYS", "{}wider:*")}
        same(len(slots), 4)
        good("forget", f)
        same([k for c in clients for k in c("KEYS", "{}wider*")], [])

        # Slot by slot, the keys of the first node's first hundred go to the second.
        ids = [c("CLUSTER", "MYID").decode() for c in clients]
        more = "".join("user%d\tlater%d\n" % (i % 3000, i) for i in range(9000)).encode()
        result = []
        marking = threading.Thread(target=lambda: result.append(Run("mark", u, text=more)))
        marking.start()
        for slot in range(100):
            clients[1]("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
            clients[0]("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
            while True:
                keys = clients[0]("CLUSTER", "GETKEYSINSLOT", slot, 100)
                if not keys:
                    break
                clients[0]("MIGRATE", "127.0.0.1", servers[1].port, "", 0, 5000, "KEYS", *keys)
            for c in (clients[1], clients[0], clients[2]):
                c("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
        marking.join()
        same(result[0].code, 0, result[0].err)
        same(good("fresh", u, text=events), b"")
        same(good("fresh", u, text=more), b"")
        same(sum(c("DBSIZE") for c in clients), 3002)

        # Lists: the script goes to whoever does not know it.
        u = "redis+list://127.0.0.1:%d?prefix=list:" % servers[2].port
        good("mark", u, text=events)
        true(b"users     3,000" in good("info", u), "all lists are found")
        same(good("fresh", u, text=events), b"")
    finally:
        for server in servers:
            server.__exit__(None, None, None)


def what_is_not_ours(module):
    """Keys of other types stay, whatever they are called; what could not be made, or
    is broken, does not look whole."""
    with Server(module) as server:
        r = server.client()
        at = "127.0.0.1:%d" % server.port
        for name in ("filter", "alice"):
            r("HSET", name, "field", "value")
        for u in ("redis+bitmap://%s/filter?bits=8", "redis+gozero://%s/filter?bits=100",
                  "redis://%s?key=filter"):
            bad("is a hash", "forget", u % at)
        bad("is a hash", "add", "--ttl", "1h", "redis+gozero://%s/filter?bits=100" % at)
        bad("WRONGTYPE", "forget", "redis+list://" + at, "alice")
        same((r("HGET", "filter", "field"), r("HGET", "alice", "field")), (b"value", b"value"))
        same(r("TTL", "filter"), -1)

        plain = "redis+plain://%s/urls" % at
        for wish in (["--kind", "cuckoo"], ["--window", "1d"], ["--keyed"], ["--hashes", "3"]):
            bad("-n and -p alone", "add", plain, "-n", "1000", "-p", "0.1%", *wish, text=b"a\n")
        same(r("KEYS", "urls*"), [])
        good("add", plain, "-n", "1000", "-p", "0.1%", text=b"a\n")
        true("exists already" in Run("add", plain, "-n", "1e6", text=b"b\n").err, "a note")
        part = [k for k in r("KEYS", "urls:*")]
        r("DEL", *part)
        bad("is gone", "info", plain)
        bad("is gone", "check", plain, text=b"a\n")
        good("forget", plain)

        r("CONFIG", "SET", "maxmemory", "100mb")
        bad("OOM", "add", "redis+plain://%s/big" % at, "-n", "1e9", "-p", "0.1%", text=b"a\n")
        same(r("KEYS", "big*"), [], "strings that nobody can find")


def slips_create_nothing(module):
    """A word that no URL has is an error before anything is made."""
    with Server(module) as server:
        at = "127.0.0.1:%d" % server.port
        for u in ("redis://%s?key=k&tyop=1", "redis+plain://%s/k?tyop=1",
                  "redis+bitmap://%s/k?bits=100&tyop=1", "redis+gozero://%s/k?bits=100&tyop=1"):
            bad("no parameter is called tyop", "add", u % at, "-n", "100", "-p", "1%",
                text=b"1\n")
        for u in ("redis://%s?prefix=k&tyop=1", "redis+list://%s?prefix=k&tyop=1"):
            bad("no parameter is called tyop", "mark", u % at, "user", "1")
        same(server.client()("KEYS", "*"), [])


def two_who_create(module):
    """Another makes the filter after we looked for it and before we do: it is his."""
    with Server(module) as server:
        r, made = server.client(), []

        def rule(args):
            if args[0] == b"BF.RESERVE":
                made.append(r("BF.RESERVE", args[1], 0.01, 500))

        with Between(server.port, rule) as between:
            u = "redis://127.0.0.1:%d?key=k" % between.port
            good("add", u, "-n", "100", "-p", "1%", text=lines(range(50)))
            same((made, r("BF.INFO", "k")[1]), (["OK"], 500))
            same(good("check", "-c", u, text=lines(range(50))), b"50\n")


def walks(module):
    """All users of a server: over a connection that was closed while it was idle; and a
    walk that was cut short is an error."""
    with Server(module) as server:
        good("mark", url(server), text="".join("user%d\titem\n" % i
                                               for i in range(5000)).encode())
        for cut in (0, 1, 3):  # the SCAN that does not arrive
            seen = []

            def rule(args):
                if args[0] == b"SCAN":
                    seen.append(args[1])
                    if len(seen) == cut:
                        return CLOSE

            with Between(server.port, rule) as between:
                u = "redis://127.0.0.1:%d" % between.port
                if cut < 2:
                    true(b"users     5,000" in good("info", u), "all of them")
                    same(seen.count(b"0"), 1 + cut)
                else:
                    bad("closed the connection", "info", u)


def slots_of(*ranges):
    """As CLUSTER SLOTS has them: first, last, port."""
    return b"*%d\r\n" % len(ranges) + b"".join(
        b"*3\r\n:%d\r\n:%d\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % r for r in ranges)


def walks_of_clusters(module):
    """Each page is asked of its node alone; when slots move, the walk says so. Two
    servers that know of no cluster, behind two who say that they are one."""
    with Server(module) as one, Server(module) as two:
        maps, asked = [], [[], []]

        def rule(i):
            def look(args):
                if args[0] == b"CLUSTER":
                    asked[i].append(b"CLUSTER")
                    return maps[0] if len(maps) == 1 or not asked[0].count(b"SCAN") else maps[1]
                if args[0] == b"SCAN":
                    asked[i].append(b"SCAN")
            return look

        with Between(one.port, rule(0)) as a, Between(two.port, rule(1)) as b:
            maps.append(slots_of((0, 8191, a.port), (8192, 16383, b.port)))
            u = "redis://127.0.0.1:%d" % a.port
            good("mark", u, text="".join("user%d\titem\n" % i for i in range(9000)).encode())
            sizes = [s.client()("DBSIZE") for s in (one, two)]
            same(sum(sizes), 9000)
            asked[0].clear()
            true(b"users     9,000" in good("info", u), "all of them")
            for i, size in enumerate(sizes):
                true(size / 1000 <= asked[i].count(b"SCAN") <= size / 1000 + 3,
                     "%d of %d" % (asked[i].count(b"SCAN"), size))
            true(asked[0].count(b"CLUSTER") + asked[1].count(b"CLUSTER") < 8, repr(asked))
            # One loses its slots once its first page has been read.
            asked[0].clear()
            maps.append(slots_of((0, 16383, b.port)))
            bad("slots of the cluster have moved", "info", u)


run([users_on_a_server, servers_without_the_module, passwords, the_same_ids_everywhere,
     filters, go_zero, bitmaps, leaving, what_is_not_ours, slips_create_nothing,
     two_who_create, walks, walks_of_clusters, a_server_that_comes_back, clusters])
