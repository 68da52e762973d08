"""DUMP payloads of our types, made by hand: what an earlier module has saved, or one
that means harm."""
import struct

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
CRC64 = []  # of the server: Jones' polynomial, reflected


def crc64(data):
    if not CRC64:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
            CRC64.append(byte)
    crc = 0
    for byte in data:
        crc = CRC64[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def length(n):
    """As RDB files write it."""
    if n < 1 << 6:
        return bytes([n])
    if n < 1 << 14:
        return struct.pack(">H", 0x4000 | n)
    return b"\x80" + struct.pack(">I", n) if n < 1 << 32 else b"\x81" + struct.pack(">Q", n)


def payload(dump, name, encoding, *values):
    """As `dump`, which gives the versions, but of this type and these values: numbers
    and strings."""
    type_id = 0
    for letter in name:
        type_id = type_id << 6 | NAMES.index(letter)
    body = dump[:1] + b"\x81" + struct.pack(">Q", type_id << 10 | encoding)
    for value in values:
        if isinstance(value, int):
            body += b"\x02" + length(value)
        else:
            body += b"\x05" + length(len(value)) + value
    body += b"\x00" + dump[-10:-8]
    return body + struct.pack("<Q", crc64(body))
