"""Filters and lists on servers that fail: killed, restarted with and without what they
held, read-only, out of disk, silent, without their scripts; a primary of a cluster that
dies. Every layout for plain servers: no wrong "absent", adds are repeated, errors say
what happened. Arguments: module - - seen."""
import os
import re
import signal
import socket
import subprocess
import threading
import time

from cluster import Cluster
from lib import SCALE, Server, run, same, true, wait_for
from program import SEEN, bad, good, lines

KEEPING = ["--appendonly", "yes", "--appendfsync", "always"]


class Layout:
    """One way to keep numbers on a server: how they get there, which are missing."""

    def __init__(self, name, url, create=(), user=None):
        self.name, self.url, self.create, self.user = name, url, list(create), user

    def at(self, port, *more):
        url = self.url % port
        for parameter in more:
            url += ("&" if "?" in url else "?") + parameter
        return url

    def add(self, u):
        if self.user:
            return [SEEN, "mark", u]
        return [SEEN, "add", u] + self.create

    def put(self, u, numbers):
        r = subprocess.run(self.add(u), input=self.text(numbers), capture_output=True)
        true(r.returncode == 0, "%s: %s" % (self.name, r.stderr))

    def refuses(self, u, says, numbers):
        r = subprocess.run(self.add(u), input=self.text(numbers), capture_output=True)
        same(r.returncode, 2, self.name)
        true(says in r.stderr.decode(), "%s: %s" % (self.name, r.stderr))

    def text(self, numbers):
        """Lines for add and missing; some users, one after the other."""
        if not self.user:
            return lines(numbers)
        return b"".join(b"%s%d\t%d\n" % (self.user, i // 500, i) for i in numbers)

    def question(self, u):
        """Prints who is absent."""
        return [SEEN, "fresh", u] if self.user else [SEEN, "check", "-v", u]

    def ask(self, u, numbers):
        return subprocess.run(self.question(u), input=self.text(numbers), capture_output=True)

    def none_missing(self, u, numbers):
        r = self.ask(u, numbers)
        same(r.stdout, b"", "%s: absent" % self.name)
        true(r.returncode == (0 if self.user else 1), "%s: %s" % (self.name, r.stderr))

    def fails(self, u, says, numbers=range(10)):
        """Asking is an error, and says nothing is absent."""
        r = self.ask(u, numbers)
        same((r.returncode, r.stdout), (2, b""), self.name)
        true(says in r.stderr.decode(), "%s: %r, expected %r" % (self.name, r.stderr, says))


LAYOUTS = [
    Layout("gozero", "redis+gozero://127.0.0.1:%d/{x}z?bits=2000000"),
    Layout("bitmap", "redis+bitmap://127.0.0.1:%d/{x}b?bits=1000000"),
    Layout("plain", "redis+plain://127.0.0.1:%d/{x}p", ["-n", "100000", "-p", "0.1%"]),
    Layout("list", "redis+list://127.0.0.1:%d?prefix={x}l:", user=b"user"),
]


def restart(server):
    server.stop()
    server.process = subprocess.Popen(server.process.args, env=server.environment,
                                      stdout=subprocess.DEVNULL)


def connections(client):
    """How many there have been."""
    return int(re.search(rb"total_connections_received:(\d+)", client("INFO", "stats"))[1])


def killed_and_restarted(module):
    """Adds go on when the server is killed and comes back with what it had; questions
    wait for it. Nothing is lost, and nothing is said to be absent meanwhile."""
    for layout in LAYOUTS:
        with Server(module, options=KEEPING) as server:
            u = layout.at(server.port, "patience=60000")
            half, whole = range(10000), range(20000)
            layout.put(u, half)
            r = server.client()
            before = connections(r)
            adding = subprocess.Popen(layout.add(u), stdin=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
            adding.stdin.write(layout.text(range(10000, 15000)))
            adding.stdin.flush()
            wait_for(lambda: connections(r) > before, "a connection")
            asked = []
            asking = threading.Thread(target=lambda: asked.append(layout.ask(u, half)))
            asking.start()
            restart(server)
            adding.stdin.write(layout.text(range(15000, 20000)))
            adding.stdin.close()
            true(adding.wait() == 0, "%s: %s" % (layout.name, adding.stderr.read()))
            asking.join()
            same(asked[0].stdout, b"", "%s: absent while it was away" % layout.name)
            layout.none_missing(u, whole)


def gone_for_good(module):
    """A server that is dead, or has forgotten everything."""
    for layout in LAYOUTS:
        with Server(module) as server:
            u = layout.at(server.port, "patience=300")
            layout.put(u, range(3000))
            # Dies between opening and asking: the program is waiting for its lines.
            asking = subprocess.Popen(layout.question(u), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_for(lambda: len(server.client()("CLIENT", "LIST").split(b"\n")) > 2, "it")
            time.sleep(0.1)
            server.stop()
            out, err = asking.communicate(layout.text(range(10)))
            same((asking.returncode, out), (2, b""), layout.name)
            true(re.search("refused|closed|reset", err.decode()), "%s: %s" % (layout.name, err))
            layout.fails(u, "Connection refused")
            restart(server)  # it kept nothing
            wait_for(server.wait_up, "the server")
            if layout.name == "plain":
                layout.fails(u, "no such filter")


def emptied_under_it(module):
    """A filter in plain strings whose server restarts without them is unknown to who has
    it open, whatever is added afterwards."""
    plain = LAYOUTS[2]
    with Server(module) as server:
        u = plain.at(server.port, "patience=20000")
        for verb in (["check", "-v", u], ["add", u]):
            good("add", u, *plain.create, text=lines(range(1000)))
            waiting = subprocess.Popen([SEEN] + verb, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_for(lambda: len(server.client()("CLIENT", "LIST").split(b"\n")) > 2, "it")
            time.sleep(0.1)
            restart(server)
            out, err = waiting.communicate(lines(range(1000)))
            same((waiting.returncode, out), (2, b""), repr(verb))
            true(b"is gone" in err, err.decode())
            wait_for(server.wait_up, "the server")


def read_only(module):
    """As a replica, or with too few of its own, a server is asked and not added to. Who
    adds waits for it, and gives up with its sentence."""
    with Server(module) as primary, Server(module) as server:
        r = server.client()
        for layout in LAYOUTS:
            u = layout.at(server.port, "patience=300")
            layout.put(u, range(1000))
            layout.put(layout.at(primary.port), range(1000))
        for setting, back, says in (
                (["CONFIG", "SET", "min-replicas-to-write", "1"],
                 ["CONFIG", "SET", "min-replicas-to-write", "0"], "NOREPLICAS"),
                (["REPLICAOF", "127.0.0.1", primary.port], ["REPLICAOF", "NO", "ONE"],
                 "READONLY")):
            r(*setting)
            if says == "READONLY":
                wait_for(lambda: b"master_link_status:up" in r("INFO", "replication"), "sync")
            digest = r("DEBUG", "DIGEST")
            for layout in LAYOUTS:
                u = layout.at(server.port, "patience=300")
                layout.none_missing(u, range(1000))
                layout.refuses(u, says, range(5000, 5100))
            same(r("DEBUG", "DIGEST"), digest, "nothing changed")
            bad(says, "take", LAYOUTS[3].at(server.port, "patience=300"), "user0", "-n", "1",
                text=b"never\n")
            # Soon it can be written to again: the adds wait for that.
            waiting = [(layout, subprocess.Popen(
                layout.add(layout.at(server.port, "patience=60000")), stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL)) for layout in LAYOUTS]
            for layout, p in waiting:
                p.stdin.write(layout.text(range(7000, 7100)))
                p.stdin.close()
            time.sleep(0.3)
            r(*back)
            for layout, p in waiting:
                same(p.wait(), 0, layout.name)
                layout.none_missing(layout.at(server.port), range(7000, 7100))


def no_disk_and_no_memory(module):
    with Server(module, options=["--save", "3600 1"]) as server:
        r = server.client()
        for layout in LAYOUTS:
            layout.put(layout.at(server.port), range(1000))
        r("CONFIG", "SET", "maxmemory", "1")
        for layout in LAYOUTS:
            u = layout.at(server.port)
            layout.none_missing(u, range(1000))
            layout.refuses(u, "OOM", range(5000, 5100))
        r("CONFIG", "SET", "maxmemory", "0")
        # A snapshot that cannot be written stops writes.
        os.mkdir(os.path.join(server.directory, "dump.rdb"))
        r("BGSAVE")
        wait_for(lambda: b"rdb_last_bgsave_status:err" in r("INFO", "persistence"), "an error")
        for layout in LAYOUTS:
            u = layout.at(server.port)
            layout.none_missing(u, range(1000))
            layout.refuses(u, "MISCONF", range(6000, 6100))


def silent(module):
    """A server that does not answer is given up after timeout and patience, and errors
    are not answers. When it wakes up, what was repeated is done."""
    with Server(module) as server:
        for layout in LAYOUTS:
            layout.put(layout.at(server.port), range(1000))
        verbs = [(layout, layout.add(layout.at(server.port, "timeout=1000", "patience=60000")))
                 for layout in LAYOUTS]
        runs = [(layout, subprocess.Popen(verb, stdin=subprocess.PIPE, stderr=subprocess.PIPE))
                for layout, verb in verbs]
        asking = [subprocess.Popen(layout.question(layout.at(server.port, "timeout=1000",
                                                             "patience=3000")),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE) for layout in LAYOUTS]
        wait_for(lambda: server.client()("CLIENT", "LIST").count(b"\n") > 8, "all of them")
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            for layout, p in runs:
                p.stdin.write(layout.text(range(2000, 3000)))
                p.stdin.close()
            for layout, p in zip(LAYOUTS, asking):
                p.stdin.write(layout.text(range(10)))
                p.stdin.close()
                p.stdin = None  # communicate() would flush it
            for layout, p in zip(LAYOUTS, asking):
                out, err = p.communicate(timeout=60)
                same((p.returncode, out), (2, b""), layout.name)
                true(b"no reply within 1000 ms" in err, err.decode())
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        for layout, p in runs:
            true(p.wait() == 0, "%s: %s" % (layout.name, p.stderr.read()))
            layout.none_missing(layout.at(server.port), range(2000, 3000))


def taken_in_silence(module):
    """Nobody knows whether a take without an answer happened, and the program says so."""
    with Server(module) as server:
        u = LAYOUTS[3].at(server.port, "timeout=100", "patience=400")
        for pause in (0.1, 0.3, 1, 3, 10):  # it must have opened the store before
            r = server.client()
            before = connections(r)
            taking = subprocess.Popen([SEEN, "take", u, "user0", "-n", "1"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
            wait_for(lambda: connections(r) > before or taking.poll(), "a connection")
            time.sleep(pause)
            os.kill(server.process.pid, signal.SIGSTOP)
            out, err = taking.communicate(b"new\n")
            os.kill(server.process.pid, signal.SIGCONT)
            same((taking.returncode, out), (2, b""), err.decode())
            if b"whether it happened is not known" in err:
                return
        raise AssertionError(err.decode())


def passwords(module):
    with Server(module) as server:
        server.client()("CONFIG", "SET", "requirepass", "p@ss")
        for layout in LAYOUTS:
            layout.fails(layout.at(server.port), "NOAUTH")
            wrong = layout.at(server.port).replace("//", "//:no@")
            layout.fails(wrong, "WRONGPASS")
            u = layout.at(server.port).replace("//", "//default:p%40ss@")
            layout.put(u, range(100))
            layout.none_missing(u, range(100))


def scripts_flushed(module):
    """Marks, takes and adds while the server forgets its scripts again and again."""
    with Server(module) as server:
        stop = threading.Event()

        def flush():
            r = server.client()
            while not stop.is_set():
                r("SCRIPT", "FLUSH")
        flushing = threading.Thread(target=flush)
        flushing.start()
        try:
            for layout in LAYOUTS:
                u = layout.at(server.port)
                layout.put(u, range(5000))
                layout.none_missing(u, range(5000))
            u, taken = LAYOUTS[3].at(server.port), []
            for _ in range(20):
                taken += good("take", u, "taker", "-n", "10", text=lines(range(1000))).split()
        finally:
            stop.set()
            flushing.join()
        same(len(set(taken)), 200)


# ---- A cluster -----------------------------------------------------------------

class Lossy:
    """Between the program and a server: the reply to the first command that contains
    `word` is lost, and the connection with it."""

    def __init__(self, port, word):
        self.port, self.word, self.lost = port, word, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.create_connection(("127.0.0.1", self.port))
        with client, server:
            while True:
                data = client.recv(1 << 20)
                if not data:
                    return
                server.sendall(data)
                reply = server.recv(1 << 20)
                if self.word in data and not self.lost:
                    self.lost += 1
                    return
                client.sendall(reply)


def lost_replies(module):
    """What is as good done twice is done again; what is not is an error that says so."""
    with Server(module) as server:
        r, at = server.client(), "127.0.0.1:%d" % server.port
        gozero = "redis+gozero://%s/bloom?bits=1000"
        proxy = Lossy(server.port, b"BITFIELD")
        good("add", gozero % proxy.at, text=b"a\nb\n")
        same((proxy.lost, good("check", gozero % proxy.at, text=b"a\nb\nc\n")), (1, b"a\nb\n"))
        proxy = Lossy(server.port, b"UNLINK")
        bad("is not known", "forget", gozero % proxy.at)
        same((proxy.lost, r("EXISTS", "bloom")), (1, 0))

        bitmap = "redis+bitmap://%s/bits?bits=100"
        good("add", bitmap % at, text=b"1\n2\n")
        proxy = Lossy(server.port, b"SETBIT")
        bad("is not known", "remove", bitmap % proxy.at, text=b"1\n")

        # A list near its end: marked twice, they would push out the oldest filter.
        u = "redis+list://%s?prefix=l:"
        for f in range(4):
            good("mark", u % at, text=lines("bob\t%d-%d" % (f, i) for i in range(990)))
        shown = [b"%d-%d" % (0, i) for i in range(990)]
        proxy = Lossy(server.port, b"EVALSHA")
        bad("is not known", "mark", u % proxy.at, text=lines("bob\tlast-%d" % i for i in range(600)))
        same(good("fresh", u % at, "bob", text=b"".join(i + b"\n" for i in shown)), b"",
             "the oldest filter is there")
        proxy = Lossy(server.port, b"EVALSHA")
        good("mark", u % proxy.at, text=lines("carol\t%d" % i for i in range(20)))
        same((proxy.lost, r("LLEN", "l:carol")), (1, 1))


def a_primary_fails_over(module):
    """The primary that has all four layouts is killed while keys are added and asked for.
    What its replica had is never absent; what was acknowledged and not yet sent on may be
    lost, which is counted."""
    if SCALE < 2:
        print("     left out: SEEN_TEST_SCALE is 1")
        return
    with Cluster(module) as cluster:
        def info(port, section):
            return cluster.node(port)("INFO", section).decode()

        def owner_of_all(asked):
            slot = cluster.node(asked)("CLUSTER", "KEYSLOT", "{x}")
            return next(r[2][1] for r in cluster.node(asked)("CLUSTER", "SLOTS")
                        if r[0] <= slot <= r[1])
        wait_for(lambda: all("master_link_status:up" in info(p, "replication") or
                             "role:master" in info(p, "replication")
                             for p in cluster.known), "the replicas")
        owner = owner_of_all(cluster.port)
        entry = next(p for p in cluster.known if p != owner)
        known = range(5000)
        for layout in LAYOUTS:
            layout.put(layout.at(entry), known)
        offset = re.compile(r"slave0:.*offset=(\d+)|master_repl_offset:(\d+)")

        def caught_up():
            found = offset.findall(info(owner, "replication"))
            return len(found) == 2 and found[0][0] == found[1][1]
        wait_for(caught_up, "the replica")
        pid = int(info(owner, "server").split("process_id:")[1].split()[0])
        more, patience = range(100000, 120000), "patience=60000"
        adding = [(layout, subprocess.Popen(layout.add(layout.at(entry, patience)),
                                            stdin=subprocess.PIPE, stderr=subprocess.PIPE))
                  for layout in LAYOUTS]
        asked, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                for layout in LAYOUTS:
                    asked.append((layout, layout.ask(layout.at(entry, patience), known)))
        asking = threading.Thread(target=ask)
        asking.start()
        for layout, p in adding:
            p.stdin.write(layout.text(more[:10000]))
            p.stdin.flush()
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        for layout, p in adding:
            p.stdin.write(layout.text(more[10000:]))
            p.stdin.close()
        for layout, p in adding:
            true(p.wait() == 0, "%s: %s" % (layout.name, p.stderr.read()))
        stop.set()
        asking.join()
        true(owner_of_all(entry) != owner, "another node has taken over")
        for layout, r in asked:
            same(r.stdout, b"", "%s: absent during the failover" % layout.name)
            true(r.returncode == (0 if layout.user else 1), "%s: %s" % (layout.name, r.stderr))
        lost = {}
        for layout in LAYOUTS:
            layout.none_missing(layout.at(entry), known)
            lost[layout.name] = layout.ask(layout.at(entry), more).stdout.count(b"\n")
            true(lost[layout.name] <= 10000, "only what was before the crash")
        print("     %d runs asked meanwhile; lost of 20,000 acknowledged: %r" %
              (len(asked), lost))


run([killed_and_restarted, gone_for_good, emptied_under_it, read_only, no_disk_and_no_memory,
     silent, taken_in_silence, passwords, scripts_flushed, lost_replies, a_primary_fails_over])
