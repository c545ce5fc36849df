"""Blocks of one flow, compressed behind earlier ones: what a receiver does, from `docs/design/wire-format.md`.

It also holds the sender to its promise: what a block is compressed behind was acknowledged before it left.
"""

import os
import subprocess
import tempfile
import zlib

import headers

CODED, PLAIN, DEFLATE, ZSTD = 0x80, 0, 1, 3
KEEP, HISTORY, CACHE = 0x80, 0x40, 0x3F  # the first byte of a block that copies from a cache
COPY_MIN = 64
MAGIC = bytes([0x28, 0xB5, 0x2F, 0xFD])
BEHIND_MAX = 131072


class Blocks:
    """What the receiver of one direction keeps of blocks."""

    def __init__(self):
        self.streams = {}
        # Bytes of caches by their positions, each with the receipt of its block.
        self.caches = {}
        # Blocks that were to be kept, by their receipts, and those that were acknowledged.
        self.owed = {}
        self.acknowledged = set()

    def expand(self, codec, whole, receipt):
        """What a block became, and how many blocks it is behind; the datagram with this receipt made it whole."""
        plain, behind, said = self.behind(codec, whole)
        stream, keep = said
        if keep:
            self.streams.setdefault(stream, {})[keep] = payloads(codec, plain)
            self.owed[receipt] = [(stream, keep)]
        return plain, behind

    def behind(self, codec, whole):
        """What a codec made behind other blocks, how many these are, and which block of its stream this is."""
        stream, keep, newest = whole[0], number(whole[1:3]), number(whole[3:5])
        behind, at = [], 5
        if newest:
            earlier, at = int.from_bytes(whole[5:9], "big"), 9
            behind = [newest - 1 - bit & 0xFFFF for bit in reversed(range(32)) if earlier & 1 << bit] + [newest]
        for name in behind:
            assert (stream, name) in self.acknowledged, "a block is behind one that was not acknowledged"
        window = b"".join(self.streams[stream][name] for name in behind)
        assert len(window) <= BEHIND_MAX, "a block is behind too much"
        assert not behind or codec & ~CODED == ZSTD, f"codec {codec} behind others"
        return expand(codec & ~CODED, window, whole[at:]), len(behind), (stream, keep)

    def copy(self, codec, whole, receipt):
        """What a block became that copies from a cache, and how many bytes it copied."""
        flags, at = whole[0], 1
        position, owed = None, []
        if flags & KEEP:
            position, at = int.from_bytes(whole[1:9], "big"), 9
        if flags & HISTORY:
            staged, _, said = self.behind(codec, whole[at:])
        else:
            staged, said = expand(codec & ~CODED, b"", whole[at:]), (0, 0)
        head = 0
        if codec & CODED:
            coded = headers.Coded(staged)
            length = coded.number()
            head = coded.at + length
        cache = flags & CACHE
        text, copied = self.copies(cache, staged[head:])
        if position is not None:
            for place, byte in enumerate(text, position):
                self.caches.setdefault(cache, {})[place] = (byte, receipt)
            owed.append(("cache", receipt))
        if said[1]:
            self.streams.setdefault(said[0], {})[said[1]] = text
            owed.append(said)
        if owed:
            self.owed[receipt] = owed
        return staged[:head] + text, copied

    def copies(self, cache, coded):
        """Bytes that are said by copies from a cache, and how many are copied."""
        count, at = leb(coded, 0)
        fields, end = [], 0
        for _ in range(count):
            between, at = leb(coded, at)
            more, at = leb(coded, at)
            far, at = leb(coded, at)
            start = end + (far >> 1 if far & 1 == 0 else ~(far >> 1))
            fields.append((between, more + COPY_MIN, start))
            end = start + more + COPY_MIN
        text, copied = bytearray(), 0
        for between, length, start in fields:
            text += coded[at : at + between]
            at += between
            for place in range(start, start + length):
                byte, receipt = self.caches[cache][place]
                assert ("cache", receipt) in self.acknowledged, "a copy is from what was not acknowledged"
                text.append(byte)
            copied += length
        return bytes(text) + coded[at:], copied

    def receive(self, receipts):
        """The other end has kept these."""
        for receipt in receipts:
            self.acknowledged.update(self.owed[receipt])


def leb(data, at):
    """A number in LEB128, and where it ends."""
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def number(two):
    return int.from_bytes(two, "big")


def payloads(codec, plain):
    """What is kept of a block."""
    if not codec & CODED:
        return plain
    coded = headers.Coded(plain)
    length = coded.number()
    return plain[coded.at + length :]


def expand(codec, window, frame):
    """What a codec made: a frame of Zstandard behind a window is expanded by the program of its authors."""
    if codec == PLAIN:
        return frame
    if codec == DEFLATE:
        return inflate(frame)
    assert codec == ZSTD, f"codec {codec}"
    command = ["zstd", "-d", "-c", "-q", "--no-progress"]
    with tempfile.TemporaryDirectory() as folder:
        if window:
            path = os.path.join(folder, "window")
            with open(path, "wb") as file:
                file.write(b"\0" + window)
            command += ["-D", path]
        return subprocess.run(command, input=MAGIC + frame, stdout=subprocess.PIPE, check=True).stdout


def inflate(data):
    """Raw DEFLATE to its end and no further (RFC 1951)."""
    stream = zlib.decompressobj(wbits=-15)
    out = stream.decompress(data)
    assert stream.eof and not stream.unused_data, "DEFLATE does not end with the payload"
    return out


__all__ = ["Blocks", "expand", "inflate"]
