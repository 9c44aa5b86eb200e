"""The shape of a dataset: sessions of turns, drawn in a seeded order, lazily and at most once each."""

import re
from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from withstand import plugins
from withstand.errors import SpecError, UsageError
from withstand.hints import hinted, near
from withstand.request import Message
from withstand.spec import Workload
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What is said at once, and how long the answer may be."""

    messages: tuple[Message, ...]
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    ignore_eos: bool = False
    think_ns: int = 0
    expected: tuple[str, ...] = ()
    """Answers of which any is right."""
    extra_body: dict[str, msgspec.Raw] = {}


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that follow each other. ``due_ns`` is the dataset's own time, where it has one."""

    turns: tuple[Turn, ...]
    due_ns: int | None = None


class Dataset(Protocol):
    """A source of sessions."""

    name: str
    timed: bool
    """Whether sessions have times of their own."""
    most: int | None
    """The most sessions that one pass can give; None = it never ends."""
    certain: bool
    """Whether a pass gives just as many: nothing is left out only when it is drawn."""

    def sessions(self) -> Iterator[Session]:
        """One pass, in the seeded order."""

    def shortage(self) -> str:
        """What was left out of the last pass and why, as the end of a sentence; empty = nothing."""


OptionsT = TypeVar("OptionsT")
_MADE_UP = frozenset({"random", "synthetic", "prefix-repetition"})
"""Those of ours that read no file."""
_TYPED = frozenset({"input_len", "output_len"})
"""What a command line has an option for."""
_UNKNOWN = re.compile("Object contains unknown field `([^`]*)`")


def read_options(workload: Workload, kind: type[OptionsT]) -> OptionsT:
    """The dataset's own options.

    Raises:
        SpecError: with the path of the field.
    """
    try:
        return msgspec.convert(workload.options, kind)
    except msgspec.ValidationError as e:
        unknown = _UNKNOWN.fullmatch(str(e))
        told = _not_its(workload.dataset, unknown[1], kind) if unknown else hinted(str(e), kind)
        told = told.replace("`$", "`$.workload.options")
        if "Expected `array`" in str(e):  # a plan's list stands for as many stages
            told += '; write a list in a list, as [["one", "another"]], or give what is in it by itself'
        if "`$" not in told:
            told += " - at `$.workload.options`"
        raise SpecError(f"The plan is wrong: {told}.") from None


def _not_its(dataset: str, option: str, kind: Any) -> str:
    """It may be another dataset's: then what is spelled alike is no help, and what there is is."""
    typed = f" / --{option.replace('_', '-')}" if option in _TYPED else ""
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    hint = "" if typed else near(option, names)
    return f"the dataset {dataset} has no option {option}{typed}{hint}; it has {', '.join(names)}"


def check_name(workload: Workload) -> Any:
    """What opens the dataset that the workload names.

    Raises:
        UsageError: unknown, or it has a file and reads none.
    """
    if workload.path is not None and workload.dataset in _MADE_UP:
        raise UsageError(
            f"workload.path / --dataset-path: {workload.dataset} makes its texts up and takes no file; name the "
            f"dataset that reads {workload.path}, as by --dataset-name sharegpt, or leave the file out."
        )
    return plugins.load("datasets", workload.dataset, "workload.dataset / --dataset-name")


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """The dataset that the workload names.

    Raises:
        UsageError: unknown, unreadable, empty, or an option is wrong.
    """
    opener = check_name(workload)
    dataset: Dataset = opener(workload, tokenizer, seed)
    return dataset
