"""Filters that the real systems wrote: tests/vectors, for the tests of the module."""
import gzip
import os
import struct

from lib import same

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")

OPTIONS = {"items": "CAPACITY", "fpp": "ERROR", "bits": "BITS"}


def key_list(kind, name, encoding):
    keys = []
    with open(os.path.join(VECTORS, kind, name + ".txt")) as f:
        for line in f:
            word = line.strip()
            key = b"" if word == "-" else bytes.fromhex(word)
            keys.append(key.decode().encode("utf-16-le") if encoding == "utf16" else key)
    return keys


class Vector:
    def __init__(self, name):
        self.name, facts = name, {}
        with open(os.path.join(VECTORS, name, "vector.txt")) as f:
            for line in f:
                word, _, rest = line.strip().partition(" ")
                facts[word] = rest
        with open(os.path.join(VECTORS, name, "filter.bin"), "rb") as f:
            self.bytes = f.read()
        encoding = facts.get("encoding")
        if encoding == "gzip":  # which the original's program undoes, too
            self.bytes = gzip.decompress(self.bytes)
        self.dialect = facts["dialect"]
        self.family = "CF" if self.dialect == "redisbloom-cf" else "BF"
        self.options = [a for word, option in OPTIONS.items() if word in facts
                        for a in (option, facts[word])]
        self.keys = key_list("keys", facts["keys"], encoding)
        self.strangers = key_list("strangers", facts["strangers"], encoding)
        self.maybe = set(map(int, facts["maybe"].split()))

    def command(self, key):
        return (self.family + ".IMPORT", key, "DIALECT", self.dialect, self.bytes, *self.options)

    def load(self, r, key):
        return r(*self.command(key))

    def check(self, r, key, what=""):
        what = "%s %s" % (self.name, what)
        same(r(self.family + ".MEXISTS", key, *self.keys), [1] * len(self.keys), what)
        expected = [int(i + 1 in self.maybe) for i in range(len(self.strangers))]
        same(r(self.family + ".MEXISTS", key, *self.strangers), expected, what)
        same(r(self.family + ".EXISTS", key, self.keys[-1]), 1, what)
        for i in (0, len(self.strangers) // 2):
            same(r(self.family + ".EXISTS", key, self.strangers[i]), expected[i], what)


def header_of(v):
    """How many bytes of a RedisBloom dump are its header."""
    if v.family == "CF":
        return 38
    links = struct.unpack_from("<I", v.bytes, 8)[0] % 100  # which may be spoiled
    return {"redisbloom-2.0": 16 + 49 * links}.get(v.name, 20 + 53 * links)


def redisbloom_chunks(v, size):
    """The pairs that RedisBloom's SCANDUMP gives for this dump."""
    head = header_of(v)
    pairs, data = [(1, v.bytes[:head])], v.bytes[head:]
    for at in range(0, len(data), size):
        pairs.append((1 + min(at + size, len(data)), data[at:at + size]))
    return pairs
