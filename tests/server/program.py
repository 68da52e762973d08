"""The program, for tests of what it does with servers: `seen` is the fourth argument."""
import subprocess
import sys

from lib import same, true

SEEN = sys.argv[4]


class Run:
    def __init__(self, *args, text=b""):
        done = subprocess.run([SEEN] + list(args), input=text, capture_output=True)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr.decode()


def good(*args, text=b""):
    r = Run(*args, text=text)
    true(r.code == 0, "%r: %d, %s" % (args, r.code, r.err))
    return r.out


def bad(says, *args, text=b""):
    r = Run(*args, text=text)
    same(r.code, 2, repr(args))
    true(says in r.err, "%r: %r, expected %r" % (args, r.err, says))


def lines(items):
    return "".join("%s\n" % i for i in items).encode()
