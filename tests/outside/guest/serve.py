"""What runs in a guest all the time: the echo service over TCP and UDP (RFC 862), and the sockets that ESP in UDP goes
through (RFC 3948), which the kernel opens itself. Says so, in a line, when all of them are open.
"""

import socket
import threading

ECHO, ESP_IN_UDP = 7, 4500
UDP_ENCAP, UDP_ENCAP_ESPINUDP = 100, 2  # linux/udp.h


def datagrams(family, address, port):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind((address, port))
    return sock


def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def accept(listener):
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def reflect(sock):
    while True:
        sock.sendto(*sock.recvfrom(65536))


listener = socket.create_server(("::", ECHO), family=socket.AF_INET6, dualstack_ipv6=True)
threads = [threading.Thread(target=accept, args=(listener,))]
carriers = []
for family, address in (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"):
    threads.append(threading.Thread(target=reflect, args=(datagrams(family, address, ECHO),)))
    carriers.append(datagrams(family, address, ESP_IN_UDP))
    carriers[-1].setsockopt(socket.IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP)
for thread in threads:
    thread.start()
print("open", flush=True)
