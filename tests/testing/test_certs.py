"""Certificates for a test: trusted by whoever trusts their authority, and by nobody else."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from withstand.testing import Schedule, TruthServer
from withstand.testing.certs import make_certificates


def test_trusted_with_the_authority_only(tmp_path: Path, client_of: Callable[..., Any]) -> None:
    files = make_certificates(tmp_path)
    (tmp_path / "other").mkdir()
    other = make_certificates(tmp_path / "other")
    with TruthServer(Schedule(1, 1, 2), tls=files.server) as server:
        assert client_of(server, str(files.ca)).chat().text == "t0 t1"
        with pytest.raises(ssl.SSLCertVerificationError):
            client_of(server, str(other.ca)).chat()
        assert client_of(server, str(files.ca)).chat().text == "t0 t1"


def test_expired_ones_are_refused(tmp_path: Path, client_of: Callable[..., Any]) -> None:
    files = make_certificates(tmp_path, expired=True)
    with TruthServer(tls=files.server) as server, pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        client_of(server, str(files.ca)).chat()


def test_the_key_is_for_its_owner_only(tmp_path: Path) -> None:
    assert make_certificates(tmp_path).key.stat().st_mode & 0o077 == 0


def test_valid_for_both_loopback_addresses(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    context = ssl.create_default_context(cafile=str(files.ca))
    with TruthServer(tls=files.server, family="ipv6") as server:
        port = int(server.base_url.rpartition(":")[2])
        with socket.create_connection(("::1", port)) as sock:
            for name in ("::1", "localhost"):
                with socket.create_connection(("::1", port)) as again:
                    context.wrap_socket(again, server_hostname=name).close()
            assert sock.fileno() >= 0
