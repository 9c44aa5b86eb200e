"""Under which names a place keeps a stack's secrets. Pure."""

from pathlib import PurePosixPath

from withstand.spec.stack import Secret


def key_of(secret: Secret) -> str:
    """Under which a place keeps it: the variable's name, or the file's."""
    return secret.from_env or PurePosixPath(secret.from_file or "").name


def variable_of(key: str) -> str:
    """Its name as a variable; a file's name is none."""
    return "".join(c if c.isalnum() else "_" for c in key)
