"""An engine that runs elsewhere: not started, only asked."""

from typing import Final

from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place
from withstand.stack.engines.kind import Kind, Small, required


class Remote:
    """Whatever speaks OpenAI's protocol at ``url``."""

    small: Small | None = None

    def process(self, name: str, told: Engine, place: Place) -> None:  # noqa: ARG002  the protocol's
        """None."""
        required(name, told, "url", "a remote engine has an address")
        required(name, told, "served_as", "nobody knows the model's name in requests")

    def model(self, told: Engine, place: Place) -> str:  # noqa: ARG002  the protocol's
        """As it is said."""
        return told.served_as or ""


ENGINE: Final[Kind] = Remote()
