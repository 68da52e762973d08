"""The checksums inside of keys (module/object.h, docs/FORMAT.md): bytes that were changed
get right ones, so that the readers behind the checksums see the change.

    layout(data)         where header, state, list and payload of each filter are
    spoil_object(rng, d) d changed in one of those places, or anywhere, and resealed
    reseal(data)         all lengths and sums made right, as far as there is a layout
    crc_table(), crc()   of any polynomial that is written with its lowest bit first
"""
import struct

HEADER = 96    # of an object
HEAD = 256     # of a filter
BLOCK = 65536  # of a payload
# Fields of an object and of a filter that are no magic, length or sum: offset, size.
OBJECT_FIELDS = [(8, 4), (12, 4), (24, 8), (32, 8), (40, 8), (48, 4), (52, 4), (72, 8), (80, 2),
                 (82, 2), (84, 4)]
FILTER_FIELDS = [(8, 2), (10, 2), (12, 4), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 2),
                 (50, 2), (52, 4), (56, 8), (64, 8), (80, 8), (88, 8), (96, 8), (104, 4),
                 (108, 4), (120, 8), (136, 8), (200, 8)]
DOUBLES = [struct.pack("<d", x) for x in (0.0, -0.0, float("nan"), float("inf"), float("-inf"),
                                          -1.0, 1.0, 1e-300, 1e300, 0.5, 0.010001)]


def crc_table(polynomial):
    table = list(range(256))
    for _ in range(8):
        table = [entry >> 1 ^ (polynomial if entry & 1 else 0) for entry in table]
    return table


def crc(table, data, start):
    for byte in data:
        start = table[(start ^ byte) & 255] ^ start >> 8
    return start


CRC32C = crc_table(0x82F63B78)


def crc32c(data):
    return crc(CRC32C, data, 0xFFFFFFFF) ^ 0xFFFFFFFF


def fnv1a(data, start=0xCBF29CE484222325):
    for byte in data:
        start = (start ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return start


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


def put(data, at, size, value):
    data[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


class Filter:
    """Where the parts of the filter at `start` are; `whole`: as its header says."""

    def __init__(self, data, start, end):
        self.start, self.end = start, end
        self.table = start + (1024 if number(data, start + 12, 4) & 4 else HEAD)
        self.payload = start + number(data, start + 88, 8)
        self.size = number(data, start + 96, 8)
        self.blocks = (self.size + BLOCK - 1) // BLOCK
        self.state = self.table + 4 * self.blocks
        self.list = self.state + number(data, start + 104, 4)
        self.end_of_list = self.list + number(data, start + 108, 4)
        self.whole = self.end_of_list <= self.payload and self.payload + self.size == end


def layout(data):
    """The filters of an object; those whose lengths go on to the end."""
    filters, at = [], HEADER
    while at + 8 + HEAD <= len(data) and len(filters) < 16:
        end = at + 8 + number(data, at, 8)
        if end > len(data) or end < at + 8 + HEAD:
            break
        filters.append(Filter(data, at + 8, end))
        at = end
    return filters


def reseal(data):
    data = bytearray(data)
    if len(data) < HEADER:
        return bytes(data)
    put(data, 16, 8, len(data))
    heads = b""
    for f in layout(data):
        if f.whole:
            for i in range(f.blocks):
                at = f.payload + i * BLOCK
                put(data, f.table + 4 * i, 4, crc32c(data[at:min(at + BLOCK, f.end)]))
            put(data, f.start + 112, 4, crc32c(data[f.table:f.state]))
            put(data, f.start + 116, 4, crc32c(data[f.state:f.end_of_list]))
        put(data, f.start + 252, 4, crc32c(data[f.start:f.start + 252]))
        heads += data[f.start:f.start + HEAD]
    put(data, 88, 8, 0 if data[8] == 1 else fnv1a(heads))
    return bytes(data)


def change(rng, data, at, size):
    """A number at `at`: an extreme, a neighbour, or any."""
    old = number(data, at, size)
    if size == 8 and rng.random() < 0.2:
        data[at:at + 8] = rng.choice(DOUBLES)
        return
    put(data, at, size, rng.choice((0, 1, 2, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1, old + 1,
                                    old - 1, old * 2, old ^ 1 << rng.randrange(8 * size),
                                    rng.getrandbits(64))))


def flip(rng, data, start, end):
    if start < end:
        data[rng.randrange(start, end)] ^= 1 << rng.randrange(8)


def spoil_bits(rng, data):
    """Some bits of the payloads, and nothing else."""
    data = bytearray(data)
    f = rng.choice(layout(data))
    for _ in range(rng.choice((1, 2, 20))):
        flip(rng, data, f.payload, f.end)
    return reseal(data)


def spoil_object(rng, data, spoil):
    """`spoil` changes any bytes, also how many there are."""
    data, f = bytearray(data), rng.choice(layout(data))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        how = rng.randrange(12)
        if how < 4:
            flip(rng, data, f.payload, f.end)
        elif how < 6:
            at, size = rng.choice(FILTER_FIELDS)
            change(rng, data, f.start + at, size)
        elif how < 8:
            at, size = rng.choice(OBJECT_FIELDS)
            change(rng, data, at, size)
        elif how == 8 and f.state + 4 <= f.list:
            size = rng.choice([s for s in (4, 8) if f.state + s <= f.list])
            at = rng.randrange(f.state, f.list - size + 1, 4)
            change(rng, data, at, size)
        elif how == 9:
            flip(rng, data, f.state, f.end_of_list)
        elif how == 10:  # a field of the first filter in all, so that they stay alike
            at, size = rng.choice(FILTER_FIELDS)
            change(rng, data, f.start + at, size)
            for other in layout(data):
                data[other.start + at:other.start + at + size] = \
                    data[f.start + at:f.start + at + size]
        else:
            data = bytearray(spoil(rng, data))
            break
    return reseal(data)
