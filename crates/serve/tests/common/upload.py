"""Sends a file over TLS with PUT, and prints the status of the answer and the seconds that it took.

    python3 upload.py tcp|mptcp whole|half HOST:PORT FILE NAME

With `half` the client ends its side of TLS and of TCP behind the file, and reads the answer afterwards.
"""

import pathlib
import socket
import ssl
import sys
import time

# Linux's number of Multipath TCP, which Python 3.11 has no name for on older systems.
IPPROTO_MPTCP = 262
# No step of an upload takes longer.
TIMEOUT_S = 120.0
CHUNK = 256 << 10


def main() -> None:
    """Uploads."""
    protocol, ending, server, file, name = sys.argv[1:]
    host, _, port = server.rpartition(":")
    content = pathlib.Path(file).read_bytes()
    began = time.monotonic()
    plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if protocol == "mptcp" else 0)
    plain.settimeout(TIMEOUT_S)
    plain.connect((host, int(port)))
    connection = Connection(plain)
    head = f"PUT /{name} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    connection.write(head.encode())
    for at in range(0, len(content), CHUNK):
        connection.write(content[at : at + CHUNK])
    if ending == "half":
        connection.end()
    status = connection.read().split(b" ", 2)[1].decode()
    print(status, f"{time.monotonic() - began:.3f}")


class Connection:
    """TLS on a socket, of which either direction can end first; Python's own TLS sockets end both at once."""

    def __init__(self, plain: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # Version 1.3 has messages of the server behind the handshake, which OpenSSL refuses once this side has ended.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        self._plain = plain
        self._from_server, self._to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._from_server, self._to_server)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
        self._flush()

    def write(self, content: bytes) -> None:
        """Sends all of it."""
        self._tls.write(content)
        self._flush()

    def end(self) -> None:
        """Ends this side, in TLS and in TCP."""
        try:
            self._tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self._flush()
        self._plain.shutdown(socket.SHUT_WR)

    def read(self) -> bytes:
        """What the server sends first."""
        while True:
            try:
                return self._tls.read(CHUNK)
            except ssl.SSLWantReadError:
                self._receive()

    def _flush(self) -> None:
        self._plain.sendall(self._to_server.read())

    def _receive(self) -> None:
        received = self._plain.recv(CHUNK)
        if received:
            self._from_server.write(received)
        else:
            self._from_server.write_eof()


main()
