"""DUMP payloads of our types, made by hand: what an earlier module has saved, or one
that means harm."""
import struct

from sums import crc, crc_table

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
CRC64 = crc_table(0x95AC9329AC4BC9B5)  # of the server: Jones' polynomial


def length(n):
    """As RDB files write it."""
    if n < 1 << 6:
        return bytes([n])
    if n < 1 << 14:
        return struct.pack(">H", 0x4000 | n)
    return b"\x80" + struct.pack(">I", n) if n < 1 << 32 else b"\x81" + struct.pack(">Q", n)


def type_of(name, encoding):
    """The number of a data type, as RDB files write it."""
    type_id = 0
    for letter in name:
        type_id = type_id << 6 | NAMES.index(letter)
    return b"\x81" + struct.pack(">Q", type_id << 10 | encoding)


def values_of(values):
    """Numbers and strings, as a type writes them."""
    return b"".join(b"\x02" + length(value) if isinstance(value, int)
                    else b"\x05" + length(len(value)) + value for value in values) + b"\x00"


def payload(dump, name, encoding, *values):
    """As `dump`, which gives the versions, but of this type and these values: numbers
    and strings."""
    body = dump[:1] + type_of(name, encoding) + values_of(values) + dump[-10:-8]
    return body + struct.pack("<Q", crc(CRC64, body, 0))


def length_in(data, at):
    """The length at `at`, and where it ends."""
    first = data[at]
    if first < 0x40:
        return first, at + 1
    if first < 0x80:
        return struct.unpack_from(">H", data, at)[0] & 0x3FFF, at + 2
    return (struct.unpack_from(">I", data, at + 1)[0], at + 5) if first == 0x80 else \
        (struct.unpack_from(">Q", data, at + 1)[0], at + 9)


def values_in(dump):
    """Encoding and values of a payload of ours, made without compression."""
    encoding, at, values = struct.unpack_from(">Q", dump, 2)[0] & 1023, 10, []
    while dump[at]:
        value, end = length_in(dump, at + 1)
        if dump[at] == 5:
            value, end = dump[end:end + value], end + value
        values.append(value)
        at = end
    return encoding, values


def rdb_file(*aux):
    """An RDB file without keys; aux: name of a type, encoding, values."""
    body = b"REDIS0009"
    if aux:
        body += b"\xf7" + type_of(*aux[:2]) + b"\x02\x01" + values_of(aux[2:])
    return body + b"\xff" + bytes(8)  # a checksum of 0 is none
