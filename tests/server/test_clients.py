"""Debian's python3-redis and node-redis, and npm's `redis` with both protocols, run
their documented examples against the module; the latter two where they are or can be
installed, npm's for script/test --full only."""
import os
import shutil
import subprocess
import sys

import redis
from lib import SCALE, Server, run, same, true


def python_bf(module):
    with Server(module) as server:
        bf = redis.Redis(port=server.port).bf()
        true(bf.create("bloom", 0.01, 1000), "create")
        true(bf.create("bloom_e", 0.01, 1000, expansion=1), "expansion")
        true(bf.create("bloom_ns", 0.01, 1000, noScale=True), "noScale")
        same(bf.add("bloom", "foo"), 1)
        same(bf.add("bloom", "foo"), 0)
        same(bf.exists("bloom", "foo"), 1)
        same(bf.exists("bloom", "noexist"), 0)
        same(bf.madd("bloom", "foo", "bar"), [0, 1])
        same(bf.mexists("bloom", "foo", "noexist"), [1, 0])
        same(bf.insert("captest", ["foo"], capacity=1000), [1])
        same(bf.insert("captest", ["foo"], noCreate=True), [0])
        same(bf.insert("errtest", ["foo"], error=0.01), [1])
        same(bf.exists("captest", "foo"), 1)
        info = bf.info("bloom")
        same(info.insertedNum, 2)
        same(info.capacity, 1000)
        same(info.filterNum, 1)
        same(bf.info("bloom_e").expansionRate, 1)
        same(bf.info("bloom_ns").expansionRate, None)
        # Save and load, as its documentation shows it.
        chunks, iterator = [], 0
        while True:
            iterator, data = bf.scandump("bloom", iterator)
            if iterator == 0:
                break
            chunks.append((iterator, data))
        bf.client.delete("bloom")
        for chunk in chunks:
            bf.loadchunk("bloom", *chunk)
        same(bf.exists("bloom", "bar"), 1)
        try:
            bf.create("bloom", 0.01, 1000)
            raise AssertionError("made twice")
        except redis.ResponseError as error:
            same(str(error), "item exists")


def python_cf(module):
    with Server(module) as server:
        cf = redis.Redis(port=server.port).cf()
        true(cf.create("cuckoo", 1000), "create")
        true(cf.create("cuckoo_e", 1000, expansion=1), "expansion")
        true(cf.create("cuckoo_bs", 1000, bucket_size=4), "bucket size")
        true(cf.create("cuckoo_mi", 1000, max_iterations=10), "iterations")
        same(cf.add("cuckoo", "filter"), 1)
        same(cf.addnx("cuckoo", "filter"), 0)
        same(cf.addnx("cuckoo", "newItem"), 1)
        same(cf.insert("captest", ["foo"]), [1])
        same(cf.insert("captest", ["foo"], capacity=1000), [1])
        same(cf.insertnx("captest", ["bar"]), [1])
        same(cf.insertnx("captest", ["foo"], nocreate="1"), [0])
        same(cf.insertnx("empty1", ["foo"], capacity=1000), [1])
        same(cf.exists("cuckoo", "filter"), 1)
        same(cf.exists("cuckoo", "notexist"), 0)
        same(cf.mexists("cuckoo", "filter", "notexist"), [1, 0])
        same(cf.count("cuckoo", "filter"), 1)
        same(cf.count("cuckoo", "notexist"), 0)
        same(cf.delete("cuckoo", "filter"), 1)
        same(cf.count("cuckoo", "filter"), 0)
        info = cf.info("cuckoo_mi")
        same((info.maxIteration, info.bucketSize, info.expansionRate), (10, 2, 1))
        iterator, data = cf.scandump("cuckoo", 0)
        cf.client.delete("cuckoo")
        cf.loadchunk("cuckoo", iterator, data)
        same(cf.exists("cuckoo", "newItem"), 1)


NODE_MODULES = "/usr/share/nodejs"  # where Debian has them


NPM_REDIS = "redis@6.3.1"


def run_node(module, modules, *protocol):
    with Server(module) as server:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients.js")
        result = subprocess.run(["node", script, str(server.port), *protocol],
                                capture_output=True, text=True,
                                env=dict(os.environ, NODE_PATH=modules))
        same(result.stdout + result.stderr, "ok\n", " ".join(protocol))


def debian_node(module):
    if not shutil.which("node") or not os.path.isdir(NODE_MODULES + "/@redis/bloom"):
        print("     skipped, because node-redis is not installed")
        return
    run_node(module, NODE_MODULES)


def installed(directory):
    """npm's `redis`, beside the build; why not, if it cannot be had."""
    if os.path.isdir(os.path.join(directory, "node_modules", "@redis", "bloom")):
        return None
    if not shutil.which("npm") or not shutil.which("node"):
        return "there is no npm"
    os.makedirs(directory, exist_ok=True)
    try:
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
                                 "--prefix", directory, NPM_REDIS],
                                capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "npm gets no answer"
    return result.stderr.strip().split("\n")[-1] if result.returncode else None


def npm_node(module):
    """RESP2 and RESP3."""
    if SCALE == 1:
        print("     skipped, because it is a part of script/test --full")
        return
    directory = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "npm")
    problem = installed(directory)
    if problem:
        print("     skipped, because " + problem)
        return
    for protocol in "23":
        run_node(module, os.path.join(directory, "node_modules"), protocol)


run([python_bf, python_cf, debian_node, npm_node])
