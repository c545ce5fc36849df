"""A host without a kernel's network stack: sends IP packets on an interface and tells of those that come.

    wire.py INTERFACE HARDWARE-ADDRESS

Packets to send are lines of hexadecimal, and so are packets received. They go to and come from one neighbour, by its
hardware address. The first line, `ready`, says that from here on nothing is missed.
"""

import socket
import sys
import threading

IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
ETHERNET = 14
EVERYTHING = 3  # ETH_P_ALL


def receive(link, neighbour):
    while True:
        frame, (_, _, direction, _, sender) = link.recvfrom(65536)
        if direction != socket.PACKET_OUTGOING and sender == neighbour and frame[12:14] in (IPV4, IPV6):
            print(frame[ETHERNET:].hex(), flush=True)


def main(interface, neighbour):
    neighbour = bytes.fromhex(neighbour)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING))
    link.bind((interface, 0))
    own = link.getsockname()[4]
    # Before the thread begins to print: the socket is bound, and keeps what comes until then.
    print("ready", flush=True)
    threading.Thread(target=receive, args=(link, neighbour), daemon=True).start()
    for line in sys.stdin:
        packet = bytes.fromhex(line)
        link.send(neighbour + own + (IPV4 if packet[0] >> 4 == 4 else IPV6) + packet)


main(*sys.argv[1:])
