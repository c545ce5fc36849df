"""Headers of IP packets that are set against those of a packet before: fields from what `docs/design/wire-format.md` says.

A header is a dictionary. `read` gives the header behind a coded one, `write` the packet that it makes with a payload.
"""

import struct

from options import put, read_options, stamps, stamps_at

TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
OTHER = 0
SYN, FIN, URG = 0x02, 0x01, 0x20
SLOT, MORE, LEN, SEQ, ACK, WINDOW, STAMPS, LOWEST = (0x80 >> bit for bit in range(8))
KIND, FLOW, WORD, TOS, HOPS, CHECK, OPTIONS, TCP_ID = (0x80 >> bit for bit in range(8))
RAW = (MORE, 0)
U16, U32 = 0xFFFF, 0xFFFFFFFF

NONE = {"seq": 0, "ack": 0, "flags": 0, "window": 0, "urgent": 0, "options": b"", "check": None, "ack_step": 0}
# What a packet is set against that is set against no other.
FIRST = NONE | {
    "v6": False, "protocol": TCP, "word": 0x4000, "src": bytes(4), "dst": bytes(4), "ports": (0, 0), "tos": 0, "hops": 64,
    "id": 0, "step": 0, "payload_len": 0, "flags": 0x10,
}  # fmt: skip


class Coded:
    """Coded fields, from the front."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        piece = self.data[self.at : self.at + count]
        assert len(piece) == count, "coded headers are cut"
        self.at += count
        return piece

    def byte(self):
        return self.take(1)[0]

    def word(self):
        return int.from_bytes(self.take(4), "big")

    def number(self):
        """A number of 7, 14, 21, 28 or 32 bits, by the ones that it begins with."""
        first = self.byte()
        ones = next((bit for bit in range(4) if not first & 0x80 >> bit), 4)
        top = first & (0x7F >> ones) if ones < 4 else 0
        return top << 8 * ones | int.from_bytes(self.take(ones), "big")

    def near(self, base, mask):
        """A number by how far it is from `base`, either way."""
        folded = self.number()
        return base + (folded >> 1 ^ -(folded & 1)) & mask

    def ahead(self, base):
        """A number by how far it is ahead of `base`."""
        return base + self.number() & U32

    def rest(self):
        return self.data[self.at :]


def upper(header):
    """The protocol behind IP as far as its fields are known."""
    if not header["v6"] and header["word"] & 0x3FFF:
        return OTHER
    known = (UDP, TCP, ICMPV6 if header["v6"] else ICMP)
    return header["protocol"] if header["protocol"] in known else OTHER


def expected(before):
    """The header that follows another of its flow if nothing out of the usual happens."""
    after = dict(before)
    if before["step"] is not None:
        after["id"] = before["id"] + before["step"] & U16
    after["ack"] = before["ack"] + before["ack_step"] & U32
    kind = upper(before)
    if kind == TCP:
        control = bool(before["flags"] & SYN) + bool(before["flags"] & FIN)
        after["seq"] = before["seq"] + before["payload_len"] + control & U32
    else:
        after["seq"] = before["seq"] + 1 & U16 if kind in (ICMP, ICMPV6) else 0
    return after


def of_kind(header, v6, protocol, word):
    """The same for a packet of another kind: what only the kind before has is forgotten."""
    kind = upper(header)
    other = header | {"v6": v6, "protocol": protocol, "word": word}
    if v6 != header["v6"]:
        nowhere = bytes(16 if v6 else 4)
        other |= {"src": nowhere, "dst": nowhere, "id": 0, "step": 0}
    return other if upper(other) == kind else other | NONE


def read(before, coded):
    """The header that `coded` says behind `before`, or behind none."""
    usual = coded.byte()
    rare = coded.byte() if usual & MORE else 0
    assert not usual & MORE or rare & ~TCP_ID, "a byte of rare fields without any"
    if usual & SLOT:
        # There are no slots: the bit stands for a rare field.
        usual, rare = usual & ~SLOT, rare | TCP_ID
    return read_fields(before or FIRST, coded, usual, rare)


def change(coded, slot):
    """Which fields are not as expected, and the slot of the packet before."""
    usual = coded.byte()
    rare = coded.byte() if usual & MORE else 0
    return usual, rare, coded.byte() if usual & SLOT else slot


def read_fields(before, coded, usual, rare):
    after = expected(before)
    v6, protocol, word = after["v6"], after["protocol"], after["word"]
    if rare & KIND:
        both = coded.number()
        v6, protocol = bool(both & 1), both >> 1
    if rare & WORD:
        word = coded.number()
    after = of_kind(after, v6, protocol, word)
    header = dict(after)
    read_ip(coded, usual, rare, after, header)
    if upper(header) == TCP:
        read_tcp(coded, usual, rare, after, header)
    elif usual & SEQ:
        header["seq"] = coded.near(after["seq"], U32)
    if rare & CHECK:
        number = coded.number()
        header["check"] = number - 1 if number else None
    follow(before, header)
    return header


def read_ip(coded, usual, rare, after, header):
    tcp = upper(header) == TCP
    if rare & FLOW:
        read_flow(coded, after, header)
    if rare & TOS:
        header["tos"] = coded.byte()
    if rare & HOPS:
        header["hops"] = coded.byte()
    if after["step"] is None:
        header["id"] = int.from_bytes(coded.take(2), "big")
    elif tcp and rare & TCP_ID or not tcp and usual & LOWEST:
        header["id"] = coded.near(after["id"], U16)
    if usual & LEN:
        header["payload_len"] = coded.number()


def read_flow(coded, after, header):
    """Addresses and ports: of each, two bits say how it is written."""
    ways = coded.byte()

    def end(way, same, other, near):
        whole = len(same)
        known = {0: same, 1: other, 2: same[: whole - near], 3: b""}[way & 3]
        return known + coded.take(whole - len(known))

    near = 8 if header["v6"] else 1
    header["src"] = end(ways >> 6, after["src"], after["dst"], near)
    header["dst"] = end(ways >> 4, after["dst"], after["src"], near)
    first, second = (port.to_bytes(2, "big") for port in after["ports"])
    ports = end(ways >> 2, first, second, 1), end(ways, second, first, 1)
    header["ports"] = tuple(int.from_bytes(port, "big") for port in ports)


def read_tcp(coded, usual, rare, after, header):
    fresh = bool(rare & FLOW)
    if usual & LOWEST:
        header["flags"] = coded.number()
        header["urgent"] = coded.number() if header["flags"] & URG else 0
    if usual & SEQ:
        header["seq"] = coded.word() if fresh else coded.near(after["seq"], U32)
    if usual & ACK:
        header["ack"] = coded.word() if fresh else coded.ahead(after["ack"] - after["ack_step"])
    if usual & WINDOW:
        header["window"] = coded.near(after["window"], U16)
    if rare & OPTIONS:
        header["options"] = read_options(coded, stamps(after["options"]), header["ack"])
    at = stamps_at(header["options"])
    if at is not None and usual & STAMPS:
        before = stamps(after["options"])
        fresh = fresh or before is None
        values = [coded.word() if fresh else coded.ahead(value) for value in before or (0, 0)]
        header["options"] = put(header["options"], at, struct.pack("!LL", *values))


def follow(before, header):
    """Sets how the acknowledgement and the identification go on from here."""
    if not is_of(before, header):
        header["ack_step"] = 0
        habit = before["step"] is None and before["src"] == header["src"]
        header["step"] = None if habit else int(header["id"] != 0)
        return
    header["ack_step"] = header["ack"] - before["ack"] & U32
    step = header["id"] - before["id"] & U16
    if step in (0, 1, 0x100):
        header["step"] = step
    elif min(step, 0x10000 - step) >= 0x2000:
        header["step"] = None
    else:
        header["step"] = before["step"]


def bundle(data, length):
    """The packets of a bundle with coded headers; `length` gives that of a packet that is not coded."""
    front = Coded(data)
    coded, payloads = Coded(front.take(front.number())), Coded(front.rest())
    slots, newest, last, packets = {0: FIRST}, 0, 0, []
    while coded.rest():
        usual, rare, last = change(coded, last)
        if (usual, rare) == RAW:
            packets.append(payloads.take(length(payloads.rest())))
            continue
        before = slots[last]
        header = read_fields(before, coded, usual, rare)
        packets.append(write(header, payloads.take(header["payload_len"])))
        if not is_of(before, header):
            newest = last = newest + 1 & 0xFF
        slots[last] = header
    assert not payloads.rest(), "something behind the packets"
    return packets


def is_of(before, header):
    """Whether both are of one flow."""
    flow = ("v6", "protocol", "src", "dst", "ports")
    return upper(before) == upper(header) and all(before[key] == header[key] for key in flow)


def checksum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & U16) + (total >> 16)
    return total ^ U16


def write(header, payload):
    """The packet."""
    assert len(payload) == header["payload_len"], "another length than the header says"
    inner = write_upper(header, payload)
    if header["v6"]:
        word = 6 << 28 | header["tos"] << 20 | header["word"]
        front = struct.pack("!LHBB", word, len(inner), header["protocol"], header["hops"])
        return front + header["src"] + header["dst"] + inner
    length, flags = 20 + len(inner), header["word"]
    front = struct.pack("!BBHHHBBH", 0x45, header["tos"], length, header["id"], flags, header["hops"], header["protocol"], 0)
    front += header["src"] + header["dst"]
    return put(front, 10, checksum(front).to_bytes(2, "big")) + inner


def write_upper(header, payload):
    kind, (first, second) = upper(header), header["ports"]
    if kind == OTHER:
        return payload
    if kind == UDP:
        at, inner = 6, struct.pack("!HHHH", first, second, 8 + len(payload), 0)
    elif kind == TCP:
        urgent = header["urgent"] if header["flags"] & URG else 0
        words = (5 + len(header["options"]) // 4) << 12 | header["flags"]
        numbers = (first, second, header["seq"], header["ack"], words, header["window"], 0, urgent)
        at, inner = 16, struct.pack("!HHLLHHHH", *numbers) + header["options"]
    else:
        at, inner = 2, struct.pack("!HHHH", second, 0, first, header["seq"])
    inner += payload
    check = header["check"]
    if check is None:
        pseudo = header["src"] + header["dst"] + struct.pack("!LL", len(inner), header["protocol"])
        check = checksum((b"" if kind == ICMP else pseudo) + inner)
        if (check, kind) == (0, UDP):
            check = U16
    return put(inner, at, check.to_bytes(2, "big"))


__all__ = ["Coded", "bundle", "read", "write"]
