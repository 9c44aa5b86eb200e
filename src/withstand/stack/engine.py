"""What an engine is to us: an installed program that serves a model file over the OpenAI API."""

from pathlib import Path
from typing import Protocol

import msgspec

from withstand.stack.model import ModelFile
from withstand.stack.service import Service


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine shall serve. ``context`` counts tokens over all ``parallel`` slots together."""

    host: str
    port: int
    parallel: int
    context: int
    threads: int

    @property
    def base_url(self) -> str:
        """Where it will listen."""
        return f"http://{self.host}:{self.port}"


class Engine(Protocol):
    """One kind of engine."""

    def name(self) -> str:
        """With its version.

        Raises:
            EngineError: it is not installed.
        """

    def memory_bytes(self, model: ModelFile, settings: Settings) -> int:
        """About what it will take."""

    def service(self, model: ModelFile, settings: Settings, log_file: Path) -> Service:
        """How it is run."""
