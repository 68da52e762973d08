"""What the tests of the module share: a server of their own, and a client.

    with Server(module) as server:
        r = server.client()            # RESP2; server.client(3) speaks RESP3
        r("BF.ADD", "k", "item")       # replies as they came; errors are raised

A server runs on a free port of 127.0.0.1 in a directory of its own; both are
gone at the end. SEEN_TEST_SEED and SEEN_TEST_SCALE mean what they mean to the
other tests.
"""
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SEED = int(os.environ.get("SEEN_TEST_SEED", "1"))
SCALE = int(os.environ.get("SEEN_TEST_SCALE", "1"))


class Error(Exception):
    """An error reply."""


class Client:
    """Any command, RESP2 or RESP3, one connection."""

    def __init__(self, port, protocol=2):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.at = 0
        if protocol == 3:
            self("HELLO", "3")

    @staticmethod
    def encode(args):
        out = [b"*%d\r\n" % len(args)]
        for arg in args:
            if isinstance(arg, str):
                arg = arg.encode()
            elif not isinstance(arg, bytes):
                arg = repr(arg).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
        return b"".join(out)

    def more(self, n=1):
        """At least n bytes."""
        pieces = [self.buffer[self.at:]]
        while n > 0:
            pieces.append(self.socket.recv(max(n, 1 << 16)))
            if not pieces[-1]:
                raise ConnectionError("the server has closed the connection")
            n -= len(pieces[-1])
        self.buffer = b"".join(pieces)
        self.at = 0

    def line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.at)
            if end >= 0:
                line = self.buffer[self.at:end]
                self.at = end + 2
                return line
            self.more()

    def take(self, n):
        missing = n + 2 - (len(self.buffer) - self.at)
        if missing > 0:
            self.more(missing)
        data = self.buffer[self.at:self.at + n]
        self.at += n + 2
        return data

    def reply(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind in b"$=":
            return None if rest == b"-1" else self.take(int(rest))
        if kind in b"*~>":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        if kind == b"%":
            pairs = [(self.reply(), self.reply()) for _ in range(int(rest))]
            return dict(pairs)
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"_":
            return None
        raise ValueError("reply of unknown type %r" % line)

    def __call__(self, *args):
        self.socket.sendall(self.encode(args))
        reply = self.reply()
        if isinstance(reply, Error):
            raise reply
        return reply

    def many(self, commands):
        """Send all, then read all; errors are among the replies."""
        self.socket.sendall(b"".join(self.encode(c) for c in commands))
        return [self.reply() for _ in commands]

    def close(self):
        self.socket.close()


def free_port():
    """One that is free, and 10000 above it, too (a cluster's bus). Below those that
    outgoing connections take, and not of those that tests/cli/server.sh has, so that
    a server can have it again."""
    while True:
        port = random.SystemRandom().randrange(15000, 20000)
        try:
            with socket.socket() as s, socket.socket() as bus:
                s.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10000))
                return port
        except OSError:
            pass


class Server:
    """redis-server with the module. `environment` and `before` (a command to
    run it through) are for clocks and sanitizers."""

    def __init__(self, module, arguments=(), options=(), before=(), environment=None):
        self.module, self.arguments = os.path.abspath(module), list(arguments)
        self.options, self.before = list(options), list(before)
        self.environment = dict(os.environ, **(environment or {}))
        preload = os.environ.get("SEEN_TEST_PRELOAD")  # sanitizers of the module
        if preload:
            old = self.environment.get("LD_PRELOAD")
            self.environment["LD_PRELOAD"] = preload + (" " + old if old else "")
        self.directory = tempfile.mkdtemp(prefix="seen-server-")
        self.process = None

    def start(self):
        for _ in range(5):  # somebody may take the port before the server does
            self.port = free_port()
            command = self.before + [
                "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                "--dir", self.directory, "--save", "", "--daemonize", "no",
                "--enable-debug-command", "local", "--logfile", self.log_file(),
                "--repl-diskless-sync-delay", "0",
            ] + self.options + ["--loadmodule", self.module] + self.arguments
            with open(self.log_file(), "ab") as log:  # a sanitizer writes there
                self.process = subprocess.Popen(command, env=self.environment,
                                                stdout=subprocess.DEVNULL, stderr=log)
            if self.wait_up():
                return self
            if self.process.poll() is None:  # it runs, and does not answer
                break
        self.stop()
        raise RuntimeError("the server does not start:\n" + self.log())

    def wait_up(self):
        end = time.time() + 60
        while time.time() < end and self.process.poll() is None:
            try:
                c = Client(self.port)
                c("PING")
                c.close()
                return True
            except (OSError, Error):
                time.sleep(0.02)
        return False

    def log_file(self):
        return os.path.join(self.directory, "log")

    def log(self):
        try:
            with open(self.log_file(), errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def alive(self):
        return self.process.poll() is None

    def client(self, protocol=2):
        return Client(self.port, protocol)

    def stop(self):
        """At once: one that writes its first AOF would not hear SIGTERM."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        try:
            return self.start()
        except RuntimeError:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def __exit__(self, kind, value, trace):
        self.stop()
        if kind:
            sys.stderr.write("the server's log:\n" + self.log()[-4000:] + "\n")
        shutil.rmtree(self.directory, ignore_errors=True)


# ---- Checks ------------------------------------------------------------------

checks = 0


def same(got, expected, what=""):
    global checks
    checks += 1
    if got != expected or type(got) is not type(expected):
        raise AssertionError("%s: got %r, expected %r" % (what, got, expected))


def true(condition, what):
    global checks
    checks += 1
    if not condition:
        raise AssertionError(what)


def refused(client, *command, says=""):
    """The command is an error whose text contains `says`."""
    global checks
    checks += 1
    try:
        reply = client(*command)
    except Error as error:
        if says not in str(error):
            raise AssertionError("%r: the error is %r, expected %r in it"
                                 % (command, str(error), says)) from None
        return
    raise AssertionError("%r: %r, expected an error" % (command, reply))


def wait_for(condition, what, seconds=30):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.01)


def wait_rewritten(client):
    """Until no AOF is being rewritten, nor about to be: one reply tells both, as the
    server may begin between two."""
    def idle():
        told = client("INFO", "persistence")
        return b"aof_rewrite_in_progress:0" in told and b"aof_rewrite_scheduled:0" in told
    wait_for(idle, "the rewritten AOF")


def tried(n, what):
    """Say how much of something was tried: script/soak adds these lines up."""
    print("tried %d %s" % (n, what))


def run(tests):
    """All functions, or those that SEEN_TEST_ONLY names; module path is the first argument
    of the program."""
    module = sys.argv[1]
    wanted = os.environ.get("SEEN_TEST_ONLY", "").split()
    names = [test.__name__ for test in tests]
    for name in wanted:
        if name not in names:
            sys.exit("SEEN_TEST_ONLY: no test %s; expected some of %s" % (name, " ".join(names)))
    random.seed(SEED)
    print("seed %d, scale %d" % (SEED, SCALE))
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        before, start = checks, time.time()
        test(module)
        print("ok   %-52s %6d checks %6.1f s"
              % (test.__name__, checks - before, time.time() - start), flush=True)
    tried(checks, "checks")
