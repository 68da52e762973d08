"""A cluster of three primaries and three replicas, made by `seen server`, loses a
primary to kill -9 while items are added. Afterwards everything that was
acknowledged is there, but for what the dead primary had not sent to its replica
yet: replication is asynchronous. That is counted and printed. Slow: runs where
SEEN_TEST_SCALE is above 1."""
import os
import re
import signal
import subprocess

from cluster import Cluster
from lib import SCALE, run, same, tried, true, wait_for
from program import SEEN


def role(cluster, port):
    return cluster.node(port)("INFO", "replication").decode()


def a_primary(cluster):
    """Port and process of one, when all have their replicas."""
    wait_for(lambda: all("master_link_status:up" in role(cluster, p) or
                         "role:master" in role(cluster, p) for p in cluster.known), "the replicas")
    victim = next(p for p in cluster.known if "role:master" in role(cluster, p))
    return victim, int(
        cluster.node(victim)("INFO", "server").decode().split("process_id:")[1].split()[0])


def confirmed(cluster, port):
    """Wait until the replica of this primary has said that it has all there is now."""
    wanted = int(role(cluster, port).split("master_repl_offset:")[1].split()[0])
    wait_for(lambda: int(re.search(r"slave0:.*offset=(\d+)", role(cluster, port)).group(1))
             >= wanted, "the replica's word")


def a_primary_dies(module):
    if SCALE < 2:
        print("     left out: SEEN_TEST_SCALE is 1")
        return
    with Cluster(module) as cluster:
        victim, pid = a_primary(cluster)
        acknowledged, total, killed_at, confirmed_at = {}, 30000, None, None
        for i in range(total):
            user, item = "user%d" % (i % 300), "item%d" % i
            if i == total // 4:
                confirmed(cluster, victim)
                confirmed_at = i
            if i == total // 2:
                os.kill(pid, signal.SIGKILL)
                killed_at = i
            if i % 3 == 0:
                cluster.send("f:" + user, "BF.ADD", "f:" + user, item)
                acknowledged[i] = ("f:" + user, "BF.EXISTS", item)
            else:
                cluster.send(user, "SEEN.MARK", user, item)
                acknowledged[i] = (user, "SEEN.CHECK", item)
        lost = [i for i, (key, command, item) in acknowledged.items()
                if cluster.send(key, command, key, item) not in (1, [1])]
        print("     %d acknowledged, %d lost with the primary, %d redirections"
              % (total, len(lost), cluster.redirects))
        true(all(i < killed_at for i in lost), "only what was before the crash can be lost")
        true(all(i >= confirmed_at for i in lost), "and nothing that the replica had confirmed")
        tried(total, "adds")
        wrong = sum(cluster.send("user%d" % (i % 300), "SEEN.CHECK", "user%d" % (i % 300),
                                 "never%d" % i)[0] for i in range(3000))
        true(wrong < 20, "%d of 3000 that were never added" % wrong)
        same(cluster.process.poll(), None, "the others go on")


def the_program_goes_on(module):
    """seen mark, while a primary dies under it."""
    if SCALE < 2:
        print("     left out: SEEN_TEST_SCALE is 1")
        return
    with Cluster(module) as cluster:
        _, pid = a_primary(cluster)
        u = "redis://127.0.0.1:%d?patience=60000" % cluster.port
        events = ["user%d\titem%d\n" % (i % 1000, i) for i in range(60000)]
        marking = subprocess.Popen([SEEN, "mark", u], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        marking.stdin.write("".join(events[:30000]).encode())
        marking.stdin.flush()
        wait_for(lambda: sum(cluster.node(p)("DBSIZE") for p in cluster.known) > 0, "marks")
        os.kill(pid, signal.SIGKILL)
        marking.stdin.write("".join(events[30000:]).encode())
        marking.stdin.close()
        true(marking.wait() == 0, marking.stderr.read().decode())
        # The first node of the URL may be the one that died.
        for port in cluster.known:
            fresh = subprocess.run([SEEN, "fresh", "redis://127.0.0.1:%d?patience=60000" % port],
                                   input="".join(events).encode(), capture_output=True)
            if fresh.returncode == 0:
                break
        same(fresh.returncode, 0, fresh.stderr.decode())
        lost = fresh.stdout.decode().splitlines(keepends=True)
        print("     %d acknowledged, %d lost with the primary" % (len(events), len(lost)))
        true(set(lost) <= set(events[:30000]), "only what was before the crash can be lost")
        tried(len(events), "marks")


run([a_primary_dies, the_program_goes_on])
