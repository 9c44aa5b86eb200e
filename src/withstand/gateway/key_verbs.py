"""``withstand gateway keys``: make a key, hash one, list those of a configuration. No key is ever stored."""

import hashlib
import json
import re
import secrets
import sys
from pathlib import Path

import click

from withstand.errors import UsageError
from withstand.gateway.config import KeyConfig, config_from_file

_BARE = re.compile("[A-Za-z0-9_-]+")
_RANDOM_BYTES = 32


@click.group("keys", no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
def keys() -> None:
    """Keys of clients: the gateway knows only their SHA-256."""


@keys.command("new")
@click.argument("owner")
@click.option("--model", "models", multiple=True, help="One that it is for; repeatable. Nothing = all.")
@click.option("--admin", is_flag=True, help="It may administer the gateway.")
def new(owner: str, models: tuple[str, ...], admin: bool) -> None:
    """Make a key; stdout has its lines for the file.

    The key itself is shown once, on stderr.
    """
    key = f"sk-{secrets.token_urlsafe(_RANDOM_BYTES)}"
    click.echo(f"The key of {owner}, shown only now: {key}", err=True)
    click.echo(toml_of(owner, sha256_of(key), models, admin=admin), nl=False)


@keys.command("hash")
def hashed() -> None:
    """The SHA-256 of a key that is typed in, or piped in."""
    key = click.prompt("Key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise UsageError("No key was given; type it, or pipe it in.")
    click.echo(sha256_of(key.strip()))


@keys.command("list")
@click.argument("config", type=click.Path(path_type=Path))
def listed(config: Path) -> None:
    """The keys of a configuration, and what they may do."""
    for owner, key in config_from_file(config).keys.items():
        click.echo(f"{owner}: {_terms_of(key)}")


def sha256_of(key: str) -> str:
    """As the configuration wants it."""
    return hashlib.sha256(key.encode("utf-8")).hexdigest()


def toml_of(owner: str, sha256: str, models: tuple[str, ...], *, admin: bool) -> str:
    """A key's lines for the file."""
    name = owner if _BARE.fullmatch(owner) else _quoted(owner)
    lines = [f"[keys.{name}]", f'sha256 = "{sha256}"']
    if models:
        lines.append(f"models = [{', '.join(map(_quoted, models))}]")
    if admin:
        lines.append("admin = true")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")  # JSON's strings are TOML's, but for this one


def _terms_of(key: KeyConfig) -> str:
    told = ["all models" if key.models is None else ", ".join(key.models) or "no model"]
    told += [f"{name} {limit}" for name in ("rpm", "tpm", "concurrency") if (limit := getattr(key.limits, name))]
    if key.budget is not None:
        told.append(f"{key.budget.amount} per {key.budget.per}")
    if key.admin:
        told.append("admin")
    return "; ".join(told)
