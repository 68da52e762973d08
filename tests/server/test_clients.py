"""Debian's python3-redis and node-redis (npm's `redis`) run their documented
examples against the module; the latter where it is installed, as it is for
script/test --full."""
import os
import shutil
import subprocess

import redis
from lib import Server, run, same, true


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


def node(module):
    if not shutil.which("node") or not os.path.isdir(NODE_MODULES + "/@redis/bloom"):
        print("     left out: node-redis is not installed")
        return
    with Server(module) as server:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients.js")
        result = subprocess.run(["node", script, str(server.port)], capture_output=True,
                                text=True, env=dict(os.environ, NODE_PATH=NODE_MODULES))
        same(result.stdout + result.stderr, "ok\n")


run([python_bf, python_cf, node])
