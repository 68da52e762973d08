"""Stores on a server whose client runs out of memory: tests/fault/fault_server_alloc.c,
with a server. Arguments: module - - fault_server_alloc."""
import subprocess
import sys

from lib import Server, run, same


def every_allocation_fails(module):
    with Server(module) as server:
        done = subprocess.run([sys.argv[4], str(server.port)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        print(done.stdout.decode(errors="replace"))
        same(done.returncode, 0)


run([every_allocation_fails])
