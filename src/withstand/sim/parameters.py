"""What a simulated engine is made of, typed; ``withstand fit`` writes such a file."""

import math
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from withstand.errors import UsageError
from withstand.hints import hinted

MARK = "simulated"
_Count = Annotated[int, Meta(ge=1)]
_Ms = Annotated[float, Meta(ge=0, le=3_600_000)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An engine.

    A step takes ``step_ms`` + ``sequence_ms`` x sequences that decode + ``prefill_token_ms`` x prompt tokens in it.
    """

    step_ms: _Ms = 10.0
    sequence_ms: _Ms = 0.5
    prefill_token_ms: _Ms = 0.1
    overhead_ms: _Ms = 0.0
    """Of each request, before the engine sees it."""
    max_sequences: _Count = 256
    """Requests that are computed at once; the others wait."""
    max_batched_tokens: _Count = 2048
    """Of one step: each sequence that decodes is one, the rest is for prompts."""
    chunked_prefill: bool = True
    """False: a prompt is computed in one step, in which nobody decodes."""
    block_tokens: _Count = 16
    kv_blocks: _Count = 4096
    prefix_caching: bool = True
    context: _Count = 8192
    """Tokens of one request, prompt and answer together."""
    template_tokens: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """What the chat template adds to each prompt."""
    transfer_ms: _Ms = 0.0
    transfer_token_ms: _Ms = 0.0
    """What it takes to fetch the KV cache of a prompt that another engine has computed."""

    @property
    def kv_tokens(self) -> int:
        """What the KV cache holds."""
        return self.kv_blocks * self.block_tokens

    def step_ns(self, decoding: int, prefill_tokens: int) -> int:
        """How long a step takes; never 0, or time would stand still."""
        time_ms = self.step_ms + self.sequence_ms * decoding + self.prefill_token_ms * prefill_tokens
        return max(1, round(time_ms * 1e6))

    def transfer_ns(self, tokens: int) -> int:
        """How long it takes to fetch so many tokens' cache."""
        return round((self.transfer_ms + self.transfer_token_ms * tokens) * 1e6)


def parameters_from_file(path: Path) -> Parameters:
    """What ``withstand fit --output`` has written.

    Raises:
        UsageError: it cannot be read, or a key is wrong.
    """
    try:
        return parameters_of(tomllib.loads(path.read_text("utf-8")), str(path))
    except OSError as e:
        raise UsageError(f"{path} cannot be read: {e.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UsageError(f"{path} is no TOML: {e}.") from None


def parameters_of(tree: object, where: str) -> Parameters:
    """Typed and checked; a key that begins with ``fit`` tells where the others are from, and is let be.

    Raises:
        UsageError: a key is wrong.
    """
    if isinstance(tree, dict):
        tree = {key: value for key, value in tree.items() if key != "fit"}
    try:
        found = msgspec.convert(tree, Parameters)
    except msgspec.ValidationError as e:
        raise UsageError(
            f"{where}: {hinted(str(e), Parameters)}; a simulated engine has {', '.join(Parameters.__struct_fields__)}."
        ) from None
    for name, value in msgspec.structs.asdict(found).items():
        if not math.isfinite(value):
            raise UsageError(f"{where}: {name} is {value}; give it a number.")
    return found


def simulated_name(name: str | None) -> str:
    """The model's name, which says that nobody computes anything."""
    if not name:
        return MARK
    return name if is_simulated(name) else f"{MARK}-{name}"


def is_simulated(model: str | None) -> bool:
    """Whether a model's name says that its engine is simulated."""
    return model is not None and (model == MARK or model.startswith(f"{MARK}-"))
