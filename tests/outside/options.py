"""TCP's options in coded headers, which are as they stand but for timestamps and SACK."""

import struct

U32 = 0xFFFFFFFF


def put(options, at, value):
    return options[:at] + value + options[at + len(value) :]


def option(options, at, stamped):
    """How many bytes an option has, and whether it is timestamps or SACK."""
    rest = len(options) - at
    if options[at] in (0, 1) or rest == 1:
        return 1, None
    kind, length = options[at], options[at + 1]
    if not 2 <= length <= rest:
        return rest, None
    if (kind, length, stamped) == (8, 10, False):
        return length, "stamps"
    return length, "sack" if kind == 5 and (length - 2) % 8 == 0 else None


def stamps_at(options):
    """Where the timestamps are."""
    at = 0
    while at < len(options):
        length, what = option(options, at, False)
        if what == "stamps":
            return at + 2
        at += length
    return None


def stamps(options):
    at = stamps_at(options)
    return None if at is None else struct.unpack("!LL", options[at : at + 8])


def read_options(coded, before, ack):
    """TCP's options one by one; timestamps come later."""
    options = bytes(4 * coded.byte())
    assert len(options) <= 40, "options that are too long"
    at, stamped = 0, False
    while at < len(options):
        options = put(options, at, coded.take(1))
        if options[at] > 1 and at + 1 < len(options):
            options = put(options, at + 1, coded.take(1))
        length, what = option(options, at, stamped)
        if what == "stamps":
            stamped = True
            options = put(options, at + 2, struct.pack("!LL", *(before or (0, 0))))
        elif what == "sack":
            edge = ack
            for place in range(at + 2, at + length, 4):
                edge = coded.near(edge, U32)
                options = put(options, place, edge.to_bytes(4, "big"))
        elif length > 2:
            options = put(options, at + 2, coded.take(length - 2))
        at += length
    return options


__all__ = ["put", "read_options", "stamps", "stamps_at"]
