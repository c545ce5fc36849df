"""The IPsec family as scapy has it: seals packets and opens those of others, one JSON request a line, one answer a line.

A request names an association, which is one direction, and what to do with it:

    {"association": {...}, "seal": ["45...", ...], "number": 1}    {"datagrams": ["45...", ...]}
    {"association": {...}, "open": ["45...", ...]}                 {"packets": ["45...", ...], "datagrams": [{...}, ...]}

Packets are whole, in hexadecimal, numbered from `number` on. Of each datagram that was opened, `layers` says what was
taken off, outermost first, and `number` the lower half of its sequence number. What cannot be done is answered with
{"error": "..."}. An association has:

    mode        "transport", "tunnel" or "aggfrag" (RFC 9347, in payloads of `size` bytes), the last two
                from `source` to `destination`
    ipcomp, esp, ah, udp
                what is put around that, in this order, each there or null:
                {"cpi"}, {"spi", "cipher", "key", "integrity", "integrity_key"}, {"spi", "integrity", "key"}, [from port, to port]
    esn         the upper half of its sequence numbers, or null where they have 32 bits

Algorithms go by the project's names. AES, its modes, HMAC, the place and form of ESP and AH, padding and what AH
covers are scapy's and python-cryptography's. Ours are IPComp around zlib (RFC 3173, RFC 2394), the outer header, UDP
(RFC 3948), bundles, and what scapy 2.5 has wrong, each where that is made up for.
"""

import json
import struct
import sys
import zlib

import blocks
import esp as tunnel
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting
from scapy.layers.ipsec import AH, AUTH_ALGOS, ESP, IPSecIntegrityError, SecurityAssociation, split_for_transport
from scapy.packet import Raw, split_layers

CIPHERS = tunnel.AEAD | {
    "aes-128-cbc": "AES-CBC",
    "aes-192-cbc": "AES-CBC",
    "aes-256-cbc": "AES-CBC",
    "des-cbc": "DES",
    "3des-cbc": "3DES",
    "null": "NULL",
}
INTEGRITY = {
    "hmac-sha-256-128": "SHA2-256-128",
    "hmac-sha-384-192": "SHA2-384-192",
    "hmac-sha-512-256": "SHA2-512-256",
    "hmac-sha-1-96": "HMAC-SHA1-96",
    "hmac-md5-96": "HMAC-MD5-96",
}

# Distances of at most 2,048 bytes: newer kernels follow no further.
WINDOW = -11
AGGFRAG_HEADER = 4

# Where scapy finds ESP by itself it signs that instead of an AH in front, and takes whatever else is on port 4500 for it.
split_layers(IP, ESP, proto=50)
split_layers(IPv6, ESP, nh=50)
split_layers(UDP, ESP, dport=4500)
split_layers(UDP, ESP, sport=4500)


def parse(packet):
    return (IP if packet[0] >> 4 == 4 else IPv6)(packet)


def headers(packet):
    """A packet whose payload is raw, and the header in front of it: the last of those that stay in front of AH, ESP and
    IPComp. Scapy knows AH and ESP only directly behind IP.
    """
    front = last = parse(packet)
    while isinstance(last.payload, (IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, IPv6ExtHdrDestOpt)):
        last = last.payload
    payload = bytes(last.payload)
    last.remove_payload()
    last.add_payload(Raw(payload))
    return front, last


def next_header(last):
    return last.proto if isinstance(last, IP) else last.nh


def refit(front, last, number, payload):
    """The packet with another payload behind its headers."""
    last.remove_payload()
    setattr(last, "proto" if isinstance(last, IP) else "nh", number)
    for field in ("len", "chksum") if front.version == 4 else ("plen",):
        delattr(front, field)
    return bytes(front / Raw(payload))


def peel(packet, number, what):
    """The headers of a packet, the last of them, and its payload, which must be of a kind."""
    front, last = headers(packet)
    assert next_header(last) == number, f"{what} is {number}, here is {next_header(last)}"
    return front, last, bytes(last.payload)


class ExtendedIntegrity:
    """Scapy leaves the upper half of the number out of ESP's separate ICV, where it comes last (RFC 4303 section 2.2.1)."""

    def __init__(self, algorithm, high):
        self.algorithm, self.high, self.icv_size = algorithm, high, algorithm.icv_size

    def icv(self, data, key):
        mac = self.algorithm.new_mac(key)
        mac.update(data + struct.pack("!L", self.high))
        return mac.finalize()[: self.icv_size]

    def sign(self, esp, key):
        esp.data += self.icv(bytes(esp), key)

    def verify(self, esp, key):
        data = bytes(esp)
        if self.icv(data[: -self.icv_size], key) != data[-self.icv_size :]:
            raise IPSecIntegrityError("the ICV over the extended number is wrong")


class Protected:
    """One of IPsec's own protocols, by an association of scapy's."""

    def seal(self, packet, number):
        return bytes(self.sa.encrypt(parse(packet), seq_num=number))

    def open(self, packet):
        front, last, payload = peel(packet, self.number, self.layer.__name__)
        inside = self.layer(payload)
        last.remove_payload()
        last.add_payload(inside)
        return {"layer": self.layer.__name__.lower(), "number": inside.seq}, bytes(self.sa.decrypt(front))


class Esp(Protected):
    layer, number = ESP, 50

    def __init__(self, spec, esn):
        names = {"crypt_algo": CIPHERS[spec["cipher"]], "crypt_key": bytes.fromhex(spec["key"]) or None}
        names["crypt_icv_size"] = tunnel.ICV.get(spec["cipher"])
        if spec["integrity"]:
            names |= {"auth_algo": INTEGRITY[spec["integrity"]], "auth_key": bytes.fromhex(spec["integrity_key"])}
        self.sa = SecurityAssociation(ESP, spec["spi"], esn_en=esn is not None, esn=esn or 0, **names)
        if names["crypt_icv_size"]:
            self.sa.crypt_algo = tunnel.short_tags(self.sa.crypt_algo)
        if spec["integrity"] and esn is not None:
            self.sa.auth_algo = ExtendedIntegrity(self.sa.auth_algo, esn)


class Ah(Protected):
    layer, number = AH, 51

    def __init__(self, spec, esn):
        integrity = {"auth_algo": INTEGRITY[spec["integrity"]], "auth_key": bytes.fromhex(spec["key"])}
        self.sa = SecurityAssociation(AH, spec["spi"], esn_en=esn is not None, esn=esn or 0, **integrity)


class Ipcomp:
    def __init__(self, spec):
        self.cpi = spec["cpi"]

    def seal(self, packet, _number):
        front, number, payload = split_for_transport(parse(packet), 108)
        payload = bytes(payload)
        stream = zlib.compressobj(level=9, wbits=WINDOW)
        compressed = stream.compress(payload) + stream.flush()
        if 4 + len(compressed) >= len(payload):
            return packet
        return bytes(front.__class__(bytes(front / Raw(struct.pack("!BBH", number, 0, self.cpi) + compressed))))

    def open(self, packet):
        front, last = headers(packet)
        if next_header(last) != 108:
            return None, packet
        payload = bytes(last.payload)
        number, flags, cpi = struct.unpack("!BBH", payload[:4])
        assert (flags, cpi) == (0, self.cpi), f"IPComp with flags {flags} and CPI {cpi}"
        return {"layer": "ipcomp"}, refit(front, last, number, blocks.inflate(payload[4:]))


class Udp:
    def __init__(self, ports):
        self.ports = ports

    def seal(self, packet, _number):
        front, last, payload = peel(packet, 50, "ESP")
        udp = UDP(sport=self.ports[0], dport=self.ports[1], len=8 + len(payload), chksum=0)
        packet = parse(refit(front, last, 17, bytes(udp) + payload))
        # Over IPv4 there is no checksum (RFC 3948 section 2.1); over IPv6 receivers may want one.
        if packet.version == 6:
            del packet[UDP].chksum
        return bytes(packet.__class__(bytes(packet)))

    def open(self, packet):
        front, last, payload = peel(packet, 17, "UDP")
        udp = UDP(payload)
        assert [udp.sport, udp.dport] == self.ports, f"from port {udp.sport} to {udp.dport}"
        assert udp.len == len(payload), f"{udp.len} bytes of UDP in {len(payload)}"
        return {"layer": "udp"}, refit(front, last, 50, payload[8:])


class Tunnel:
    """The header around whole packets, or around bundles of them."""

    def __init__(self, association):
        self.source, self.destination = association["source"], association["destination"]
        self.size = association["size"] if association["mode"] == "aggfrag" else None

    def seal(self, packets):
        outer = {"src": self.source, "dst": self.destination}
        kind = (IPv6, "nh") if ":" in self.source else (IP, "proto")
        if self.size:
            return [bytes(kind[0](**outer, **{kind[1]: 144}) / Raw(payload)) for payload in bundle(packets, self.size)]
        number = {4: 4, 6: 41}
        return [bytes(kind[0](**outer, **{kind[1]: number[packet[0] >> 4]}) / Raw(packet)) for packet in packets]

    def open(self, packets):
        payloads = []
        for packet in packets:
            front, last = headers(packet)
            assert (front.src, front.dst) == (self.source, self.destination), f"from {front.src} to {front.dst}"
            payloads.append((next_header(last), bytes(last.payload)))
        if self.size:
            assert all(number == 144 for number, _ in payloads), f"next headers {[number for number, _ in payloads]}"
            return unbundle(payload for _, payload in payloads)
        for number, payload in payloads:
            assert number == {4: 4, 6: 41}[payload[0] >> 4], f"next header {number}"
        return [payload for _, payload in payloads]


def bundle(packets, size):
    """AGGFRAG payloads of one size (RFC 9347 section 2.2.1): packets in a row, cut wherever a payload is full."""
    stream, starts = b"".join(packets), [0]
    for packet in packets:
        starts.append(starts[-1] + len(packet))
    room = size - AGGFRAG_HEADER
    for at in range(0, len(stream), room):
        offset = next(start for start in starts if start >= at) - at
        yield struct.pack("!BBH", 0, 0, offset) + stream[at : at + room].ljust(room, b"\0")


def unbundle(payloads):
    """The packets in AGGFRAG payloads that came in order."""
    packets, rest = [], b""
    for payload in payloads:
        subtype, _, offset = struct.unpack("!BBH", payload[:AGGFRAG_HEADER])
        assert subtype == 0, f"sub-type {subtype}"
        data = payload[AGGFRAG_HEADER:]
        stream = rest + data if rest else data[offset:]
        # The offset tells where the next packet starts, which the one before tells as well.
        assert len(rest) < 6 or offset == tunnel.length(rest) - len(rest), f"offset {offset} after {len(rest)} bytes"
        while stream and stream[0] >> 4 in (4, 6) and len(stream) >= 6 and len(stream) >= tunnel.length(stream):
            end = tunnel.length(stream)
            packets.append(stream[:end])
            stream = stream[end:]
        rest = stream if stream and stream[0] >> 4 in (4, 6) else b""
    assert not rest, f"{len(rest)} bytes of a packet without their end"
    return packets


def layers(association):
    """What is put around packets one by one, innermost first."""
    esn = association["esn"]
    kinds = [("ipcomp", Ipcomp), ("esp", lambda spec: Esp(spec, esn)), ("ah", lambda spec: Ah(spec, esn)), ("udp", Udp)]
    return [kind(association[name]) for name, kind in kinds if association[name]]


def seal(association, packets, number):
    if association["mode"] != "transport":
        packets = Tunnel(association).seal(packets)
    for layer in layers(association):
        packets = [layer.seal(packet, number + at) for at, packet in enumerate(packets)]
    return {"datagrams": [packet.hex() for packet in packets]}


def open_(association, datagrams):
    packets, found = datagrams, [{"layers": [], "number": None} for _ in datagrams]
    for layer in reversed(layers(association)):
        opened = [layer.open(packet) for packet in packets]
        packets = [packet for _, packet in opened]
        for datagram, (removed, _) in zip(found, opened):
            if removed:
                datagram["layers"].append(removed["layer"])
                datagram["number"] = datagram["number"] or removed.get("number")
    if association["mode"] != "transport":
        packets = Tunnel(association).open(packets)
    return {"packets": [packet.hex() for packet in packets], "datagrams": found}


def answer(request):
    association = request["association"]
    if "seal" in request:
        return seal(association, [bytes.fromhex(packet) for packet in request["seal"]], request["number"])
    return open_(association, [bytes.fromhex(datagram) for datagram in request["open"]])


for line in sys.stdin:
    try:
        reply = answer(json.loads(line))
    # Whatever a broken packet makes of scapy is an answer, too.
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), flush=True)
