"""Passwords: where they come from, and that they are seen nowhere."""
import os
import subprocess
import tempfile

from between import Between
from lib import Server, run, same, true, wait_for
from program import SEEN

SECRET = "s3cr3t-Pa55w0rd"
NAMES = ("SEEN_REDIS_PASSWORD", "REDISCLI_AUTH")


def call(args, text=b"", **environment):
    """Exit code, stdout, stderr; the password is in neither."""
    clean = {k: v for k, v in os.environ.items() if k not in NAMES}
    done = subprocess.run([SEEN] + list(args), input=text, capture_output=True,
                          env=dict(clean, **environment), timeout=60)
    said = done.stdout + done.stderr
    true(SECRET.encode() not in said and b"Pa55" not in said, "%r: %r" % (args, said))
    return done.returncode, done.stdout, done.stderr.decode()


# What may stand in a URL around the password, also by mistake.
LOGINS = ["default:%s@", ":%s@", "%s@", "default:no%s@", "%%zz%s@", "a:b:%s@", "ann:x/%s@",
          "ann:x?%s@", "ann:x?a=%s@", "ann:x/%s?@", "default:%s@@", "default:%s@%%",
          "default:x@%s@", "a:%s:b@", "x/%s@", "ann:1/%s@"]
RESTS = ["", "/0", "/nonsense", "?key=f", "?prefix=p", "?what=ever", "?key=f&timeout=x", "/9/9",
         "?key=f&bits=12", "/f?bits=1000", "?password=" + SECRET, "?key=f&key=g"]
SCHEMES = ["redis", "redis+plain", "redis+gozero", "redis+bitmap", "redis+list", "rediss",
           "redis+unix", "REDIS", "Redis+Bitmap"]
# Of others, what is a login in any URL.
OTHERS = ["http", "valkey", "VALKEY", "s3", "my-own", "a.b+c", "x=y", ""]
VERBS = [["check"], ["add"], ["add", "-n", "10", "-p", "0.1"], ["info"], ["info", "--json"],
         ["remove"], ["forget"], ["verify"], ["sweep"], ["convert", "--to", "gobloom", "-o", "-"],
         ["merge", "-o", "-"], ["fresh", "USER"], ["take", "-n", "1", "USER"], ["mark", "USER"],
         ["backup", "USER"], ["build", "-n", "10", "-o"], ["uniq"], ["check", "-n"], ["chekc"], ["check", "--josn"]]


def they_are_shown_nowhere(module):
    """Good and bad URLs, with every verb."""
    with Server(module) as server:
        server.client()("CONFIG", "SET", "requirepass", SECRET)
        host, n = "127.0.0.1:%d" % server.port, 0
        for login in LOGINS:
            for rest in RESTS:
                for scheme in SCHEMES:
                    n += 1
                    if n % 7 and login != LOGINS[0]:
                        continue
                    verb = VERBS[n % len(VERBS)]
                    url = scheme + "://" + login % SECRET + host + rest
                    args = [verb[0], url] + ["ann" if v == "USER" else v for v in verb[1:]]
                    if verb[0] == "build" or verb[-1] == "-n":
                        args = verb + [url]
                    code, _, err = call(args, b"1\n2\n")
                    true(code in (0, 1, 2), "%r: %d %s" % (args, code, err))
        for scheme in OTHERS:
            for i, login in enumerate(("default:%s@", ":%s@", "a:b:%s@", "default:%s@@",
                                       "a:%s:b@", "a:x@%s@")):
                url = scheme + "://" + login % SECRET + host
                for verb in VERBS[i::4]:
                    args = [verb[0], url] + ["ann" if v == "USER" else v for v in verb[1:]]
                    code, _, err = call(args, b"1\n2\n")
                    true(code in (0, 1, 2), "%r: %d %s" % (args, code, err))
        for args in (["info", "--json"], ["info"], ["check", "-v"], ["add"]):
            url = "redis+bitmap://default:%s@%s/b?bits=100" % (SECRET, host)
            code, out, err = call(args + [url], b"1\n")
            same(code, 0, err)
            if args[0] in ("info", "add"):
                true("redis+bitmap://default:***@" + host in out.decode() + err, "masked")


def they_come_from_elsewhere(module):
    with Server(module) as server, tempfile.TemporaryDirectory() as directory:
        server.client()("CONFIG", "SET", "requirepass", SECRET)
        r = server.client()
        r("AUTH", SECRET)
        r("ACL", "SETUSER", "ann", "on", ">" + SECRET + "/@?%", "~*", "+@all")
        host = "127.0.0.1:%d" % server.port
        filter_ = "redis+bitmap://%s/b?bits=100"
        users = "redis://%s?prefix=u:"
        path = os.path.join(directory, "password")
        with open(path, "w") as f:
            f.write(SECRET + "\n")
        for url, args in ((filter_, ["add"]), (users, ["mark", "ann", "x"])):
            verb, more = args[0], args[1:]
            here = url % host
            same(call([verb, here] + more, b"1\n")[0], 2, "no password")
            for env in ({"SEEN_REDIS_PASSWORD": SECRET}, {"REDISCLI_AUTH": SECRET},
                        {"SEEN_REDIS_PASSWORD": SECRET, "REDISCLI_AUTH": "no"},
                        {"SEEN_REDIS_PASSWORD": "", "REDISCLI_AUTH": SECRET}):
                code, _, err = call([verb, here] + more, b"1\n", **env)
                same(code, 0, "%r %r: %s" % (env, here, err))
            for login, env, good in (
                    ("default:" + SECRET, {"SEEN_REDIS_PASSWORD": "no"}, True),  # the URL wins
                    ("default:no", {"SEEN_REDIS_PASSWORD": SECRET}, False),
                    ("ann:", {"SEEN_REDIS_PASSWORD": SECRET + "/@?%"}, True),  # and says who
                    ("ann:", {"SEEN_REDIS_PASSWORD": SECRET}, False)):
                code, _, err = call([verb, url % (login + "@" + host)] + more, b"1\n", **env)
                same(code, 0 if good else 2, "%s %r: %s" % (login, env, err))
            same(call([verb, here + "&password-file=" + path] + more, b"1\n",
                      SEEN_REDIS_PASSWORD="no")[0], 0, "of a file")
            for file, says in ((path + "-", "No such file"), (directory, "Is a directory"),
                               ("/dev/null", "expected a password")):
                code, _, err = call([verb, here + "&password-file=" + file] + more, b"1\n")
                true(code == 2 and says in err, err)
            code, _, err = call([verb, url % ("x:y@" + host) + "&password-file=" + path] + more,
                                b"1\n")
            true(code == 2 and "give one" in err, err)


def no_process_shows_them(module):
    with Server(module) as server:
        server.client()("CONFIG", "SET", "requirepass", SECRET)
        url = "redis+bitmap://default:%s@127.0.0.1:%d/b?bits=100" % (SECRET, server.port)
        p = subprocess.Popen([SEEN, "add", url], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        name = "/proc/%d/cmdline" % p.pid
        if os.path.exists(name):
            def gone():
                with open(name, "rb") as f:
                    return b"default:" + b"*" * len(SECRET) in f.read()
            wait_for(gone, "the password leaves the arguments")
            with open(name, "rb") as f:
                true(SECRET.encode() not in f.read(), "in the arguments")
        else:
            print("no /proc here: arguments are not looked at")
        p.communicate(b"5\n")
        same(p.returncode, 0)


def items_are_not_passwords(module):
    """A user or an item that looks like a URL stays what it is."""
    item = "redis://ann:%s@example.com/" % SECRET
    with Server(module) as server, tempfile.TemporaryDirectory() as directory:
        for store in (os.path.join(directory, "store"), "redis://127.0.0.1:%d" % server.port):
            for user in ("ann", item, "http://a:b@c"):
                subprocess.run([SEEN, "mark", "-q", store, user, item, "http://a:b@c"], check=True)
                left = subprocess.run([SEEN, "fresh", store, user], capture_output=True,
                                      input=("%s\nhttp://a:b@c\nother\n" % item).encode())
                same(left.stdout, b"other\n")
            # Also those that differ in nothing but what looks like a password.
            alike = ["http://a:1@c", "http://a:2@c", "x=http://a:1@c", "my-own://a:1@c",
                     "redis://a:1@c?password=1", "redis://a:1@c?password=2"]
            subprocess.run([SEEN, "mark", "-q", store, "http://u:1@c"] + alike, check=True)
            asked = "\n".join(alike + ["http://a:***@c", "http://a:3@c"]) + "\n"
            for user, left in (("http://u:1@c", "http://a:***@c\nhttp://a:3@c\n"),
                               ("http://u:2@c", asked)):
                said = subprocess.run([SEEN, "fresh", store, user], capture_output=True,
                                      input=asked.encode())
                same(said.stdout.decode(), left)


def servers_that_repeat_them(module):
    """A server without AUTH says what it was sent: its list of arguments is left out, and
    elsewhere the password is starred, unless it is so short that it may be part of a word."""
    said = b""

    def rule(args):
        return said if args[0] in (b"AUTH", b"CLUSTER") else None
    with Server(module) as server, Between(server.port, rule) as between:
        for password, words, left in (
                (SECRET, "unknown command 'AUTH', with args beginning with: 'default' '%s'",
                 "unknown command 'AUTH'"),
                ("qz7", "unknown command 'AUTH', with args beginning with: 'default' '%s'",
                 "unknown command 'AUTH'"),
                (SECRET, "no user has %s, not even %s", "no user has ***")):
            said = ("-ERR " + words.replace("%s", password) + "\r\n").encode()
            code, _, err = call(["check", "redis://default:%s@127.0.0.1:%d?key=f&patience=1"
                                 % (password, between.port)], b"1\n")
            same(code, 2)
            true(left in err and password not in err, err)


if __name__ == "__main__":
    run([they_are_shown_nowhere, they_come_from_elsewhere, no_process_shows_them,
         items_are_not_passwords, servers_that_repeat_them])
