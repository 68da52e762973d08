"""Servers that answer with something else than was asked for.

Between the program and a real server stands somebody who lets the conversation run
until one command, and answers that one himself: with every type of reply that it does
not have, with too much, with too little, with replies of RESP3. Whatever comes, the
program ends with an error and a sentence, or says what it says without him; it never
takes such a reply for a "no", and never falls.
"""
import subprocess

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


def ask(port, args, text):
    full = [a.replace("HOST", "127.0.0.1:%d" % port) for a in args]
    done = subprocess.run([SEEN] + full, input=text, capture_output=True, timeout=60)
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


if __name__ == "__main__":
    run([wrong_replies_are_errors])
