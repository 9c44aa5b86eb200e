"""Errors in other words: whose they are, or what their user has typed."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from withstand.errors import WithstandError


@contextmanager
def retold(words: Callable[[str], str]) -> Iterator[None]:
    """Whatever is raised inside is raised with its text changed."""
    try:
        yield
    except WithstandError as e:
        raise type(e)(words(str(e))) from None


def named(whose: str) -> AbstractContextManager[None]:
    """Whatever is raised inside says in front whose it is."""
    return retold(lambda text: f"{whose}: {text}")
