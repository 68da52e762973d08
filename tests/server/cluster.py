"""Three primaries and three replicas, made by `seen server`, for tests of what happens when
one of them dies."""
import random
import shutil
import signal
import subprocess
import tempfile
import time

from lib import Client, Error, free_port
from program import SEEN


class Cluster:
    def __init__(self, module):
        self.directory = tempfile.mkdtemp(prefix="seen-cluster-")
        for _ in range(5):
            self.port = free_port()
            self.process = subprocess.Popen(
                [SEEN, "server", "--cluster", "3", "--port", str(self.port), "--module", module,
                 "--dir", self.directory], stdout=subprocess.PIPE, text=True)
            if "cluster at" in self.process.stdout.readline():
                break
        else:
            raise RuntimeError("no cluster")
        self.clients, self.slots, self.redirects = {}, {}, 0
        self.known = list(range(self.port, self.port + 6))

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        shutil.rmtree(self.directory, ignore_errors=True)

    def node(self, port):
        if port not in self.clients:
            self.clients[port] = Client(port)
        return self.clients[port]

    def send(self, key, *command, patience=60):
        """As a cluster's client: follow redirections, wait while a node is
        being replaced. The command must be safe to repeat."""
        port, end = self.slots.get(key, self.known[0]), time.time() + patience
        while time.time() < end:
            try:
                return self.node(port)(*command)
            except Error as error:
                word = str(error).split()[0]
                if word == "MOVED":
                    self.redirects += 1
                    port = self.slots[key] = int(str(error).rsplit(":", 1)[1])
                elif word in ("CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN"):
                    time.sleep(0.05)
                else:
                    raise
            except OSError:  # somebody else may know where the slot is now
                self.clients.pop(port, None)
                port = random.choice(self.known)
                time.sleep(0.02)
        raise AssertionError("no answer to %r" % (command,))
