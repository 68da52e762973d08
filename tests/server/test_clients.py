"""Debian's python3-redis runs its documented examples against the module."""
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


run([python_bf])
