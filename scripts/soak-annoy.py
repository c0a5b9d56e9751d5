"""A client that a server has to withstand, for `scripts/soak.py`: soak-annoy.py KIND HOST:PORT SEED."""

from __future__ import annotations

import random
import socket
import struct
import sys
import time

IPPROTO_MPTCP = 262
# Bounded: some clients, some seconds, some thousand packets.
CLIENTS = 60
HOLD_S = (5.0, 70.0)
PACKETS = 6000
PACKETS_A_SECOND = 3000
REQUEST = b"GET /film.mp4 HTTP/1.1\r\nHost: soak\r\n\r\n"


def main() -> None:
    """Annoys."""
    kind, server, seed = sys.argv[1:]
    host, _, port = server.rpartition(":")
    draws = random.Random(int(seed))
    if kind in ("silent", "slow-head", "unasked"):
        hold((host, int(port)), kind, draws)
    else:
        send(host, int(port), kind, draws)


def hold(server: tuple[str, int], kind: str, draws: random.Random) -> None:
    """Connects, asks (a head without end, one, or nothing), reads nothing, and leaves after a while."""
    sockets = []
    for _ in range(CLIENTS):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, draws.choice((IPPROTO_MPTCP, 0)))
        client.settimeout(20)
        try:
            client.connect(server)
            if kind != "unasked":
                client.sendall(REQUEST if kind == "silent" else REQUEST[: draws.randrange(1, len(REQUEST))])
        except OSError:
            # A limit of the server's; that is what it is for.
            client.close()
            continue
        sockets.append(client)
    time.sleep(draws.uniform(*HOLD_S))
    for client in sockets:
        if draws.random() < 0.5:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


def send(host: str, port: int, kind: str, draws: random.Random) -> None:
    """Sends SYNs or garbage from addresses that answer nothing."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    began = time.monotonic()
    for number in range(PACKETS):
        source = f"10.{draws.randrange(256)}.{draws.randrange(256)}.{draws.randrange(1, 255)}"
        raw.sendto(packet(source, host, port, kind, draws), (host, 0))
        ahead = number / PACKETS_A_SECOND - (time.monotonic() - began)
        if ahead > 0:
            time.sleep(ahead)


def packet(source: str, host: str, port: int, kind: str, draws: random.Random) -> bytes:
    """An IP packet with a TCP segment."""
    flags = 0x02 if kind == "flood" else draws.randrange(256)
    options, payload = b"", b""
    if kind == "garbage":
        options = draws.randbytes(4 * draws.randrange(10))
        payload = draws.randbytes(draws.randrange(200))
    ports = (draws.randrange(1024, 65536), port)
    numbers = (draws.getrandbits(32), draws.getrandbits(32))
    offset = (20 + len(options)) << 2
    fields = (*ports, *numbers, offset & 0xF0, flags, draws.getrandbits(16), 0, 0)
    segment = struct.pack("!HHIIBBHHH", *fields) + options + payload
    ends = socket.inet_aton(source) + socket.inet_aton(host)
    pseudo = ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(segment))
    segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
    # The kernel fills in length and checksum of the IP header.
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, socket.IPPROTO_TCP, 0) + ends + segment


def checksum(data: bytes) -> int:
    """The sum of RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    found: int = ~total & 0xFFFF
    return found


if __name__ == "__main__":
    main()
