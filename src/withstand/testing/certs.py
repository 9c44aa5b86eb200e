"""A certificate authority for one test, and a server's certificate from it. Needs ``cryptography``."""

import datetime as dt
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_DAYS = 2
_NAMES = ("localhost",)
_ADDRESSES = ("127.0.0.1", "::1")


class Certificates(msgspec.Struct, frozen=True):
    """PEM files."""

    ca: Path
    certificate: Path
    key: Path

    @property
    def server(self) -> tuple[Path, Path]:
        """What a server needs."""
        return self.certificate, self.key


def make_certificates(folder: Path, *, expired: bool = False) -> Certificates:
    """For localhost, 127.0.0.1 and ::1; valid for two days, or over since yesterday."""
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - of the dev extra

    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _signed("withstand test CA", ca_key, None, ca_key, expired=False)
    certificate = _signed("localhost", key, ca, ca_key, expired=expired)
    files.ca.write_bytes(_pem(ca))
    files.certificate.write_bytes(_pem(certificate))
    files.key.touch(mode=0o600)
    files.key.write_bytes(_key_pem(key))
    return files


def _signed(
    name: str,
    key: "EllipticCurvePrivateKey",
    issuer: "x509.Certificate | None",
    issuer_key: "EllipticCurvePrivateKey",
    *,
    expired: bool,
) -> "x509.Certificate":
    """A certificate; without an issuer it is its own."""
    from cryptography import x509  # noqa: PLC0415 - of the dev extra
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - of the dev extra

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    end = dt.datetime.now(dt.UTC) + dt.timedelta(days=-1 if expired else _DAYS)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - dt.timedelta(days=_DAYS + 1))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    for extension, critical in _identity(key, issuer_key, is_ca=issuer is None):
        builder = builder.add_extension(extension, critical=critical)
    if issuer:
        hosts = [*map(x509.DNSName, _NAMES), *(x509.IPAddress(ipaddress.ip_address(a)) for a in _ADDRESSES)]
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return builder.sign(issuer_key, SHA256())


def _identity(
    key: "EllipticCurvePrivateKey", issuer_key: "EllipticCurvePrivateKey", *, is_ca: bool
) -> "list[tuple[x509.ExtensionType, bool]]":
    """What strict verifiers (Python 3.13's default) ask for beside the names; each with whether it is critical."""
    from cryptography import x509  # noqa: PLC0415 - of the dev extra

    uses = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    uses |= dict.fromkeys(("encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, **uses)
    return [
        (usage, True),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False),
    ]


def _pem(certificate: "x509.Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - of the dev extra

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - of the dev extra
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
