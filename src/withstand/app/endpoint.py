"""The target, made ready: address found, key read, certificate store loaded, model named."""

import os
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand import __version__, plugins
from withstand.errors import SpecError, TargetError, UsageError
from withstand.load.address import Address, Located, locate, parse_address
from withstand.load.ask import Asker, no_key_sentence, served_context, served_models
from withstand.load.job import Job
from withstand.load.masking import Mask
from withstand.load.owner import Route
from withstand.load.tls import make_context
from withstand.spec import Plan, Target, secret_texts
from withstand.stack import check_served
from withstand.wire import Ask, Dialect

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PATH = re.compile(r"/[!-~]*")
_SCHEMES = frozenset({"bearer", "basic", "token", "apikey"})
_HARMLESS = frozenset({"User-Agent", "Content-Type", "Accept-Encoding"})


class Endpoint:
    """One target that answers."""

    def __init__(self, target: Target) -> None:
        """Connect, and ask for the models.

        Raises:
            WithstandError: the target cannot be reached, refuses the key, or its description is wrong.
        """
        assert target.base_url is not None
        self.target = target
        self.dialect: Dialect = plugins.load("wire", target.backend, "target.backend / --backend")
        self.address: Address = parse_address(target.base_url)
        self.headers = _headers(target)
        self.secrets = tuple(secret_values(target, self.headers))
        context = _context(target, self.address)
        self.located: Located = locate(self.address, target.timeouts.connect_s)
        self.route = Route(address=self.address, located=self.located, context=context, timeouts=target.timeouts)
        self.asker = Asker(self.route, self.headers, Mask(self.secrets))
        try:
            self.models = served_models(self.asker, self.address)
            self.model = _model(target, self.models, self.address.url("/v1/models"))
        except BaseException:
            self.close()
            raise

    @property
    def completions(self) -> str:
        """The path of a request, as it stands in the request line."""
        return self.address.url(self.target.endpoint or self.dialect.path)

    def context(self) -> int | None:
        """The most tokens that prompt and answer may have together; None = it does not say.

        Raises:
            TargetError: it is not there.
        """
        return served_context(self.asker, self.address, self.model)

    def job(self, plan: Plan, *, stage: int, epoch_ns: int) -> Job:
        """The template of a stage's jobs, without what differs between workers."""
        target = self.target
        ask = Ask(
            model=self.model,
            stream=target.stream,
            min_tokens=plan.workload.min_tokens,
            max_tokens_field=target.max_tokens_field,
            extra_body=target.extra_body,
        )
        return Job(
            worker=0,
            stage=stage,
            epoch_ns=epoch_ns,
            spool="",
            records="",
            dialect=target.backend,
            ask=ask,
            address=self.address,
            located=self.located,
            timeouts=target.timeouts,
            cacert=target.cacert,
            insecure=target.insecure,
            endpoint=self.completions,
            headers=self.headers,
            secrets=self.secrets,
            drain_ns=int(plan.drain_s * 1e9),
        )

    def close(self) -> None:
        """Hang up."""
        self.asker.close()


def ask_target(target: Target) -> str | None:
    """Its model, if it is there and takes the key; one that we start ourselves is not there yet.

    Raises:
        WithstandError: it is not to be measured.
    """
    if target.base_url is None or target.serve:
        return target.model
    endpoint = Endpoint(target)
    endpoint.close()
    return endpoint.model


def check_target(target: Target) -> None:
    """What can be wrong with a target's description, before anything is begun.

    Raises:
        UsageError: an unknown dialect, no URL, no key where one was named, no certificate.
    """
    plugins.load("wire", target.backend, "target.backend / --backend")
    _headers(target)
    if target.endpoint is not None and not _PATH.fullmatch(target.endpoint):
        raise SpecError("target.endpoint / --endpoint must be a path that begins with / and holds no blank.")
    if target.serve:
        check_served(target.base_url)
    if target.base_url is not None:
        _context(target, parse_address(target.base_url))


def _context(target: Target, address: Address) -> ssl.SSLContext | None:
    return make_context(target.cacert, insecure=target.insecure) if address.tls else None


def _headers(target: Target) -> dict[str, str]:
    headers = {
        "User-Agent": f"withstand/{__version__}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        **target.headers,
    }
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not value.isascii() or not value.replace("\t", " ").isprintable():
            raise SpecError(f"target.headers: {name!r} holds a character that no header may have.")
    key = _api_key(target)
    return headers | {"Authorization": f"Bearer {key}"} if key else headers


def secret_values(target: Target, headers: dict[str, str]) -> Iterator[str]:
    """What a server may have been told and must not make us write down."""
    for name, value in headers.items():
        if name not in _HARMLESS:
            words = value.split()
            yield from words[1:] if words and words[0].lower() in _SCHEMES else words
    yield from secret_texts(target.extra_body)


def _api_key(target: Target) -> str | None:
    if target.api_key_env:
        key = os.environ.get(target.api_key_env, "").strip()
        if not key:
            raise UsageError(no_key_sentence(f"the variable {target.api_key_env} is not set, or empty"))
    elif target.api_key_file:
        try:
            key = Path(target.api_key_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as e:
            why = e.strerror if isinstance(e, OSError) else "not UTF-8"
            raise UsageError(no_key_sentence(f"{target.api_key_file} cannot be read: {why}")) from None
        if not key:
            raise UsageError(no_key_sentence(f"{target.api_key_file} is empty"))
    else:
        return None
    if not key.isascii() or not key.isprintable():
        raise UsageError("The API key holds a character that no header may have; is it the right file or variable?")
    return key


def _model(target: Target, served: list[str], path: str) -> str | None:
    """The model to ask for. A name that is not listed is tried all the same: gateways have aliases."""
    if target.model:
        return target.model
    if not served:
        raise TargetError(
            f"The endpoint lists no model at {path}; is the URL right? If it has no such list, name one by --model."
        )
    return served[0]


def with_base_url(plan: Plan, base_url: str, model: str) -> Plan:
    """The plan, pointed at an engine that we started ourselves."""
    target = msgspec.structs.replace(plan.target, base_url=base_url, model=plan.target.model or model)
    return msgspec.structs.replace(plan, target=target)
