"""All that an agent's owner may ask for: typed, frozen; unknown keys are refused with their path."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from withstand.errors import SpecError, UsageError
from withstand.hints import hinted
from withstand.spec.file_kinds import refuse_others

ToolName = Literal["search", "calculator", "read_file", "fetch"]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1)]
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})


class ModelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that thinks. Without a key of its own it gets that of the client."""

    base_url: str
    name: str
    api_key_env: str | None = None
    api_key_file: str | None = None
    way: Literal["native", "schema"] = "native"
    """How it calls tools: by the API's own ``tools``, or as JSON that a schema holds it to."""
    tool_choice: Literal["auto", "required"] = "auto"
    """``required``: the first call of a task has to call a tool; small models would rather guess."""
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    max_tokens: Count = 1024
    """Of one call."""

    @property
    def key_setting(self) -> str:
        """Which one says where its own key is, and where that is."""
        return f"model.api_key_{'env' if self.api_key_env else 'file'}: {self.api_key_env or self.api_key_file}"

    @property
    def url(self) -> str:
        """Where it is asked."""
        return self.base_url.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"

    @property
    def bound(self) -> bool:
        """Whether a grammar holds its calls, which ends them."""
        return self.way == "schema" or self.tool_choice == "required"


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one task may take, and how many there may be."""

    steps: Count = 8
    """Calls of the model; the last one has no tools, so that it answers."""
    seconds: Seconds = 120.0
    tokens: Count = 32_768
    """Prompt and output of all its calls."""
    tool_s: Seconds = 15.0
    tool_chars: Annotated[int, Meta(ge=100)] = 4000
    """Of a tool's result, that the model gets to see."""
    calls: Count = 8
    """Of tools, in one step."""
    requests: Count = 64
    """Under way at once."""
    body_bytes: Annotated[int, Meta(ge=1024)] = 4 << 20


class SearchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where ``search`` looks: ``corpus`` (files), ``searxng`` (a server), or a kind that a package brings."""

    kind: str = "corpus"
    path: str | None = None
    """A folder of .md and .txt files; None = the small corpus that comes along."""
    url: str | None = None
    """Of a SearXNG server."""
    results: Annotated[int, Meta(ge=1, le=20)] = 3


class FilesConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``read_file`` may read: files, and folders with all that is below them."""

    allow: tuple[str, ...] = ()
    bytes_max: Count = 200_000


class HttpConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``fetch`` may fetch: addresses that begin with one of ``allow``."""

    allow: tuple[str, ...] = ()
    private: bool = False
    """Also from addresses that the Internet does not know: this machine, the local network, a cloud's metadata."""
    bytes_max: Count = 1_000_000
    redirects: Annotated[int, Meta(ge=0, le=10)] = 3


class SessionsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where sessions are kept: a file of SQLite; None = in memory, gone with the process."""

    path: str | None = None
    keep: Count = 1000
    """The latest of them."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    listen: str = "127.0.0.1:8090"
    open: bool = False
    """Serve on an address that others reach: there are no keys here."""
    name: str = "agent"
    """What clients ask for as the model."""
    instructions: str = ""
    """Put before every task."""
    model: ModelConfig
    limits: Limits = Limits()
    tools: tuple[ToolName, ...] = ("search", "calculator", "read_file", "fetch")
    """Those that have nothing to be allowed are left out."""
    search: SearchConfig = SearchConfig()
    files: FilesConfig = FilesConfig()
    http: HttpConfig = HttpConfig()
    sessions: SessionsConfig = SessionsConfig()
    drain_s: Annotated[float, Meta(ge=0)] = 10.0
    """How long tasks may take to end after SIGTERM."""


def config_from_file(path: Path, listen: str | None = None) -> Config:
    """The typed configuration; ``listen`` stands in for the file's.

    Raises:
        UsageError: the file cannot be read, or is no TOML.
        SpecError: a key is wrong; the text names it.
    """
    try:
        text = path.read_text("utf-8")
        tree = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as e:
        raise UsageError(f"The configuration {path} cannot be read: {e.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.DecodeError) as e:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise UsageError(f"The configuration {path} is no {kind}: {e}.") from None
    refuse_others(path, tree, "an agent's", "agent")
    return config_of(tree if listen is None or not isinstance(tree, dict) else {**tree, "listen": listen})


def config_of(tree: object) -> Config:
    """A raw tree, typed and checked.

    Raises:
        SpecError: a key is wrong; the text names it.
    """
    try:
        config = msgspec.convert(tree, Config)
    except msgspec.ValidationError as e:
        raise SpecError(f"The configuration is wrong: {hinted(str(e), Config)}.") from None
    host, _ = split_listen(config.listen)
    if host not in _LOCAL and not config.open:
        raise _wrong("listen", f"{host} may be reached by others, and no key is asked for; say open = true")
    _check_url("model.base_url", config.model.base_url)
    if config.model.api_key_env and config.model.api_key_file:
        raise _wrong("model", "api_key_env and api_key_file are both given; keep one")
    for i, url in enumerate(config.http.allow):
        _check_url(f"http.allow[{i}]", url)
    return config


def split_listen(listen: str) -> tuple[str, int]:
    """(Host, port).

    Raises:
        SpecError: it is no such pair.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535 or not host:
        raise _wrong("listen", f"{listen!r} is no address; write HOST:PORT")
    return host.strip("[]"), int(port)


def api_key(config: ModelConfig) -> str | None:
    """The model's key, read; None = the client's is passed on.

    Raises:
        UsageError: it is not where it was said to be.
    """
    if config.api_key_env:
        if key := os.environ.get(config.api_key_env, "").strip():
            return key
        raise UsageError(f"model.api_key_env: the variable {config.api_key_env} is not set.")
    if config.api_key_file:
        try:
            return Path(config.api_key_file).read_text("utf-8").strip()
        except OSError as e:
            raise UsageError(f"model.api_key_file: {config.api_key_file} cannot be read: {e.strerror}.") from None
    return None


def _check_url(where: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.username is None
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise _wrong(where, f"{url!r} is no address; write http://HOST:PORT or https://HOST")


def _wrong(path: str, what: str) -> SpecError:
    return SpecError(f"The configuration is wrong: {what} - at `$.{path}`.")
