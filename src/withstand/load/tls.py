"""TLS between a non-blocking socket and HTTP, over memory: the stamps stay those of the ciphertext's arrival."""

import ssl
from pathlib import Path

from withstand.errors import SpecError
from withstand.files import is_there

READ_BYTES = 65536
_HEADER_BYTES = 5


def make_context(cacert: str | None, *, insecure: bool) -> ssl.SSLContext:
    """A client's context; certificates are verified unless ``insecure``.

    Raises:
        SpecError: the file of ``--cacert`` holds no certificate.
    """
    try:
        context = ssl.create_default_context(cafile=cacert)
    except (OSError, ssl.SSLError):
        what = "is missing" if cacert and not is_there(Path(cacert)) else "holds no readable certificate"
        raise SpecError(f"target.cacert / --cacert: {cacert} {what}; it must be a PEM file.") from None
    # From 3.13 on Python refuses what curl and browsers accept: home-made authorities without every extension.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class TlsPipe:
    """Ciphertext in, plain text out, and back. The law: it touches no socket."""

    __slots__ = ("_header", "_in", "_left", "_object", "_out", "ready")

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=server_name)
        self.ready = False
        self._header = b""
        self._left = 0

    @property
    def whole(self) -> bool:
        """Whether the ciphertext that came so far ends with a record, not within one."""
        return not self._left and not self._header

    def follow(self, cipher: bytes) -> None:
        """Keep account of the records: five bytes of header, of which the last two are the length (RFC 8446, 5.1)."""
        while cipher:
            if self._left:
                skipped = min(self._left, len(cipher))
                self._left -= skipped
            else:
                skipped = min(_HEADER_BYTES - len(self._header), len(cipher))
                self._header += cipher[:skipped]
            cipher = cipher[skipped:]
            if len(self._header) == _HEADER_BYTES:
                self._left, self._header = int.from_bytes(self._header[3:]), b""

    def handshake(self) -> None:
        """Go on with the handshake as far as the bytes allow.

        Raises:
            ssl.SSLError: it failed.
        """
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        self.ready = True

    def encrypt(self, plain: bytes) -> None:
        """Plain text to be sent; ``outgoing`` has the ciphertext."""
        self._object.write(plain)

    def outgoing(self) -> bytes:
        """Ciphertext that wants to go out."""
        return self._out.read()

    def decrypt(self, cipher: bytes) -> tuple[bytes, bool]:
        """(Plain text, whether the other side has closed) from ciphertext that came in.

        Raises:
            ssl.SSLError: the ciphertext is broken, or the handshake failed.
        """
        self._in.write(cipher)
        self.follow(cipher)
        if not self.ready:
            self.handshake()
            if not self.ready:
                return b"", False
        parts = []
        try:
            while data := self._object.read(READ_BYTES):
                parts.append(data)
        except ssl.SSLWantReadError:
            return b"".join(parts), False
        except ssl.SSLZeroReturnError:
            return b"".join(parts), True
        return b"".join(parts), True
