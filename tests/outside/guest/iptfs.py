"""IP-TFS tunnels (RFC 9347) in a guest's kernel, state and policies of each direction, which ip(8) has no words for yet.

    iptfs.py '{"direction": "in", "source": ..., "destination": ..., "spi": ..., "reqid": ..., "algorithm": ..., "key": ...,
               "esn": ..., "udp": [4500, 4500] or null, "options": {"pkt_size": ...}, "selectors": [[from, to], ...]}' ...

Structures and numbers are those of linux/xfrm.h and linux/netlink.h, and keep their names.
"""

import ctypes
import ipaddress
import json
import os
import socket
import sys
from ctypes import c_int32, c_uint8, c_uint16, c_uint32, c_uint64

NETLINK_XFRM, SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 6, 270, 10, 11
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE, NLMSG_ERROR = 0x1, 0x4, 0x200, 0x400, 2
XFRM_MSG_NEWSA, XFRM_MSG_NEWPOLICY = 0x10, 0x13
XFRMA_ENCAP, XFRMA_TMPL, XFRMA_ALG_AEAD, XFRMA_REPLAY_ESN_VAL, XFRMA_SA_DIR = 4, 5, 18, 23, 33
XFRM_MODE_IPTFS, XFRM_STATE_AF_UNSPEC, XFRM_STATE_ESN, XFRM_INF = 5, 32, 128, 2**64 - 1
UDP_ENCAP_ESPINUDP = 2
DIRECTIONS = {"in": (1, 0), "out": (2, 1)}  # XFRM_SA_DIR_*, XFRM_POLICY_*
OPTIONS = {  # XFRMA_IPTFS_*; times in microseconds
    "drop_time": (36, c_uint32),
    "reorder_window": (37, c_uint16),
    "init_delay": (39, c_uint32),
    "max_qsize": (40, c_uint32),
    "pkt_size": (41, c_uint32),
}
WINDOW = 64  # packets
ICV = 128  # bits

Address = c_uint32 * 4  # xfrm_address_t, aligned like this


def structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": fields})


nlmsghdr = structure(
    "nlmsghdr", ("len", c_uint32), ("type", c_uint16), ("flags", c_uint16), ("seq", c_uint32), ("pid", c_uint32)
)
xfrm_selector = structure(
    "xfrm_selector",
    ("daddr", Address),
    ("saddr", Address),
    ("dport", c_uint16),
    ("dport_mask", c_uint16),
    ("sport", c_uint16),
    ("sport_mask", c_uint16),
    ("family", c_uint16),
    ("prefixlen_d", c_uint8),
    ("prefixlen_s", c_uint8),
    ("proto", c_uint8),
    ("ifindex", c_int32),
    ("user", c_uint32),
)
xfrm_id = structure("xfrm_id", ("daddr", Address), ("spi", ctypes.c_uint32.__ctype_be__), ("proto", c_uint8))
xfrm_lifetime_cfg = structure("xfrm_lifetime_cfg", ("byte_and_packet_limits", c_uint64 * 4), ("times", c_uint64 * 4))
xfrm_lifetime_cur = structure("xfrm_lifetime_cur", ("counters", c_uint64 * 4))
xfrm_stats = structure("xfrm_stats", ("counters", c_uint32 * 3))
xfrm_usersa_info = structure(
    "xfrm_usersa_info",
    ("sel", xfrm_selector),
    ("id", xfrm_id),
    ("saddr", Address),
    ("lft", xfrm_lifetime_cfg),
    ("curlft", xfrm_lifetime_cur),
    ("stats", xfrm_stats),
    ("seq", c_uint32),
    ("reqid", c_uint32),
    ("family", c_uint16),
    ("mode", c_uint8),
    ("replay_window", c_uint8),
    ("flags", c_uint8),
)
xfrm_userpolicy_info = structure(
    "xfrm_userpolicy_info",
    ("sel", xfrm_selector),
    ("lft", xfrm_lifetime_cfg),
    ("curlft", xfrm_lifetime_cur),
    ("priority", c_uint32),
    ("index", c_uint32),
    ("dir", c_uint8),
    ("action", c_uint8),
    ("flags", c_uint8),
    ("share", c_uint8),
)
xfrm_user_tmpl = structure(
    "xfrm_user_tmpl",
    ("id", xfrm_id),
    ("family", c_uint16),
    ("saddr", Address),
    ("reqid", c_uint32),
    ("mode", c_uint8),
    ("share", c_uint8),
    ("optional", c_uint8),
    ("aalgos", c_uint32),
    ("ealgos", c_uint32),
    ("calgos", c_uint32),
)
xfrm_algo_aead = structure(
    "xfrm_algo_aead", ("name", ctypes.c_char * 64), ("key_len", c_uint32), ("icv_len", c_uint32)
)
xfrm_encap_tmpl = structure(
    "xfrm_encap_tmpl",
    ("type", c_uint16),
    ("sport", c_uint16.__ctype_be__),
    ("dport", c_uint16.__ctype_be__),
    ("oa", Address),
)
xfrm_replay_state_esn = structure(
    "xfrm_replay_state_esn",
    ("bmp_len", c_uint32),
    ("oseq", c_uint32),
    ("seq", c_uint32),
    ("oseq_hi", c_uint32),
    ("seq_hi", c_uint32),
    ("replay_window", c_uint32),
)


def address(text):
    return Address.from_buffer_copy(ipaddress.ip_address(text).packed.ljust(ctypes.sizeof(Address), b"\0"))


def family(text):
    return {4: socket.AF_INET, 6: socket.AF_INET6}[ipaddress.ip_address(text).version]


def attribute(kind, data):
    data = bytes(data)
    header = (4 + len(data)).to_bytes(2, sys.byteorder) + kind.to_bytes(2, sys.byteorder)
    return header + data + bytes(-len(data) % 4)


def lifetime():
    return xfrm_lifetime_cfg((XFRM_INF,) * 4)


def identity(spec, spi):
    return xfrm_id(address(spec["destination"]), spi, socket.IPPROTO_ESP)


def state(spec):
    info = xfrm_usersa_info(
        id=identity(spec, spec["spi"]),
        saddr=address(spec["source"]),
        lft=lifetime(),
        reqid=spec["reqid"],
        family=family(spec["source"]),
        mode=XFRM_MODE_IPTFS,
        replay_window=0 if spec["esn"] or spec["direction"] == "out" else 32,
        flags=XFRM_STATE_AF_UNSPEC | (XFRM_STATE_ESN if spec["esn"] else 0),
    )
    key = bytes.fromhex(spec["key"])
    attributes = [
        (XFRMA_ALG_AEAD, bytes(xfrm_algo_aead(spec["algorithm"].encode(), 8 * len(key), ICV)) + key),
        (XFRMA_SA_DIR, c_uint8(DIRECTIONS[spec["direction"]][0])),
    ]
    if spec["esn"]:
        words = 0 if spec["direction"] == "out" else WINDOW // 32
        replay = xfrm_replay_state_esn(bmp_len=words, replay_window=32 * words)
        attributes.append((XFRMA_REPLAY_ESN_VAL, bytes(replay) + bytes(4 * words)))
    if spec["udp"]:
        attributes.append((XFRMA_ENCAP, xfrm_encap_tmpl(UDP_ENCAP_ESPINUDP, *spec["udp"])))
    for name, value in spec["options"].items():
        kind, form = OPTIONS[name]
        attributes.append((kind, form(value)))
    return XFRM_MSG_NEWSA, info, attributes


def policy(spec, source, destination):
    bits = ipaddress.ip_address(source).max_prefixlen
    info = xfrm_userpolicy_info(
        sel=xfrm_selector(
            daddr=address(destination),
            saddr=address(source),
            family=family(source),
            prefixlen_d=bits,
            prefixlen_s=bits,
        ),
        lft=lifetime(),
        priority=9,
        dir=DIRECTIONS[spec["direction"]][1],
    )
    template = xfrm_user_tmpl(
        id=identity(spec, 0),
        family=family(spec["source"]),
        saddr=address(spec["source"]),
        reqid=spec["reqid"],
        mode=XFRM_MODE_IPTFS,
        aalgos=2**32 - 1,
        ealgos=2**32 - 1,
        calgos=2**32 - 1,
    )
    return XFRM_MSG_NEWPOLICY, info, [(XFRMA_TMPL, template)]


def order(netlink, kind, info, attributes):
    body = bytes(info) + b"".join(attribute(*each) for each in attributes)
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    netlink.send(bytes(nlmsghdr(ctypes.sizeof(nlmsghdr) + len(body), kind, flags)) + body)
    answer = netlink.recv(65536)
    assert nlmsghdr.from_buffer_copy(answer).type == NLMSG_ERROR
    if error := -c_int32.from_buffer_copy(answer, ctypes.sizeof(nlmsghdr)).value:
        text = answer[2 * ctypes.sizeof(nlmsghdr) + 8 :].rstrip(b"\0").decode()
        sys.exit(f"message {kind:#x}: {os.strerror(error)}. {text}")


def main(specs):
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_XFRM)
    for option in NETLINK_CAP_ACK, NETLINK_EXT_ACK:  # of an error, its text and not the request
        netlink.setsockopt(SOL_NETLINK, option, 1)
    for spec in map(json.loads, specs):
        order(netlink, *state(spec))
        for source, destination in spec["selectors"]:
            order(netlink, *policy(spec, source, destination))


main(sys.argv[1:])
