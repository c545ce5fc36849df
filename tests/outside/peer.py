"""Takes over a node's place with the keys that it exported: scapy seals, the other node opens, and the other way.

    peer.py KEYS PCAP LOCAL-ADDRESS LOCAL-PORT REMOTE-ADDRESS REMOTE-PORT INSIDE-FROM INSIDE-TO INSIDE-PORT

Sends numbered datagrams to INSIDE-TO, each once with a bent ICV and once as it should be, then waits for an answer
and prints its text. Sequence numbers go on well behind those of the capture, in case the node has sent more since.
"""

import socket
import sys
import time

import esp
from history import History

COUNT = 5
AHEAD = 100
PATIENCE = 20


def last_sent(associations, pcap, port):
    """The association that the node itself used last, and the last sequence number it used."""
    sent = {}
    for datagram in filter(esp.is_esp, esp.datagrams(pcap, port)):
        association = associations[int.from_bytes(datagram[:4], "big")]
        if association.direction == "out":
            sent = {association: association.open(datagram)[0]}
    return sent.popitem()


def bent(datagram):
    return datagram[:-1] + bytes([datagram[-1] ^ 1])


def send(sock, remote, association, seq, packet):
    datagram = association.seal(seq, bytes(packet))
    sock.sendto(bent(datagram), remote)
    sock.sendto(datagram, remote)


def answer(sock, associations):
    """The text of the first inner UDP datagram that comes; the control channel's datagrams are passed over."""
    history = History()
    readers = {spi: esp.Reader(association, history) for spi, association in associations.items()}
    deadline = time.monotonic() + PATIENCE
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        datagram = sock.recv(65536)
        if not esp.is_esp(datagram):
            continue
        association = associations[int.from_bytes(datagram[:4], "big")]
        seq, next_header, payload = association.open(datagram)
        for packet in readers[association.spi].read(seq, next_header, payload)[1]:
            inner = esp.IP(packet)
            if esp.UDP in inner:
                return bytes(inner[esp.UDP].payload).decode()
    sys.exit("no answer")


def main(keys, pcap, local, local_port, remote, remote_port, inside_from, inside_to, inside_port):
    associations = esp.associations(keys)
    out, seq = last_sent(associations, pcap, int(remote_port))
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((local, int(local_port)))
    for number in range(COUNT):
        text = f"from scapy {number}"
        packet = esp.IP(src=inside_from, dst=inside_to) / esp.UDP(sport=7000, dport=int(inside_port)) / text
        send(sock, (remote, int(remote_port)), out, seq + AHEAD + number, packet)
    print(answer(sock, associations))


main(*sys.argv[1:])
