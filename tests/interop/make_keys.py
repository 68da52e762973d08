#!/usr/bin/env python3
"""make_keys.py DIR SEED - keys and strangers for the tests against other systems.

Three sorts: hex (any bytes, lengths 0 to 40), text (UTF-8 with characters of every
length) and numbers (64 bits, with sign). No stranger is a key.
"""
import random
import sys

directory, seed = sys.argv[1], int(sys.argv[2])
r = random.Random(seed)
N = 20000


def any_bytes():
    key = bytes(r.randrange(256) for _ in range(r.randrange(41)))
    return key.hex() or "-"


def text():
    letters = "abcdefghijklmnopqrstuvwxyz0123456789éßж中文字😀𝄞"
    return "".join(r.choice(letters) for _ in range(r.randrange(1, 25)))


def number():
    return str(r.randrange(-(1 << 63), 1 << 63) >> r.randrange(60))


for name, make in (("hex", any_bytes), ("text", text), ("numbers", number)):
    all_of_them = {}
    while len(all_of_them) < 2 * N:
        all_of_them[make()] = True
    keys = list(all_of_them)
    for part, lines in (("keys", keys[:N]), ("strangers", keys[N:])):
        with open(f"{directory}/{part}.{name}", "w", encoding="utf-8") as out:
            out.write("".join(line + "\n" for line in lines))
