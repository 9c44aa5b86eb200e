"""The wire as a witness: when each request passed the loopback device, by the kernel's clock.

A server tells when *it read* a request. Where its core is busy, or taken away, that is later than the request came, and
a client that is right about its TTFT seems wrong by as much. A packet socket stamps the request between the two. It
needs CAP_NET_RAW; without that nobody has seen anything, and the server's word stands.
"""

import ctypes
import re
import socket
import struct
import threading
from types import TracebackType
from typing import Self

from withstand import clock

_ETH_P_IP, _SO_ATTACH_FILTER, _SO_TIMESTAMPNS, _SO_RCVBUFFORCE = 0x0800, 26, 35, 33
_BUFFER_BYTES = 64 << 20
_PACKET_BYTES = 1 << 16
_LOOK_S = 0.05
_mark = re.compile(rb'"truth":"([^"]+)"')


class Wire:
    """Watches the requests to a port of this host while the block runs."""

    def __init__(self, port: int) -> None:
        self.passed_ns: dict[str, int] = {}
        """By each request's mark, ns on CLOCK_MONOTONIC; complete when the block has ended."""
        self._socket = _opened(port)
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        self._reader.join()
        if self._socket:
            self._socket.close()

    def _read(self) -> None:
        """Now and then, all that has come: what is read is stamped already."""
        if not self._socket:
            return
        over = False
        while not over:
            over = self._over.wait(_LOOK_S)
            offset_ns, _ = clock.realtime_offset_ns()
            while packet := _received(self._socket):
                data, stamp_ns = packet
                if found := _mark.search(data):
                    self.passed_ns.setdefault(found[1].decode(), stamp_ns - offset_ns)  # what is sent again came first


def _opened(port: int) -> socket.socket | None:
    """On the loopback device, with a filter for the first packets of POST requests to the port."""
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    except PermissionError:
        return None
    opened.setblocking(False)
    _attach(opened, _posts_to(port))
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    opened.bind(("lo", _ETH_P_IP))
    return opened


def _posts_to(port: int) -> list[tuple[int, int, int, int]]:
    """Classic BPF, as in ``tcpdump -d``: code, jump if true, jump if false, operand."""
    post = int.from_bytes(b"POST")
    return [
        (0x30, 0, 0, 9),  # A = the IP header's protocol
        (0x15, 0, 9, socket.IPPROTO_TCP),
        (0xB1, 0, 0, 0),  # X = the IP header's length
        (0x48, 0, 0, 2),  # A = the TCP header's destination port
        (0x15, 0, 6, port),
        (0x50, 0, 0, 12),  # A = the TCP header's length …
        (0x74, 0, 0, 2),
        (0x0C, 0, 0, 0),
        (0x07, 0, 0, 0),  # … and X, where the payload begins
        (0x40, 0, 0, 0),  # A = its first four bytes; where there are none the packet is dropped
        (0x15, 1, 0, post),
        (0x06, 0, 0, 0),
        (0x06, 0, 0, _PACKET_BYTES),
    ]


def _attach(to: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    held = ctypes.create_string_buffer(code, len(code))
    to.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(held)))


def _received(from_socket: socket.socket) -> tuple[bytes, int] | None:
    try:
        data, ancillary, _, _ = from_socket.recvmsg(_PACKET_BYTES, socket.CMSG_SPACE(16))
    except BlockingIOError:
        return None
    seconds, ns = struct.unpack("qq", ancillary[0][2][:16])
    return data, seconds * 1_000_000_000 + ns
