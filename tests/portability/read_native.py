#!/usr/bin/env python3
"""read_native.py - a second reader of saved filters, written from docs/FORMAT.md.

    read_native.py DIRECTORY

For each NAME.seen there, NAME.keys holds what the library says about some keys,
one a line: how often it is there, the key, lo and hi, in hex. This reader must say
the same. Keyed filters are asked by their keys, all others by hash: XXH3 is long.
Then the file is damaged in many ways, all of which must be refused.
"""
import glob
import os
import struct
import sys

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
BLOCK = 65536
KEYED, APART, TWO, JOURNALED = 1, 2, 4, 8
ALWAYS = 2  # the policy of a list; the other one is 1, never
XXH3_64, XXH3_128, SIPHASH, U64 = 1, 2, 3, 4
BITMAP, FOREIGN = 8, 9
FORMS = {"text": 1, "lower": 2, "hex": 3, "u64": 4, "i32": 5, "utf16": 6}  # of keys


class Refused(Exception):
    pass


def need(fact, why):
    if not fact:
        raise Refused(why)


# ---- CRC32C and SipHash-1-3-128 ---------------------------------------------


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = crc_table()


def crc32c(data):
    crc = M32
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ M32


def rotl(x, n):
    return (x << n | x >> (64 - n)) & M64


def sip_round(v):
    a, b, c, d = v
    a = (a + b) & M64
    b = rotl(b, 13) ^ a
    a = rotl(a, 32)
    c = (c + d) & M64
    d = rotl(d, 16) ^ c
    a = (a + d) & M64
    d = rotl(d, 21) ^ a
    c = (c + b) & M64
    b = rotl(b, 17) ^ c
    return a, b, rotl(c, 32), d


def siphash(secret, data):
    k0, k1 = struct.unpack("<QQ", secret)
    v = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D ^ 0xEE,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v = sip_round((v[0], v[1], v[2], v[3] ^ word))
        v = (v[0] ^ word, v[1], v[2], v[3])
    halves = []
    v = (v[0], v[1], v[2] ^ 0xEE, v[3])
    for _ in range(2):
        for _ in range(3):
            v = sip_round(v)
        halves.append(v[0] ^ v[1] ^ v[2] ^ v[3])
        v = (v[0], v[1] ^ 0xDD, v[2], v[3])
    return tuple(halves)


def secret_check(secret):
    return siphash(secret, b"seen: which secret")[0]


# ---- The container ----------------------------------------------------------


def up64(n):
    return (n + 63) // 64 * 64


class Header:
    """A whole header, at `at` in the bytes; Refused otherwise."""

    def __init__(self, data, at=0):
        h = data[at : at + 256]
        need(len(h) == 256 and h[:8] == b"\x89SEEN\r\n\x1a", "magic")
        (version,) = struct.unpack_from("<H", h, 8)
        need(version <= 1, "newer")
        need(version == 1, "version")
        need(crc32c(h[:252]) == struct.unpack_from("<I", h, 252)[0], "header checksum")
        (self.kind, self.flags, self.capacity, self.m) = struct.unpack_from("<HIQQ", h, 10)
        (rate, self.k, self.width, self.hash, self.policy) = struct.unpack_from("<dIIHH", h, 32)
        (block, self.items) = struct.unpack_from("<IQ", h, 52)
        self.secret = h[64:80]
        (self.check, self.offset, self.length) = struct.unpack_from("<QQQ", h, 80)
        (self.state_len, self.list_len) = struct.unpack_from("<II", h, 104)
        (self.table_crc, self.extra_crc) = struct.unpack_from("<II", h, 112)
        self.history = struct.unpack_from("<QQQ", h, 120)
        self.rate = rate

        need(self.flags < 16 and 1 <= self.hash <= 4, "flags or hash")
        need(0 <= rate <= 1 and h[39] < 128, "rate")
        need(block == BLOCK and not any(h[148:252]), "reserved")
        (self.key_form,) = struct.unpack_from("<I", h, 144)
        noted = self.kind not in (BITMAP, FOREIGN)
        need(self.key_form <= (max(FORMS.values()) if noted else 0), "key form")
        need(self.policy <= 2 and (self.policy > 0) == (self.list_len > 0), "list")
        need(self.flags & TWO or not any(self.history), "history")
        self.check_secret()
        self.place()

    def check_secret(self):
        keyed, apart = self.flags & KEYED, self.flags & APART
        need(bool(keyed) == (self.hash == SIPHASH), "hash and flags")
        if apart:
            need(keyed and not any(self.secret), "secret kept apart")
        elif keyed:
            need(self.check == secret_check(self.secret), "check of the secret")
        else:
            zeros = self.secret if self.hash == U64 else self.secret[8:]
            need(not any(zeros) and self.check == 0, "seed")

    def place(self):
        need(self.length >= 64 and self.length % 64 == 0, "payload length")
        self.table = 1024 if self.flags & TWO else 256
        self.blocks = (self.length + BLOCK - 1) // BLOCK
        self.state = self.table + 4 * self.blocks
        self.end = self.state + self.state_len + self.list_len
        need(self.state_len <= 8192 and self.offset == up64(self.end), "payload offset")


def whole(data, at):
    """The header there, or None; "newer" is for the caller."""
    try:
        return Header(data, at)
    except Refused as e:
        if str(e) == "newer":
            raise
        return None


def choose_header(data):
    first = whole(data, 0)
    if first and not first.flags & TWO:
        return first
    second = whole(data, 512)
    if second and not second.flags & TWO:
        second = None
    need(first or second, "no whole header")
    if first and second:
        return second if second.history[1] > first.history[1] else first
    return first or second


def read(data, secret=None):
    """The filter in these bytes, everything checked."""
    h = choose_header(data)
    need(not h.flags & JOURNALED, "journaled")
    need(len(data) == h.offset + h.length, "length")
    if h.flags & TWO:
        need(not any(data[256:512]) and not any(data[768:1024]), "gaps")
    need(not any(data[h.end : h.offset]), "padding")
    need(crc32c(data[h.state : h.end]) == h.extra_crc, "checksum of state and list")
    table = data[h.table : h.state]
    need(crc32c(table) == h.table_crc, "checksum of the table")
    for i, (crc,) in enumerate(struct.iter_unpack("<I", table)):
        at = h.offset + i * BLOCK
        need(crc32c(data[at : min(at + BLOCK, len(data))]) == crc, "block %d" % i)

    need(h.kind in KINDS, "kind")
    need((h.kind == BITMAP) == (h.hash == U64), "hash of this kind")
    need(1 <= h.m <= 1 << 48, "bits")
    if h.flags & APART:
        need(secret and secret_check(secret) == h.check, "secret")
        h.secret = secret
    state_end = h.state + h.state_len
    f = KINDS[h.kind](h, data[h.offset :], data[h.state : state_end])
    f.listed = read_list(data[state_end : h.end]) if h.policy else []
    return f


def read_list(data):
    """The keys; in order, none twice, and nothing behind them."""
    need(len(data) >= 4, "list")
    keys, at = [], 4
    for _ in range(struct.unpack_from("<I", data)[0]):
        need(at + 4 <= len(data), "list ends within a length")
        (length,) = struct.unpack_from("<I", data, at)
        need(length <= 1 << 24 and at + 4 + length <= len(data), "list ends within a key")
        keys.append(data[at + 4 : at + 4 + length])
        at += 4 + length
        need(len(keys) < 2 or keys[-2] < keys[-1], "order of the list")
    need(at == len(data), "bytes behind the list")
    return keys


# ---- Kinds ------------------------------------------------------------------


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def reduce(x, n):
    return x * n >> 64


class Filter:
    used = 0  # bytes of the payload; the rest is padding

    def __init__(self, h, payload, state):
        self.h, self.payload = h, payload
        self.wide = h.hash in (XXH3_128, SIPHASH)
        need(self.state_bytes is None or len(state) == self.state_bytes, "state")
        self.set_up(state)
        need(len(payload) == up64(self.used), "payload and bits")
        need(not any(payload[self.used :]), "padding of the payload")
        self.check_payload()

    state_bytes = 0  # None: it varies

    def check_payload(self):
        pass

    def bit(self, b):
        return self.payload[b // 8] >> b % 8 & 1

    def count(self, lo, hi):
        return int(self.maybe(lo, hi))

    def count_bits(self):
        return sum(bin(byte).count("1") for byte in self.payload)

    def word(self, i):
        return struct.unpack_from("<Q", self.payload, 8 * i)[0]

    def no_bits_past_the_end(self):
        need(not any(self.bit(b) for b in range(self.h.m, 8 * self.used)), "bits past m")

    def g(self, i, lo, hi):
        step = hi | 1 if self.wide else GOLDEN
        return mix((lo + i * step) & M64) if i else lo


class Bloom(Filter):
    def set_up(self, state):
        need(1 <= self.h.k <= 64 and self.h.width == 0, "k or width")
        self.used = (self.h.m + 63) // 64 * 8

    def check_payload(self):
        self.no_bits_past_the_end()

    def maybe(self, lo, hi):
        return all(self.bit(reduce(self.g(i, lo, hi), self.h.m)) for i in range(self.h.k))


class Blocked(Filter):
    ODD = (
        0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F,
        0x165667B5, 0xD6E8FEB9, 0xA3B195ED, 0x6C8E944B,
    )  # fmt: skip

    slots = 1

    def set_up(self, state):
        k = self.h.k
        need(k in (1, 2, 4) or (k % 8 == 0 and 8 <= k <= 128), "k")
        need(self.h.width == 0, "width")
        self.regions = 1 if k < 8 else k // 8
        self.w = k // self.regions
        self.lines = self.h.m // 512 // self.regions // self.slots
        need(self.h.m == self.lines * self.regions * self.slots * 512 > 0, "m")
        need(self.wide or self.lines < 1 << 32, "lines")
        self.used = self.h.m // 8

    def maybe(self, lo, hi):
        return self.slot_maybe(0, lo, hi)

    def slot_maybe(self, slot, lo, hi):
        for i in range(self.regions):
            g = self.g(i, lo, hi)
            line = (i * self.lines + reduce(g, self.lines)) * self.slots + slot
            x = (g + hi if self.wide else g) & M32
            for j in range(self.w):
                at = (x * self.ODD[j] & M32) >> (23 + self.w.bit_length() - 1)
                if not self.bit(512 * line + j * (512 // self.w) + at):
                    return False
        return True


class Scalable(Filter):
    state_bytes = None

    def set_up(self, state):
        h = self.h
        need(h.k % 8 == 0 and 8 <= h.k <= 128 and h.width == 0, "k or width")
        need(0 < h.rate < 1, "rate")
        need(h.rate >= 1000 * 2.0**40 / 2.0 ** (127 if self.wide else 64), "rate and hash")
        need(len(state) >= 8, "state")
        n, sized = struct.unpack_from("<II", state)
        need(1 <= n <= 48 and len(state) == 8 + 32 * n, "layers")
        need(sized <= 1, "schedule")
        self.layers, capacity, items = [], 0, 0
        for i in range(n):
            cap, used, count, regions = struct.unpack_from("<4Q", state, 8 + 32 * i)
            need(1 <= cap <= 1 << 40 and used <= 1 << 40, "capacity or items")
            need(1 <= regions <= 16 and 1 <= count <= (1 << 39) // regions, "lines")
            need(self.wide or count < 1 << 32, "lines of a region")
            self.layers.append((self.used, count, regions))
            self.used += count * regions * 64
            capacity += cap
            items += used
            if i == 0:
                need((cap, 8 * regions) == (h.capacity, h.k), "first layer")
                need(self.used * 8 == h.m, "m")
        need(self.used <= 1 << 45 and capacity <= 1 << 40, "sums")
        need(items == h.items, "items")

    def maybe(self, lo, hi):
        return any(self.in_layer(lo, hi, *layer) for layer in self.layers)

    def in_layer(self, lo, hi, at, count, regions):
        for i in range(regions):
            g = self.g(i, lo, hi)
            line = i * count + reduce(g, count)
            x = (g + hi if self.wide else g) & M32
            for j in range(8):
                bit = 64 * j + ((x * Blocked.ODD[j] & M32) >> 26)
                if not self.bit(8 * at + 512 * line + bit):
                    return False
        return True


class Window(Blocked):
    state_bytes = None

    def set_up(self, state):
        need(len(state) >= 40, "state")
        g, used, last, window, now, newest, living = struct.unpack_from("<IIQQQII", state)
        both = last > 0 and window > 0
        need(2 <= g <= (31 if both else 63) and (last or window), "generations")
        need(self.h.capacity > 0 and last in (0, self.h.capacity), "last")
        self.slots = 2 * g + 1 if both else g + 1
        Blocked.set_up(self, state)
        need(newest < self.slots and living <= used <= self.slots, "slots")
        need(used == self.slots or newest == (used - 1) % self.slots, "newest slot")
        need(len(state) == 40 + 24 * living, "living")
        self.in_use = used
        self.alive = [(newest - i) % self.slots for i in range(living)]
        share, step = -(-self.h.capacity // g), -(-window // g)
        each = [struct.unpack_from("<QQQ", state, 40 + 24 * i) for i in range(living)]
        need(sum(items for _, _, items in each) == self.h.items, "items")
        for i, (first, late, items) in enumerate(each):
            need(first <= late <= now, "times")
            need(not window or (late - first < step and now - late <= window), "times")
            need(items > 0 and (not last or items <= share), "items")
            after = each[i + 1 :]
            need(not last or sum(items for _, _, items in after) < last, "items")
            if after:
                full = last > 0 and items == share
                need(late <= after[0][0], "order")
                need(full or (window > 0 and after[0][0] - first >= step), "order")

    def check_payload(self):
        for line in range(self.h.m // 512):
            if line % self.slots >= self.in_use:
                need(not any(self.payload[64 * line : 64 * line + 64]), "unused slots")

    def maybe(self, lo, hi):
        return any(self.slot_maybe(slot, lo, hi) for slot in self.alive)


class Packed(Filter):
    def set_up_slots(self):
        w = self.h.width
        need(4 <= w <= 32 and self.h.m % w == 0, "width")
        self.slots = self.h.m // w
        self.used = (self.h.m + 7) // 8 + 8

    def slot(self, i):
        at = i * self.h.width
        some = int.from_bytes(self.payload[at // 8 : at // 8 + 8], "little")
        return some >> at % 8 & ((1 << self.h.width) - 1)


class Cuckoo(Packed):
    def set_up(self, state):
        w, m = self.h.width, self.h.m
        lines = min(4 + (m >> 17), 8192)
        need(self.h.k == 4 and 6 <= w <= 32 and (m - 512 * lines) % w == 0, "k, width or m")
        self.slots = (m - 512 * lines) // w
        need(self.slots >= 3 and self.slots % 2 == 1, "slots")
        need(self.wide or self.slots < 1 << 32, "slots of a short hash")
        self.windows = self.slots - 1
        self.table = up64((self.slots * w + 7) // 8 + 8)
        self.used = self.table + 64 * lines

    def entry(self, slot):
        """The window and the fingerprint in a slot; None: it is empty."""
        value = self.slot(slot)
        return (slot, value) if value % 2 else (slot - 1, value - 1) if value else None

    def check_payload(self):
        end = self.slots * self.h.width
        need(not any(self.bit(b) for b in range(end, 8 * self.table)), "bits past the slots")
        entries = [e for e in map(self.entry, range(self.slots)) if e]
        need(all(0 <= window < self.windows for window, _ in entries), "windows")
        need(all(p < (1 << self.h.width) - 1 for _, p in entries), "fingerprints")

        words = struct.unpack_from("<%dQ" % ((self.used - self.table) // 8), self.payload, self.table)
        copies, n = words[:2]
        need(n <= len(words) // 2 - 1 and not any(words[2 * n + 2 :]), "entries of the table")
        pairs = [(words[2 * i], words[2 * i + 1] >> 32) for i in range(1, n + 1)]
        times = [words[2 * i + 1] & M32 for i in range(1, n + 1)]
        need(sum(times) == copies and all(1 <= t <= M32 - 4 for t in times), "copies")
        need(pairs == sorted(set(pairs)), "order of the table")
        for window, p in pairs:
            need(window < self.other(window, p) < self.windows, "windows of the table")
            need(p % 2 == 1 and self.in_slots(window, p) > 0, "not in the slots")
        self.copies = dict(zip(pairs, times))
        need(len(entries) + copies == self.h.items, "items")

    def other(self, window, p):
        w, y = self.h.width, p * (2 * p * GOLDEN + 0xD1B54A32D192ED03) & M64
        spread = 1 + 2 * reduce((y >> w | y << 64 - w) & M64, self.windows // 2)
        return (spread - window) % self.windows

    def in_slots(self, window, p):
        both = (window, self.other(window, p))
        slots = {slot + i for slot in both for i in (0, 1)}
        return sum(self.entry(slot) in [(b, p) for b in both] for slot in slots)

    def count(self, lo, hi):
        x = (hi if self.wide else lo) & M32
        p = 1 + 2 * (x * ((1 << self.h.width - 1) - 1) >> 32)
        window = reduce(lo, self.windows)
        least = min(window, self.other(window, p))
        return self.in_slots(window, p) + self.copies.get((least, p), 0)

    def maybe(self, lo, hi):
        return self.count(lo, hi) > 0


class Ribbon(Filter):
    state_bytes = None

    def set_up(self, state):
        h = self.h
        need(h.k == 1 and 1 <= h.width <= 32 and 1 <= h.capacity <= 1 << 40, "k, width or capacity")
        need(len(state) % 16 == 8 and len(state) <= 8 + 16 * 8, "state")
        self.listed_count = struct.unpack_from("<Q", state)[0]
        need(self.listed_count <= h.capacity, "list")
        self.layers, parts = [], []
        for at in range(8, len(state), 16):
            starts, seed = struct.unpack_from("<QQ", state, at)
            need(16 <= starts <= 1 << 41 and starts % 16 == 0, "starts")
            slots = starts + 64 * -(-starts // 65536)
            groups, thresholds = slots // 16 * 2 * h.width, -(-starts // 512)
            self.layers.append((self.used, starts, seed, self.used + groups))
            self.close(parts, groups + thresholds + -2 * h.width % 16)
        if self.listed_count or not self.layers:
            self.list_at = self.used
            self.close(parts, 8 * max(1, self.listed_count))
        need(8 * sum(parts) == h.m, "m")
        need(h.items in (0, h.capacity), "items")

    def close(self, parts, length):
        parts.append(length)
        self.used = up64(self.used + length)

    def listed_hashes(self):
        return [self.word(self.list_at // 8 + i) for i in range(self.listed_count)]

    def check_payload(self):
        if self.h.items == 0:
            need(not any(self.payload), "payload of nothing")
            return
        for _, starts, _, thresholds in self.layers:
            end = thresholds + -(-starts // 512)
            need(-(-starts // 256) % 2 == 0 or self.payload[end - 1] < 16, "last threshold")
            need(not any(self.payload[end : up64(end + -2 * self.h.width % 16)]), "zeros")
        numbers = self.listed_hashes()
        need(all(a < b for a, b in zip(numbers, numbers[1:])), "order of the list")
        if numbers:
            need(not any(self.payload[self.list_at + 8 * len(numbers) :]), "padding of the list")

    def maybe(self, lo, hi):
        if self.h.items == 0:
            return False
        x = lo
        for groups, starts, seed, thresholds in self.layers:
            x = mix((x + seed) & M64) if seed else x
            start = reduce(x, starts)
            t = self.payload[thresholds + start // 512] >> (start // 256 % 2 * 4) & 15
            if t == 15 or start % 256 < 8 * t:
                continue
            return self.fits(groups, start, x)
        return x in self.listed_hashes()

    def fits(self, groups, start, x):
        y = x * 0xC2B2AE3D27D4EB4F & M64
        y ^= y >> 32
        value = rotl(y * 0xFF51AFD7ED558CCD & M64, 32)
        first = start + start // 65536 * 64
        for j in range(self.h.width):
            bit = 0
            for i in range(64):
                slot = first + i
                word = struct.unpack_from("<H", self.payload, groups + (slot // 16 * self.h.width + j) * 2)[0]
                bit ^= (y | 1) >> i & word >> slot % 16 & 1
            if bit != value >> (2 * j + 1) & 1:
                return False
        return True


class Set(Filter):
    def set_up(self, state):
        need(self.h.k == 1 and self.h.width == 0 and self.h.m % 512 == 0, "k, width or m")
        self.lines = self.h.m // 512
        need(self.lines >= 16, "lines")
        self.used = self.h.m // 8

    def line(self, i):
        return struct.unpack_from("<8Q", self.payload, 64 * i)

    def check_payload(self):
        lines = [self.line(i) for i in range(self.lines)]
        need(sum(slot != 0 for line in lines for slot in line) == self.h.items, "items")
        need(self.h.items <= self.lines * 8 // 5 * 4, "too full")
        for line in lines:
            used = [slot != 0 for slot in line]
            need(used == sorted(used, reverse=True), "not from the left")
        for line in lines:
            need(all(self.maybe(slot, 0) for slot in line if slot), "out of place")

    def maybe(self, lo, hi):
        at = reduce(lo, self.lines)
        for _ in range(self.lines):
            line = self.line(at)
            if (lo or 1) in line:
                return True
            if 0 in line:
                return False
            at = (at + 1) % self.lines
        return False


class Bitmap(Filter):
    def set_up(self, state):
        h = self.h
        need(h.k == 1 and h.width == 0 and h.rate == 0, "k, width or rate")
        need(h.capacity == h.m <= 1 << 40, "capacity")
        self.used = (h.m + 63) // 64 * 8

    def check_payload(self):
        self.no_bits_past_the_end()
        need(self.count_bits() == self.h.items, "items")

    def maybe(self, lo, hi):
        return lo < self.h.m and bool(self.bit(lo))


class Sorted(Filter):
    """n fingerprints below u, Elias-Fano coded; then the samples."""

    def set_up(self, state):
        n = self.h.capacity
        need(self.h.k == 1 and self.h.width == 0, "k or width")
        need(1 <= n <= 1 << 30 and self.h.m % 8 == 0, "n or m")
        need(self.h.items in (0, n), "items")
        self.samples = n // 512
        self.used = self.h.m // 8
        code = self.used - 4 * self.samples
        self.u = max((self.most(n, code, l) for l in range(49)), default=0)
        need(self.u >= n, "too few bits")
        self.l = (self.u // n).bit_length() - 1
        self.low = (n * self.l + 7) // 8
        self.bits = n + (self.u - 1 >> self.l) + 1
        need(code == self.low + (self.bits + 7) // 8, "m")

    @staticmethod
    def most(n, code, l):
        """The largest u with l low bits whose code fits, or 0."""
        steps = 8 * (code - (n * l + 7) // 8) - n
        return min(steps << l, (n << l + 1) - 1, 1 << 48) if steps >= n and n << l <= 1 << 48 else 0

    def check_payload(self):
        n = self.h.capacity
        self.numbers = []
        if self.h.items == 0:
            need(not any(self.payload), "nothing, and not 0")
            return
        low = int.from_bytes(self.payload[: self.low], "little")
        end = self.used - 4 * self.samples
        high = int.from_bytes(self.payload[self.low : end], "little")
        need(low >> n * self.l == 0 and high >> self.bits - 1 == 0, "spare bits")
        places = [i for i in range(self.bits) if high >> i & 1]
        need(len(places) == n, "ones")
        for i, place in enumerate(places):
            part = low >> i * self.l & (1 << self.l) - 1
            self.numbers.append((place - i << self.l) + part)
        need(self.numbers == sorted(self.numbers) and self.numbers[-1] < self.u, "order")
        for i in range(self.samples):
            (before,) = struct.unpack_from("<I", self.payload, end + 4 * i)
            need(before == sum(x >> self.l < 1024 * (i + 1) for x in self.numbers), "samples")

    def maybe(self, lo, hi):
        return reduce(lo, self.u) in self.numbers


KINDS = {1: Bloom, 2: Blocked, 3: Cuckoo, 5: Scalable, 6: Window, 7: Set, 8: Bitmap, 10: Sorted, 11: Ribbon}


# ---- The test ---------------------------------------------------------------


def hash_of(f, key, lo, hi):
    """From the key where this reader can; it must be what the library says."""
    if f.h.hash == SIPHASH:
        assert siphash(f.h.secret, key) == (lo, hi), key
    elif f.h.hash == U64:
        assert (int.from_bytes(key, "little") if len(key) == 8 else M64, 0) == (lo, hi), key
    return lo, hi


def check_answers(f, path):
    asked = wrong = 0
    for line in open(path):
        answer, key, lo, hi = line.split(" ")
        lo, hi = hash_of(f, bytes.fromhex(key), int(lo, 16), int(hi, 16))
        asked += 1
        listed = bytes.fromhex(key) in f.listed
        says = int(f.h.policy == ALWAYS) if listed else f.count(lo, hi)
        wrong += says != int(answer)
    assert asked > 0, path
    assert wrong == 0, "%s: %d of %d answers differ" % (path, wrong, asked)
    return asked


def refuses(data, secret):
    try:
        read(bytes(data), secret)
    except Refused:
        return True
    return False


def flip(data, bit):
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def check_head(data, secret):
    """Every bit of headers, table and state is found, and some of a list; of two
    headers, one may be damaged."""
    h = choose_header(data)
    spared = [0, 512] if h.flags & TWO else []
    listed = 8 * (h.state + h.state_len)
    bits = [*range(listed), *range(listed, 8 * h.offset, 37 if h.policy else 1)]
    for bit in bits:
        damaged = flip(data, bit)
        if any(at <= bit // 8 < at + 256 for at in spared):
            newer = bit // 8 % 512 in (8, 9)
            assert newer or read(damaged, secret).payload == data[h.offset :], "bit %d" % bit
        else:
            assert refuses(damaged, secret), "bit %d" % bit
    return len(bits)


def check_damage(data, secret):
    """Some bits of the payload, and lengths."""
    offset = choose_header(data).offset
    bits = range(8 * offset, 8 * len(data), 8 * (len(data) - offset) // 50 | 1)
    for bit in bits:
        assert refuses(flip(data, bit), secret), "bit %d" % bit
    lengths = [*range(0, len(data), len(data) // 50), len(data) - 1]
    for length in lengths:
        assert refuses(data[:length], secret), "length %d" % length
    assert refuses(data + bytes(1), secret) and refuses(data + bytes(64), secret)
    return len(bits) + len(lengths) + 2


def main(directory):
    assert crc32c(b"123456789") == 0xE3069283
    paths = sorted(glob.glob(os.path.join(directory, "*.seen")))
    kinds, asked, damaged = set(), 0, 0
    for path in paths:
        data, name = open(path, "rb").read(), path[: -len(".seen")]
        secret = None
        if os.path.exists(name + ".secret"):
            secret = open(name + ".secret", "rb").read()
            assert refuses(data, None) and refuses(data, bytes(16)), path
        f = read(data, secret)
        kinds.add((f.h.kind, f.h.hash))
        assert f.h.key_form == FORMS.get(name.rsplit("_", 1)[-1], 0), path
        asked += check_answers(f, name + ".keys")
        damaged += check_head(data, secret) + check_damage(data, secret)
    missing = set(KINDS) - {kind for kind, _ in kinds}
    assert not missing, "no file of kinds %s" % missing
    print("%d files, %d answers agree, %d damaged files refused" % (len(paths), asked, damaged))


if __name__ == "__main__":
    main(sys.argv[1])
