"""Blocks of one flow, compressed behind earlier ones: what a receiver does, from `docs/design/wire-format.md`.

It also holds the sender to its promise: what a block is compressed behind was acknowledged before it left.
"""

import os
import subprocess
import tempfile
import zlib

import headers

CODED, DEFLATE, ZSTD = 0x80, 1, 3
MAGIC = bytes([0x28, 0xB5, 0x2F, 0xFD])
BEHIND_MAX = 131072


class Blocks:
    """What the receiver of one direction keeps of blocks."""

    def __init__(self):
        self.streams = {}
        # Blocks that were to be kept, by their receipts, and those that were acknowledged.
        self.owed = {}
        self.acknowledged = set()

    def expand(self, codec, whole, receipt):
        """What a block became, and how many blocks it is behind; the datagram with this receipt made it whole."""
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
        plain = expand(codec & ~CODED, window, whole[at:])
        if keep:
            self.streams.setdefault(stream, {})[keep] = payloads(codec, plain)
            self.owed[receipt] = (stream, keep)
        return plain, len(behind)

    def receive(self, receipts):
        """The other end has kept these."""
        for receipt in receipts:
            self.acknowledged.add(self.owed[receipt])


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
