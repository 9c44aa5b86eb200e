"""Under which names a place keeps a stack's secrets. Pure."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from withstand.spec.mistake import wrong
from withstand.spec.stack import Secret, Stack, secrets_of

_KEY = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


def check_secrets(stack: Stack, besides: Iterable[tuple[str, Secret]] = ()) -> None:
    """Whether each has a name of its own that every place takes; ``besides`` those that stand in the stack by itself.

    Raises:
        SpecError: one has not.
    """
    owners = dict[str, tuple[str, Secret]]()
    for where, secret in (*secrets_of(stack), *besides):
        key = key_of(secret)
        if not _KEY.fullmatch(key):
            raise wrong(
                where, f"{key!r} is no name for a secret elsewhere; begin with a letter, and use letters, digits, _"
            )
        for name in (variable_of(key), *([variable_in(secret.from_file)] if secret.from_file else [])):
            other, first = owners.setdefault(name, (where, secret))
            if first != secret:
                raise wrong(where, f"elsewhere it would have the name of `$.{other}`, {key}; rename one of the files")


def key_of(secret: Secret) -> str:
    """Under which a place keeps it: the variable's name, or the file's."""
    return secret.from_env or PurePosixPath(secret.from_file or "").name


def variable_of(key: str) -> str:
    """Its name as a variable; a file's name is none."""
    return "".join(c if c.isalnum() else "_" for c in key)


def variable_in(file: str) -> str:
    """The variable of gateway and agent in which they find what is here the key in a file."""
    return f"KEY_{variable_of(key_of(Secret(from_file=file)))}".upper()
