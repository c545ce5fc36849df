"""A tunnel's ESP as scapy's own implementation sees it, with the keys that `danger_export_keys` wrote.

The cipher is AEAD with 64-bit sequence numbers (RFC 4303 appendix A, RFC 4106, RFC 7634). Scapy knows the IV on the
wire only; where it is implicit (RFC 8750) it is the sequence number, put in here before scapy sees the packet.
"""

import copy
import json
import logging
import struct

import blocks
import headers

logging.getLogger("scapy").setLevel(logging.ERROR)

from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: E402
from cryptography.hazmat.primitives.ciphers.algorithms import AES  # noqa: E402
from cryptography.hazmat.primitives.ciphers.modes import GCM  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.ipsec import ESP, IPSecIntegrityError, SecurityAssociation, _ESPPlain  # noqa: E402


class ShortTags:
    """AES-GCM with tags of 12 bytes, which scapy leaves to a class that knows only whole ones."""

    LEN = 12

    def __init__(self, key):
        self.key = AES(key)

    def encrypt(self, nonce, data, aad):
        cipher = Cipher(self.key, GCM(nonce)).encryptor()
        cipher.authenticate_additional_data(aad)
        return cipher.update(data) + cipher.finalize() + cipher.tag[: self.LEN]

    def decrypt(self, nonce, data, aad):
        cipher = Cipher(self.key, GCM(nonce, data[-self.LEN :], min_tag_length=self.LEN)).decryptor()
        cipher.authenticate_additional_data(aad)
        return cipher.update(data[: -self.LEN]) + cipher.finalize()


def short_tags(algorithm):
    """The same algorithm of scapy with short tags."""
    short = copy.copy(algorithm)
    short.cipher = ShortTags
    return short

AEAD = {
    "aes-128-gcm": "AES-GCM",
    "aes-256-gcm": "AES-GCM",
    "chacha20-poly1305": "CHACHA20-POLY1305",
    "aes-128-gcm-12": "AES-GCM",
}
ICV = {"aes-128-gcm-12": 12}  # bytes, where they are not 16 (RFC 4106 section 6)
IPV4, IPV6, NO_NEXT, IPCOMP, AGGFRAG = 4, 41, 59, 108, 144
CONGESTION = 1  # the AGGFRAG sub-type with a report (RFC 9347 section 6.1.2)
BLOCK, BLOCK_WITH_HISTORY, BLOCK_WITH_CACHE, PROBE = 0xF0, 0xE9, 0xEB, 0xF1  # private AGGFRAG sub-types
PLAIN = 0  # a block without a codec
CODED = 0x80  # with it: headers are coded
PROMPT = 0x20  # with it: need not wait until losses before it are repaired

HEADER = 0x11  # first byte of a header with a wrapped packet key, in front of ESP
NAMES = {0: 0, 1: 4, 3: 16, 4: 16, 8: 16}  # bytes of a name, by its name space
WRAPPED, CHECK = 48, 16  # bytes of the wrapped packet key and of the check behind it

Forged = IPSecIntegrityError


class Association:
    """One direction's key."""

    def __init__(self, row):
        self.direction = row["direction"]
        self.spi = int(row["spi"], 16)
        self.implicit = row["iv"] == "implicit"
        self.first = 0
        key = bytes.fromhex(row["key_and_salt"])
        suite = row["suite"]
        icv = ICV.get(suite)
        self.sa = SecurityAssociation(
            ESP, self.spi, crypt_algo=AEAD[suite], crypt_key=key, crypt_icv_size=icv, esn_en=True
        )

    def open(self, datagram):
        """The sequence number, next header and payload of a datagram; `Forged` when the ICV is wrong."""
        if datagram[0] == HEADER:
            datagram = self.behind_header(datagram)
        low = struct.unpack("!L", datagram[4:8])[0]
        # Numbers begin at the first; the low half says how far behind it one is.
        seq = self.first + (low - self.first & 0xFFFFFFFF)
        if self.implicit:
            datagram = datagram[:8] + struct.pack("!Q", seq) + datagram[8:]
        esn = seq >> 32
        if self.sa.crypt_icv_size:
            return seq, *self.open_short(datagram, esn)
        plain = self.sa.crypt_algo.decrypt(
            self.sa, ESP(datagram), self.sa.crypt_key, icv_size=self.sa.crypt_icv_size, esn_en=True, esn=esn
        )
        return seq, plain.nh, plain.data

    def open_short(self, datagram, esn):
        """The next header and payload where the tag is shorter than scapy takes it."""
        key, salt, icv = self.sa.crypt_key, self.sa.crypt_salt, self.sa.crypt_icv_size
        tag = datagram[-icv:]
        cipher = Cipher(AES(key), GCM(salt + datagram[8:16], tag, min_tag_length=icv)).decryptor()
        cipher.authenticate_additional_data(datagram[:4] + struct.pack("!L", esn) + datagram[4:8])
        plain = cipher.update(datagram[16:-icv]) + cipher.finalize()
        pad, next_header = plain[-2:]
        return next_header, plain[: -2 - pad]

    def behind_header(self, datagram):
        """The ESP packet behind a header of keys without sessions, which says the number of the key's first packet."""
        names, spi, self.first = struct.unpack("!xxBxxxxxxxxxLQ", datagram[:24])
        assert spi == self.spi, "a header of another SPI"
        lengths = [NAMES[names >> 4], NAMES[names & 15]]
        return datagram[24 + sum(lengths) + WRAPPED + CHECK :]

    def seal(self, seq, packet):
        """A datagram with one IPv4 packet."""
        iv = struct.pack("!Q", seq)
        pad = -(len(packet) + 2) % 4
        plain = _ESPPlain(
            spi=self.spi, seq=seq, iv=iv, data=packet, padding=bytes(range(1, pad + 1)), padlen=pad, nh=IPV4
        )
        sealed = bytes(self.sa.crypt_algo.encrypt(
            self.sa, plain, self.sa.crypt_key, icv_size=self.sa.crypt_icv_size, esn_en=True, esn=0
        ))
        return sealed[:8] + sealed[16:] if self.implicit else sealed


def associations(path):
    """The associations of a key file by SPI."""
    with open(path) as file:
        found = [Association(json.loads(line)) for line in file]
    return {association.spi: association for association in found}


def is_esp(datagram):
    """Whether a datagram of the tunnel's port is ESP, by its first byte, or has a header in front of ESP."""
    return len(datagram) > 8 and (0x04 <= datagram[0] <= 0x0F or datagram[0] == HEADER)


def spi(datagram):
    """The SPI of such a datagram."""
    at = 12 if datagram[0] == HEADER else 0
    return int.from_bytes(datagram[at : at + 4], "big")


def length(packet):
    """How long the IP packet at the start of some bytes says that it is."""
    if packet[0] >> 4 == 4:
        return struct.unpack("!H", packet[2:4])[0]
    return 40 + struct.unpack("!H", packet[4:6])[0]


def cut(region):
    """The whole IP packets at the start of some bytes; padding ends them (RFC 9347 section 6.1.3.3)."""
    packets = []
    while region and region[0] >> 4 in (4, 6):
        end = length(region)
        assert end <= len(region), "a packet is cut"
        packets.append(region[:end])
        region = region[end:]
    return packets


def report(payload):
    """A congestion report (RFC 9347 section 6.1.2), and the counts in the pad block behind whatever packets come with it."""
    flags, offset, loss_event_rate, times, tval, techo = struct.unpack("!xBHIQII", payload[:24])
    at = 24 + sum(len(packet) for packet in cut(payload[24:]))
    pad, version, spi, *counts = struct.unpack("!BBxxIQQQQ", payload[at : at + 40])
    assert (offset, pad, version) == (0, 0, 1), "no report of deliveries"
    names = ["datagrams", "bytes", "highest", "received_at"]
    return dict(zip(names, counts)) | {
        "flags": flags,
        "loss_event_rate": loss_event_rate,
        "rtt": times >> 42,
        "echo_delay": times >> 21 & 0x1FFFFF,
        "transmit_delay": times & 0x1FFFFF,
        "tval": tval,
        "techo": techo,
        "spi": spi,
    }


class Reader:
    """What the payloads of one association carry; what they refer to came on earlier ones too, and is in `history`."""

    def __init__(self, association, history):
        self.association, self.history = association, history
        self.parts = {}

    def read(self, seq, next_header, payload):
        """The kind of a payload, the packets that it completes and what else there is to say of it."""
        if next_header == AGGFRAG:
            found = self.history.read(self.association.direction, self.association.spi, seq, payload)
            if found:
                return found
            if payload[0] in (BLOCK_WITH_HISTORY, BLOCK_WITH_CACHE):
                return self.part_with_history(seq, payload)
        return *self.read_alone(next_header, payload), {}

    def part_with_history(self, seq, payload):
        """A part of a block that may be behind others, or copy from a cache."""
        codec, whole = self.gather(payload)
        if whole is None:
            return "part", [], {}
        receipt = (self.association.spi & 3) << 14 | seq & 0x3FFF
        kept = self.history.blocks[self.association.direction]
        if payload[0] == BLOCK_WITH_CACHE:
            plain, copied = kept.copy(codec, whole, receipt)
            packets = headers.bundle(plain, length) if codec & CODED else cut(plain)
            return "cache", packets, {"copied": copied}
        plain, behind = kept.expand(codec, whole, receipt)
        packets = headers.bundle(plain, length) if codec & CODED else cut(plain)
        return "history", packets, {"behind": behind}

    def read_alone(self, next_header, payload):
        """The same of what refers to nothing that came before."""
        if next_header in (IPV4, IPV6):
            return "packet", [payload]
        if next_header == IPCOMP:
            inner, _, cpi = struct.unpack("!BBH", payload[:4])
            assert (inner in (IPV4, IPV6), cpi) == (True, 2), f"IPComp of {inner} with CPI {cpi}"
            return "ipcomp", [blocks.inflate(payload[4:])]
        if next_header == NO_NEXT:
            return "other", []
        assert next_header == AGGFRAG, f"next header {next_header}"
        if payload[0] == 0:
            offset = struct.unpack("!H", payload[2:4])[0]
            assert offset == 0, "a bundle that begins with a fragment"
            return "bundle", cut(payload[4:])
        if payload[0] == CONGESTION:
            return "report", cut(payload[24:])
        if payload[0] == BLOCK:
            return self.part(payload)
        return "other", []

    def gather(self, payload):
        """The codec of a block and the bytes of all its parts, with the last to come; before, nothing of them."""
        codec, name, part, parts = struct.unpack("!BHBB", payload[1:6])
        have = self.parts.setdefault(name, {})
        have[part] = payload[6:]
        if len(have) < parts:
            return codec & ~PROMPT, None
        del self.parts[name]
        return codec & ~PROMPT, b"".join(have[at] for at in range(parts))

    def part(self, payload):
        """A part of a block; the last to come completes it."""
        codec, whole = self.gather(payload)
        if whole is None:
            return "part", []
        kind = codec & ~CODED
        packets = blocks.expand(kind, b"", whole) if kind != PLAIN else whole
        if codec & CODED:
            return "coded block" if kind else "coded", headers.bundle(packets, length)
        return "block" if kind else "bundle", cut(packets)


def datagrams(pcap, port):
    """The UDP payloads of a capture's datagrams from or to a port."""
    from scapy.utils import PcapReader

    with PcapReader(pcap) as frames:
        for frame in frames:
            if UDP in frame and port in (frame[UDP].sport, frame[UDP].dport):
                yield bytes(frame[UDP].payload)


__all__ = ["IP", "UDP", "Forged", "Reader", "associations", "datagrams", "is_esp", "report", "spi"]
