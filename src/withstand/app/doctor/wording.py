"""Sentences that name ``run``'s options, in the words of ``doctor``, which has others."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from withstand.errors import WithstandError

_UNKNOWN: Final = {
    ", or its file by --api-key-file": "",
    " or --api-key-file": "",
    ", or skip the check by --insecure": "",
}
OF_URL: Final = {**_UNKNOWN, "target.base_url / --base-url": "URL", "--base-url": "the URL"}
OF_DIRECT: Final = {
    **_UNKNOWN,
    "target.base_url / --base-url": "--direct",
    "--base-url": "--direct",
    "--api-key-env": "--direct-api-key-env",
}


@contextmanager
def worded(words: Mapping[str, str]) -> Iterator[None]:
    """Whatever is raised inside names what its user has typed."""
    try:
        yield
    except WithstandError as e:
        text = str(e)
        for theirs, ours in words.items():
            text = text.replace(theirs, ours)
        raise type(e)(text) from None
