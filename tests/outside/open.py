"""Opens every ESP packet of a capture with scapy and prints what was in it, one JSON object a line.

    open.py KEYS PCAP PORT
"""

import json
import sys

import esp
from history import History


def main(keys, pcap, port):
    associations = esp.associations(keys)
    history = History()
    readers = {spi: esp.Reader(association, history) for spi, association in associations.items()}
    for datagram in esp.datagrams(pcap, int(port)):
        if not esp.is_esp(datagram):
            continue
        spi = esp.spi(datagram)
        seq, next_header, payload = associations[spi].open(datagram)
        kind, packets, more = readers[spi].read(seq, next_header, payload)
        line = {"direction": associations[spi].direction, "spi": spi, "seq": seq, "kind": kind} | more
        if kind == "report":
            line["report"] = esp.report(payload)
        print(json.dumps(line | {"packets": [packet.hex() for packet in packets]}))


main(*sys.argv[1:])
