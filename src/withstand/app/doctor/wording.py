"""Sentences that name ``run``'s options, in the words of ``doctor``, which has others."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

from withstand.app.retold import retold
from withstand.load.ask import KEY_IN_PLAN

_UNKNOWN: Final = {KEY_IN_PLAN: "", ", or skip the check by --insecure": ""}
OF_URL: Final = {**_UNKNOWN, "target.base_url / --base-url": "URL", "--base-url": "the URL"}
OF_DIRECT: Final = {
    **_UNKNOWN,
    ", or its file by --api-key-file": "",
    " or --api-key-file": "",
    "target.base_url / --base-url": "--direct",
    "--base-url": "--direct",
    "the URL right?": "--direct right?",
    "--api-key-env": "--direct-api-key-env",
}


def worded(words: Mapping[str, str]) -> AbstractContextManager[None]:
    """Whatever is raised inside names what its user has typed."""

    def in_ours(text: str) -> str:
        for theirs, ours in words.items():
            text = text.replace(theirs, ours)
        return text

    return retold(in_ours)
