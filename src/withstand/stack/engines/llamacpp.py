"""llama.cpp's server: as ``xllamacpp`` carries it, or a ``llama-server`` of the user's own."""

from typing import Final

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.engines.kind import Kind, Small, options, refuse
from withstand.stack.llamacpp import ENV, REASON, SERVER, Settings, arguments
from withstand.stack.ports import HOST

_NEVER = (
    *("quantization", "dtype", "chunked_prefill", "kv_cache_gb", "kv_offload_gb", "lmcache", "dummy_weights", "role"),
)
_ONLY_BINARY = ("tensor_parallel", "speculative")
_CONTEXT, SEQUENCES, _THREADS_MAX = 2048, 8, 8


class LlamaCpp:
    """Serves a GGUF file, whose quantization is the weights'."""

    small: Small | None = "gguf"

    def process(self, name: str, told: Engine, place: Place) -> Process:
        """A child of our own Python, or of the program that is named."""
        refuse(name, told, _NEVER, "llamacpp")
        path = told.model or place.small_model
        if path is None:
            raise wrong(f"engines.{name}.model", "a GGUF file is needed; name one")
        sequences = told.max_sequences or SEQUENCES
        settings = Settings(
            host=HOST,
            port=place.ports[name],
            parallel=sequences,
            context=(told.context or _CONTEXT) * sequences,
            threads=told.threads or len(told.room.cpus) or min(place.threads, _THREADS_MAX),
        )
        argv = _own if told.binary else _carried
        return Process(
            name=name,
            kind="llamacpp",
            argv=(*argv(name, told, place, (str(path), self.model(told, place), settings)), *told.args),
            env={**ENV, **told.env},
            port=settings.port,
            health=told.health or "/health",
            metrics="/metrics",
            reason=REASON,
            upkeep=upkeep_of(told),
        )

    def model(self, told: Engine, place: Place) -> str:
        """As asked for, or the file's own."""
        return told.served_as or (told.model.rpartition("/")[2] if told.model else place.small_model_name)


def _carried(name: str, told: Engine, place: Place, served: tuple[str, str, Settings]) -> tuple[str, ...]:
    """By ``xllamacpp``: nothing of one prompt is kept for the next, unless it is asked for."""
    refuse(name, told, _ONLY_BINARY, "llamacpp without `binary`")
    caching = ("--prefix-caching",) if told.prefix_caching else ()
    return (
        *(told.python or place.python, "-P", "-m", SERVER),
        *arguments(*served),
        *caching,
    )


def _own(name: str, told: Engine, place: Place, served: tuple[str, str, Settings]) -> tuple[str, ...]:  # noqa: ARG001
    path, alias, settings = served
    parallel = told.tensor_parallel
    return (
        *(told.binary or "", "--model", path, "--alias", alias, "--metrics"),
        *("--host", settings.host, "--port", str(settings.port)),
        *("--parallel", str(settings.parallel), "--ctx-size", str(settings.context)),
        *("--threads", str(settings.threads)),
        *options(
            (
                ("--cache-prompt", told.prefix_caching is True),
                ("--no-cache-prompt", told.prefix_caching is False),
                ("--split-mode", "row" if parallel else None),
                ("--tensor-split", ",".join("1" * parallel) if parallel else None),
                *_speculative(told),
            )
        ),
    )


def _speculative(told: Engine) -> tuple[tuple[str, object], ...]:
    wanted = told.speculative
    if wanted is None:
        return ()
    if wanted.draft_model is None:
        return (("--spec-type", "ngram-simple"), ("--spec-ngram-simple-size-m", wanted.tokens))
    return (("--spec-draft-model", wanted.draft_model), ("--spec-draft-n-max", wanted.tokens))


ENGINE: Final[Kind] = LlamaCpp()
