"""LZS behind bytes that both ends have (RFC 2395 section 2.2), bit by bit from its grammar."""


class Bits:
    """Bits of some bytes, the highest first."""

    def __init__(self, data):
        self.bits = "".join(f"{byte:08b}" for byte in data)
        self.at = 0

    def take(self, count):
        piece = self.bits[self.at : self.at + count]
        assert len(piece) == count, "LZS ends without its end marker"
        self.at += count
        return int(piece, 2)


def length(bits):
    """How long a repetition is."""
    if (two := bits.take(2)) < 3:
        return 2 + two
    if (two := bits.take(2)) < 3:
        return 5 + two
    if (four := bits.take(4)) < 15:
        return 8 + four
    more = 23
    while (four := bits.take(4)) == 15:
        more += 15
    return more + four


def expand(behind, data):
    """What `data` says after the bytes `behind`."""
    bits, out = Bits(data), bytearray(behind)
    while True:
        if bits.take(1) == 0:
            out.append(bits.take(8))
            continue
        offset = bits.take(7) if bits.take(1) else bits.take(11)
        if offset == 0:
            return bytes(out[len(behind) :])
        assert offset <= len(out), "LZS reaches before its beginning"
        for _ in range(length(bits)):
            out.append(out[-offset])


__all__ = ["expand"]
