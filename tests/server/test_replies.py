"""Servers that answer with something else than was asked for.

Between the program and a real server stands somebody who lets the conversation run
until one command, and answers that one himself: with every type of reply that it does
not have, with too much, with too little, with replies of RESP3. Whatever comes, the
program ends with an error and a sentence, or says what it says without him; it never
takes such a reply for a "no", and never falls.

Nor does anybody hold it for ever: replies that come byte by byte, commands that are read
byte by byte, and nodes that send it to each other end with timeout and patience.
"""
import concurrent.futures
import io
import socket
import subprocess
import time

from between import CLOSE, Between
from lib import SCALE, Server, run, same, true
from program import SEEN, good, lines

DEEP = b"*1\r\n" * 100000 + b":1\r\n"
REPLIES = {
    "integer": b":12345678901\r\n", "negative": b":-7\r\n", "nil": b"$-1\r\n",
    "nil array": b"*-1\r\n", "string": b"$5\r\nhello\r\n", "empty": b"$0\r\n\r\n",
    "NUL": b"$3\r\na\0b\r\n", "status": b"+STRANGE\r\n", "no elements": b"*0\r\n",
    "integers": b"*2\r\n:5\r\n:6\r\n", "nils": b"*2\r\n$-1\r\n$-1\r\n",
    "nested": b"*2\r\n*1\r\n*1\r\n:1\r\n*0\r\n", "strings": b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    "error": b"-ERR \x1b[31mno\r\n", "errors": b"*1\r\n-ERR no\r\n",
    "moved nowhere": b"-MOVED 1 x\r\n", "ask nobody": b"-ASK 1 :\r\n",
    "huge array": b"*2147483647\r\n:1\r\n", "huge string": b"$2000000000\r\nabc",
    "deep": DEEP, "no reply": b"hello\r\n", "bad length": b"$-5\r\n", "bad count": b"*-7\r\n",
    "map": b"%1\r\n+a\r\n:1\r\n", "true": b"#t\r\n", "null": b"_\r\n", "double": b",1.5\r\n",
    "big": b"(123456789012345678901234567890\r\n", "set": b"~1\r\n:1\r\n",
    "push": b">1\r\n:1\r\n", "verbatim": b"=5\r\ntxt:a\r\n",
}

# What is a reply of this command, and means something.
MEANT = {
    (b"LRANGE", "no elements"), (b"SEEN.FRESH", "no elements"), (b"SEEN.TAKE", "no elements"),
    (b"SEEN.MARK", "integer"), (b"SEEN.MARKP", "integer"), (b"SEEN.FORGET", "integer"),
    (b"LLEN", "integer"), (b"PTTL", "integer"), (b"BITCOUNT", "integer"),
    (b"COMMAND", "nil"), (b"CLUSTER", "no elements"), (b"CLUSTER", "error"),
    (b"CLUSTER", "moved nowhere"), (b"CLUSTER", "ask nobody"), (b"TYPE", "error"),
    (b"TYPE", "moved nowhere"), (b"TYPE", "ask nobody"), (b"SET", "status"),
    (b"SET", "nil"), (b"SET", "nil array"), (b"BF.RESERVE", "status"), (b"AUTH", "status"),
    (b"SELECT", "status"), (b"SEEN.EXPORT", "nil"), (b"SEEN.EXPORT", "nil array"),
    (b"GET", "nil"), (b"GET", "nil array"), (b"BF.INFO", "strings"),
}


KEYS = lines("k%d" % i for i in range(3))
PATIENCE = "timeout=2000&patience=30"

# arguments (URL is replaced), input, what is on the server before
CASES = [
    (("check", "redis://HOST?key=f&" + PATIENCE), KEYS),
    (("add", "redis://HOST?key=f&" + PATIENCE), KEYS),
    (("add", "redis://HOST?key=new&" + PATIENCE, "-n", "100", "-p", "0.01"), KEYS),
    (("info", "redis://HOST?key=f&" + PATIENCE), b""),
    (("check", "redis+plain://HOST/p?" + PATIENCE), KEYS),
    (("add", "redis+plain://HOST/p?" + PATIENCE), KEYS),
    (("add", "redis+plain://HOST/new?" + PATIENCE, "-n", "100", "-p", "0.01"), KEYS),
    (("info", "redis+plain://HOST/p?" + PATIENCE), b""),
    (("check", "redis+gozero://HOST/g?bits=20000&" + PATIENCE), KEYS),
    (("add", "redis+gozero://HOST/g?bits=20000&" + PATIENCE), KEYS),
    (("info", "redis+gozero://HOST/g?bits=20000&" + PATIENCE), b""),
    (("check", "redis+bitmap://HOST/b?bits=20000&" + PATIENCE), b"5\n6\n"),
    (("add", "redis+bitmap://HOST/b?bits=20000&" + PATIENCE), b"5\n6\n"),
    (("remove", "redis+bitmap://HOST/b?bits=20000&" + PATIENCE), b"9\n"),
    (("info", "redis+bitmap://HOST/b?bits=20000&" + PATIENCE), b""),
    (("fresh", "redis://HOST?prefix=u:&" + PATIENCE, "ann"), KEYS + b"other\n"),
    (("take", "redis://HOST?prefix=u:&" + PATIENCE, "ann", "-n", "1"), KEYS + b"other\n"),
    (("mark", "redis://HOST?prefix=u:&" + PATIENCE, "ann", "z"), b""),
    (("info", "redis://HOST?prefix=u:&" + PATIENCE), b""),
    (("info", "redis://HOST?prefix=u:&" + PATIENCE, "--user", "ann"), b""),
    (("forget", "redis://HOST?prefix=u:&" + PATIENCE, "ann", "y"), b""),
    (("fresh", "redis+list://HOST?prefix=l:&" + PATIENCE, "ann"), KEYS),
    (("take", "redis+list://HOST?prefix=l:&" + PATIENCE, "ann", "-n", "1"), KEYS),
    (("mark", "redis+list://HOST?prefix=l:&" + PATIENCE, "ann", "z"), b""),
    (("info", "redis+list://HOST?prefix=l:&" + PATIENCE), b""),
    (("info", "redis+list://HOST?prefix=l:&" + PATIENCE, "--user", "ann"), b""),
]


def fill(server):
    r = server.client()
    r("FLUSHALL")
    at = "127.0.0.1:%d" % server.port
    good("add", "redis://%s?key=f" % at, "-n", "100", "-p", "0.01", text=KEYS)
    good("add", "redis+plain://%s/p" % at, "-n", "100", "-p", "0.01", text=KEYS)
    good("add", "redis+gozero://%s/g?bits=20000" % at, text=KEYS)
    good("add", "redis+bitmap://%s/b?bits=20000" % at, text=b"5\n6\n9\n")
    good("mark", "redis://%s?prefix=u:" % at, "ann", "k0", "longer")
    good("mark", "redis+list://%s?prefix=l:" % at, "ann", "k0", "k1")
    return [("RESTORE", k, "0", r("DUMP", k)) for k in r("KEYS", "*")]


def ask(port, args, text, limit=60):
    full = [a.replace("HOST", "127.0.0.1:%d" % port) for a in args]
    done = subprocess.run([SEEN] + full, input=text, capture_output=True, timeout=limit)
    return done.returncode, done.stdout.replace(b":%d" % port, b""), done.stderr


def some_replies(turn):
    """All of them with a scale of 3; otherwise every third, and others the next time."""
    every = max(1, 3 // SCALE)
    return list(REPLIES.items())[turn % every::every]


def wrong_replies_are_errors(module):
    """Every command of every case."""
    tried = turn = 0
    everywhere = set()  # what all cases begin with is tried once
    with Server(module) as server:
        whole = [("FLUSHALL",)] + fill(server)
        r = server.client()
        for args, text in CASES:
            r.many(whole)
            names = []

            def note(command):
                names.append(command[0].upper())

            with Between(server.port, note) as between:
                truth = ask(between.port, args, text)
            same(truth[0] in (0, 1), True, "%r: %r" % (args, truth))
            for at in range(len(names)):
                if at > 0 and names[at] == names[at - 1]:
                    continue  # one of a pipeline
                if names[at] in everywhere:
                    continue
                if names[at] in (b"CLUSTER", b"TYPE", b"COMMAND"):
                    everywhere.add(names[at])
                for kind, reply in some_replies(turn):
                    turn += 1
                    r.many(whole)
                    seen = []

                    def once(command):
                        seen.append(command[0].upper())
                        if len(seen) != at + 1:
                            return None
                        # The rest of that string never comes.
                        return (reply, CLOSE) if kind == "huge string" else reply

                    with Between(server.port, once) as between:
                        code, out, err = ask(between.port, args, text)
                    what = "%s, %s answered with %s: %r" % (
                        " ".join(args), names[at].decode(), kind, (code, out, err))
                    true(b"\x1b" not in err + out, what)
                    tried += 1
                    if (names[at], kind) in MEANT:
                        true(code in (0, 1, 2), what)
                    elif code != 2:
                        same((code, out), truth[:2], what)
                    else:
                        true(err.startswith(b"seen "), what)
                        true(b"forget removes" not in err, what)
    print("tried %d replies" % tried)


# ---- Time -------------------------------------------------------------------------

LIMIT = 30  # seconds; without an end these take minutes or hours
HASTE = "timeout=300&patience=0"
GREETED = [(("check", "redis://:word@HOST/3?key=f&" + PATIENCE), KEYS)]


def drip(of=b"$100000\r\n" + 100000 * b"x"):
    for i in range(len(of)):
        yield of[i:i + 1]
        time.sleep(0.1)


def replies_that_drip(module):
    """Each command of each case, those of a greeting among them."""
    def greeting(command):
        return b"+OK\r\n" if command[0].upper() in (b"AUTH", b"SELECT") else None

    def one(args, text, name):
        hit = []

        def rule(command):
            if command[0].upper() == name:
                hit.append(name)
                return drip()
            return greeting(command)
        with Between(server.port, rule) as between:
            code, out, err = ask(between.port, args, text, LIMIT)
        what = "%s, %s drips: %r" % (" ".join(args), name.decode(), (code, out, err))
        true(hit, what)
        if name in (b"CLUSTER", b"COMMAND", b"TYPE"):  # it can do without
            true(code in (0, 1, 2), what)
            return
        same((code, out), (2, b""), what)
        true(b"no end of a reply within 300 ms" in err, what)

    with Server(module) as server, concurrent.futures.ThreadPoolExecutor(8) as several:
        fill(server)
        jobs, known = [], set()
        for args, text in GREETED + CASES:
            names = []
            with Between(server.port, lambda c: names.append(c[0].upper()) or greeting(c)) as b:
                ask(b.port, args, text)
            hasty = tuple(a.replace(PATIENCE, HASTE) for a in args)
            for name in sorted(set(names) - known):
                known |= {name} & {b"CLUSTER", b"COMMAND", b"TYPE", b"AUTH", b"SELECT"}
                # What is new is so to each of them.
                own = [a.replace("new", "new%d" % len(jobs)) for a in hasty]
                jobs.append(several.submit(one, own, text, name))
        true({b"AUTH", b"SELECT", b"CLUSTER"} <= known, repr(known))
        for job in jobs:
            job.result()
    print("tried %d drips" % len(jobs))


class Slowly(io.RawIOBase):
    """What a socket has, 20 KB a second."""

    def __init__(self, socket_):
        self.socket = socket_

    def readable(self):
        return True

    def readinto(self, to):
        time.sleep(0.05)
        return self.socket.recv_into(to, min(len(to), 1024))


class SlowReader(Between):
    def __init__(self, port, rule):
        super().__init__(port, rule)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    @staticmethod
    def commands_of(client):
        return io.BufferedReader(Slowly(client))


def commands_that_are_read_slowly(module):
    """40 MB at 20 KB a second, which is less than 64 KiB in 300 ms."""
    with Server(module) as server, SlowReader(server.port, lambda command: None) as between:
        code, out, err = ask(between.port, ("take", "redis://HOST?" + HASTE, "ann", "-n", "1"),
                             lines("%08d" % i + 100000 * "x" for i in range(400)), LIMIT)
        same((code, out), (2, b""), err.decode())
        true(b"not all that was to be sent was taken within 300 ms" in err, err.decode())


def long_pipelines(module):
    """Who makes progress may take longer than the timeout."""
    def rule(_):
        commands.append(time.sleep(0.01))
    commands = []
    with Server(module) as server, Between(server.port, rule) as between:
        fill(server)
        many, began = lines("k%d" % (i % 3) for i in range(300)), time.time()
        code, out, err = ask(between.port, ("check", "redis+plain://HOST/p?" + HASTE), many)
        same((code, out), (0, many), err.decode())
        true(len(commands) > 300 and time.time() - began > 3, "%d commands" % len(commands))


def nodes_that_disagree(module):
    """A slot that nobody has, and a map whose nodes are silent: patience ends, and nobody is
    asked thousands of times."""
    seen = []

    def send_on(command):
        seen.append(command)
        if command[0] != b"CLUSTER":
            return b"-MOVED 7 127.0.0.1:%d\r\n" % between.port
        return None
    with Server(module) as server, Between(server.port, send_on) as between:
        code, _, err = ask(between.port, ("check", "redis://HOST?key=f&timeout=300&patience=1000"),
                           KEYS, LIMIT)
        same(code, 2, err.decode())
        true(b"MOVED" in err, err.decode())
        true(5 < len(seen) < 100, "%d commands" % len(seen))

    # 200 addresses of one socket, which accepts and says nothing.
    with socket.create_server(("0.0.0.0", 0), backlog=1000) as silent:
        port = silent.getsockname()[1]
        hosts = [b"127.0.1.%d" % (i + 1) for i in range(200)]
        whole = b"*200\r\n" + b"".join(
            b"*3\r\n:%d\r\n:%d\r\n*2\r\n$%d\r\n%s\r\n:%d\r\n"
            % (i * 81, 16383 if i == 199 else i * 81 + 80, len(host), host, port)
            for i, host in enumerate(hosts))
        maps = [whole]

        def forget(command):
            if command[0] == b"CLUSTER":
                return maps.pop() if maps else b"-ERR no cluster\r\n"
            return None
        with Server(module) as server, Between(server.port, forget) as between:
            code, _, err = ask(between.port, ("check",
                                              "redis://HOST?key=f&timeout=500&patience=1000"),
                               KEYS, LIMIT)
            same((code, maps), (2, []), err.decode())
            true(b"no reply within 500 ms" in err, err.decode())


def no_timeout_is_none(module):
    with Server(module) as server:
        code, _, err = ask(server.port, ("check", "redis://HOST?key=f&timeout=0"), KEYS)
        same(code, 2)
        true(b"timeout=0: expected 1 to 3600000 ms" in err, err.decode())


if __name__ == "__main__":
    run([wrong_replies_are_errors, replies_that_drip, commands_that_are_read_slowly,
         long_pipelines, nodes_that_disagree, no_timeout_is_none])
