"""Everything that a truth server can be told. Checked when it is made, so that a mistake shows where it was made."""

import ssl
from pathlib import Path

import msgspec

from withstand.errors import UsageError
from withstand.files import is_there
from withstand.testing.truth.behaviours import check_mix, style_of
from withstand.testing.truth.schedule import Schedule

MODEL = "truth"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A server. ``port`` 0 = a free one; ``unix_path`` goes before host and port."""

    schedule: Schedule = Schedule()
    behaviour: str | dict[str, float] = "plain"
    """One for all, or shares of several: ``{"plain": 0.95, "http_500": 0.05}``."""
    host: str = "127.0.0.1"
    port: int = 0
    unix_path: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    slots: int | None = None
    """At most so many answers at once, the others wait in order of arrival; None = no limit."""
    batch: float = 0.0
    """Each answer that is under way makes the ITL of one that begins longer by this share, as in a batch."""
    models: tuple[str, ...] | None = None
    """Others are answered with 404; None = every name is good."""
    max_model_len: int | None = None
    """Listed with each model, as vLLM does, but held against no request; None = not told."""
    api_key: str | None = None
    """Asked for as ``Authorization: Bearer …``; else 401."""
    keep_bodies: bool = False
    keep_requests: bool = False
    """Each request as it came, byte for byte."""
    seed: int = 0
    """Shuffles the behaviours of a mixture."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            UsageError: the field and its cure.
        """
        if isinstance(self.behaviour, str):
            style_of(self.behaviour)
        else:
            check_mix(self.behaviour)
        if self.slots is not None and self.slots < 1:
            raise UsageError(f"slots: {self.slots} cannot serve anyone; give 1 or more, or leave it out.")
        if not 0 <= self.batch <= 1000:
            raise UsageError(f"batch: {self.batch} is no share; give 0 (an ITL that stays as it is) or more.")
        if (self.certfile is None) != (self.keyfile is None):
            raise UsageError("certfile, keyfile: TLS needs both; give the two PEM files.")
        if not 0 <= self.port <= 65535:
            raise UsageError(f"port: {self.port} is no port; give 0 (a free one) to 65535.")

    def base_url(self, port: int) -> str:
        """Where a client finds the server."""
        if self.unix_path is not None:
            return f"unix:{self.unix_path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certfile else 'http'}://{host}:{port}"

    def tls_context(self) -> ssl.SSLContext | None:
        """For the server's side; None = plain text.

        Raises:
            UsageError: the files hold no certificate and key.
        """
        if self.certfile is None or self.keyfile is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certfile, self.keyfile)
        except (OSError, ssl.SSLError):
            missing = [file for file in (self.certfile, self.keyfile) if not is_there(Path(file))]
            what = f"{missing[0]} is missing" if missing else "certificate and key do not belong together"
            raise UsageError(f"certfile, keyfile: {what}; give a PEM certificate and its key.") from None
        return context
