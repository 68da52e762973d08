"""A program of tests/fault, given the port of a server. Arguments: module - - program."""
import subprocess
import sys

from lib import Server, run, same


def passes(module):
    with Server(module) as server:
        done = subprocess.run([sys.argv[4], str(server.port)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        print(done.stdout.decode(errors="replace"))
        same(done.returncode, 0)


run([passes])
