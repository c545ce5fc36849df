"""Packets that left alone, coded against earlier ones: what a receiver does, from `docs/design/wire-format.md`.

It also holds the sender to its promise: what a unit refers to was acknowledged before it left.
"""

import headers
import lzs
from blocks import Blocks

LONE, RECEIPTS, BLOCK_RECEIPTS = range(0xE0, 0xE8), 0xE8, 0xEA
RIDING, CODED = 0x03, 0x04
DIFFERENCE, LZS, RTP = 0x10, 0x20, 0x30
WINDOW = 2047


class Kept:
    """A packet at a place."""

    def __init__(self, unit, header, payload):
        self.unit, self.header, self.payload = unit, header, payload


class Direction:
    """What the receiver of one direction keeps."""

    def __init__(self):
        self.order = []
        self.places = {}
        # Units that were to be kept, by their receipts, and those that were acknowledged.
        self.owed = {}
        self.acknowledged = set()

    def decode(self, spi, seq, payload):
        """The packet of a lone unit, its receipts, and what the unit is."""
        if spi not in self.order:
            self.order.append(spi)
        unit = (self.order.index(spi), seq)
        subtype, context, both = payload[:3]
        at = 3 + 2 * (subtype & RIDING)
        receipts = shorts(payload[3:at])
        keep, against = both >> 4, both & 15
        places = self.places.setdefault(context, {})
        before = self.refer(places, against, unit).header if against else None
        coded = headers.Coded(payload[at:])
        header = headers.read(before, coded)
        way, body = "raw", coded.rest()
        if subtype & CODED:
            way, body = self.expand(places, unit, body, header["payload_len"])
        packet = headers.write(header, body)
        if keep and (keep not in places or places[keep].unit < unit):
            places[keep] = Kept(unit, header, body)
            self.owed[(spi & 3) << 14 | seq & 0x3FFF] = unit
        return packet, receipts, {"keep": keep, "against": against, "payload": way}

    def refer(self, places, place, unit):
        kept = places[place]
        assert kept.unit < unit, "the packet of a place is newer than the unit that refers to it"
        assert kept.unit in self.acknowledged, "a unit refers to a packet that was not acknowledged"
        return kept

    def expand(self, places, unit, coded, length):
        """A coded payload."""
        if coded[0] == LZS:
            bits = int.from_bytes(coded[1:3], "big")
            found = [place for place in range(1, 16) if bits & 1 << place - 1]
            window = b"".join(self.refer(places, place, unit).payload for place in found)
            assert bits < 1 << 15 and len(window) <= WINDOW, "LZS behind too much"
            return "lzs", lzs.expand(window, coded[3:])
        before = self.refer(places, coded[0] & 15, unit).payload
        if coded[0] & 0xF0 == RTP:
            return "rtp", speech(before, coded[1:], length)
        assert coded[0] & 0xF0 == DIFFERENCE, "an unknown way to code a payload"
        return "difference", undo(before, coded[1:], length)

    def receive(self, receipts):
        """The other end has kept these."""
        for receipt in receipts:
            self.acknowledged.add(self.owed[receipt])


class History:
    """Both directions of a tunnel."""

    def __init__(self):
        self.directions = {"in": Direction(), "out": Direction()}
        self.blocks = {"in": Blocks(), "out": Blocks()}

    def read(self, direction, spi, seq, payload):
        """The kind of a payload of next header 144, its packets and what it is; nothing where it is something else."""
        other = "in" if direction == "out" else "out"
        back = self.directions[other]
        if payload[0] in (RECEIPTS, BLOCK_RECEIPTS):
            receipts = shorts(payload[1:])
            assert 1 <= len(receipts) <= 16, "no receipts, or too many"
            (back if payload[0] == RECEIPTS else self.blocks[other]).receive(receipts)
            return "receipts", [], {"receipts": len(receipts)}
        if payload[0] not in LONE:
            return None
        packet, receipts, what = self.directions[direction].decode(spi, seq, payload)
        back.receive(receipts)
        return "lone", [packet], what | {"receipts": len(receipts)}


def shorts(data):
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def undo(before, coded, length):
    """A payload by what is equal to the one before at the same place, and what is not."""
    at, out = 0, bytearray()
    while at < len(coded):
        equal, at = count(coded, at)
        assert len(out) + equal <= len(before), "a difference reaches behind what it is of"
        out += before[len(out) : len(out) + equal]
        if at < len(coded):
            differing, at = count(coded, at)
            out += coded[at : at + differing]
            at += differing
    out += before[len(out) : length]
    assert len(out) == length and at == len(coded), "a difference of another length"
    return bytes(out)


def count(coded, at):
    """A number of bytes, and where it ends."""
    low = coded[at]
    return (low, at + 1) if low < 0x80 else (low & 0x7F | coded[at + 1] << 7, at + 2)


def speech(before, coded, length):
    """A payload of RTP (RFC 3550 section 5.1) that is some packets ahead of another."""
    ahead, marker = coded[0] >> 1, coded[0] & 1
    step, at = count(coded, 1)
    number = int.from_bytes(before[2:4], "big") + ahead & 0xFFFF
    time = int.from_bytes(before[4:8], "big") + ahead * step & 0xFFFFFFFF
    second = before[1] & 0x7F | marker << 7
    out = bytes([before[0], second]) + number.to_bytes(2, "big") + time.to_bytes(4, "big") + before[8:12] + coded[at:]
    assert len(out) == length, "a payload of RTP of another length"
    return out


__all__ = ["History"]
