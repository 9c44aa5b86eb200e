"""An engine that runs elsewhere: not started, only asked."""

import re
from typing import Final

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place
from withstand.stack.engines.kind import Kind, Small, required

_ADDRESS = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")


class Remote:
    """Whatever speaks OpenAI's protocol at ``url``."""

    small: Small | None = None

    def process(self, name: str, told: Engine, place: Place) -> None:  # noqa: ARG002  the protocol's
        """None."""
        url = required(name, told, "url", "a remote engine has an address")
        if not _ADDRESS.fullmatch(url):
            raise wrong(
                f"engines.{name}.url", "an address begins with http://HOST or https://HOST; a key goes to api_key"
            )
        required(name, told, "served_as", "nobody knows the model's name in requests")

    def model(self, told: Engine, place: Place) -> str:  # noqa: ARG002  the protocol's
        """As it is said."""
        return told.served_as or ""


ENGINE: Final[Kind] = Remote()
