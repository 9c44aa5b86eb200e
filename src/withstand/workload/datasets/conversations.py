"""``conversations``: several turns, each sent when the one before has been answered, with a pause for thought.

From a file (ShareGPT's schema, or JSON lines of messages with ``conversation_id`` as agents leave them), or made up
where no path is given. Only what users and tools say is taken from the file: the answers in the history are the
engine's own.
"""

import itertools
from collections.abc import Iterator, Sequence
from random import Random
from typing import Annotated, Any, Literal

import msgspec

from withstand.errors import DatasetError
from withstand.request import Message
from withstand.spec import TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, Session, Turn, read_options
from withstand.workload.datasets.from_file import FromFile
from withstand.workload.datasets.made_up import drawn
from withstand.workload.datasets.openai_jsonl import messages_in, raw
from withstand.workload.datasets.sharegpt import messages_of, read_conversations
from withstand.workload.files import read_lines, read_text
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

EXPECTED = 'lines of {"conversation_id": …, "role": …, "content": …}, or ShareGPT\'s JSON'
Tokens = Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]
OUTPUT_LEN = 128
"""Of made-up conversations, where no other is set."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in tokens. ``think_s`` None = the file's own delays, or none."""

    think_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    think_distribution: Literal["constant", "exponential"] = "exponential"
    output_len: Tokens | None = None
    max_turns: Tokens | None = None
    min_turns: Tokens = 2
    # For made-up conversations:
    turns: Tokens = 4
    system_len: Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)] = 0
    """Of a system prompt that all share."""
    first_len: Tokens = 256
    later_len: Tokens = 64
    range_ratio: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    """Of the number of turns and of their lengths, as in ``random``."""


class Line(msgspec.Struct, frozen=True):
    """One message of a recorded conversation."""

    message: Message
    delay_s: float | None = None
    extra_body: dict[str, msgspec.Raw] = {}


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """Conversations in a seeded order.

    Raises:
        DatasetError: the file holds none.
    """
    options = read_options(workload, Options)
    maker = _Maker(options, workload, tokenizer, seed)
    if workload.path is None:
        return _MadeUp(maker, Wording(tokenizer), seed)
    rows = _recorded(workload.path)
    return FromFile("conversations", rows, maker.convert, seed=seed.words)


def _recorded(path: str) -> Sequence[list[Line] | msgspec.Raw]:
    if read_text(path, "conversations", EXPECTED).lstrip().startswith("["):
        return read_conversations(path, "conversations")
    conversations: dict[str, list[Line]] = {}
    for number, row in read_lines(path, "conversations", EXPECTED):
        if messages := messages_in(row.get("messages")):
            conversations[f"line {number}"] = [Line(message) for message in messages]
        elif "conversation_id" in row and "role" in row:
            conversations.setdefault(str(row["conversation_id"]), []).extend(_agent_lines(row))
        else:
            raise DatasetError(f"--dataset-path {path}, line {number} is no message; conversations needs {EXPECTED}.")
    return list(conversations.values())


def _lines_of(row: list[Line] | msgspec.Raw) -> list[Line] | str:
    if isinstance(row, list):
        return row
    messages = messages_of(row)
    return messages if isinstance(messages, str) else [Line(message) for message in messages]


def _agent_lines(row: dict[str, Any]) -> Iterator[Line]:
    """A recorded step of an agent: a system prompt and tools may come along with the first one."""
    extra = {"tools": raw(row["tools"])} if row.get("tools") else {}
    if row.get("system"):
        yield Line(Message(role="system", content=str(row["system"])))
    delay_s = float(row["delay_seconds"]) if isinstance(row.get("delay_seconds"), int | float) else None
    if isinstance(row.get("tool_results"), list) and row["role"] == "tool":
        for result in row["tool_results"]:
            yield Line(_tool_result(result), delay_s, extra)
    else:
        said = _text(row.get("content")) + _text(row.get("tool_calls"))
        yield Line(Message(role=str(row["role"]), content=said), delay_s, extra)


def _tool_result(result: Any) -> Message:
    """As a user's message: the engine's own answer made no such call, so no id could match."""
    text = result.get("content", result) if isinstance(result, dict) else result
    return Message(role="user", content=_text(text))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else msgspec.json.encode(content).decode()


class _Maker:
    """Messages → turns, with lengths and pauses."""

    def __init__(self, options: Options, workload: Workload, tokenizer: Tokenizer, seed: Seed) -> None:
        self.options = options
        self._ignore_eos = workload.ignore_eos
        self._tokenizer = tokenizer
        self._think = Random(f"{seed.work}/think")

    def convert(self, batch: Sequence[list[Line] | msgspec.Raw]) -> list[Session | str]:
        """One session a conversation."""
        return [self._session(_lines_of(row)) for row in batch]

    def _session(self, lines: list[Line] | str) -> Session | str:
        if isinstance(lines, str):
            return lines
        groups = _turns_of(lines)[: self.options.max_turns]
        if len(groups) < self.options.min_turns:
            return "with too few turns"
        texts = ["\n".join(line.message.content or "" for line in said) for said, _ in groups]
        counts = self._tokenizer.counts(texts + [answer for _, answer in groups])
        made = zip(groups, counts[: len(groups)], counts[len(groups) :], strict=True)
        return Session(turns=tuple(self._turn(said, n_in, n_out) for (said, _), n_in, n_out in made))

    def _turn(self, said: list[Line], prompt_tokens: int, recorded_tokens: int) -> Turn:
        extra: dict[str, msgspec.Raw] = {}
        for line in said:
            extra |= line.extra_body
        return Turn(
            messages=tuple(line.message for line in said),
            prompt_tokens=prompt_tokens,
            output_tokens=self.options.output_len or max(1, recorded_tokens),
            ignore_eos=self._ignore_eos is True,
            think_ns=self.think_ns(max(0.0, *(line.delay_s or 0.0 for line in said))),
            extra_body=extra,
        )

    def ignores_eos(self) -> bool:
        """Whether a made-up conversation's answers have exactly the length asked."""
        return self._ignore_eos is not False

    def think_ns(self, recorded_s: float) -> int:
        """The pause before a turn."""
        mean_s = self.options.think_s
        if mean_s is None:
            return round(recorded_s * 1e9)
        if self.options.think_distribution == "constant" or not mean_s:
            return round(mean_s * 1e9)
        return round(self._think.expovariate(1 / mean_s) * 1e9)


def _turns_of(lines: list[Line]) -> list[tuple[list[Line], str]]:
    """(What is said in a row, the recorded answer); answers without a question before them are passed over."""
    turns: list[tuple[list[Line], str]] = []
    said: list[Line] = []
    for is_answer, group in itertools.groupby(lines, key=lambda line: line.message.role == "assistant"):
        if not is_answer:
            said = list(group)
        elif said and any(line.message.role != "system" for line in said):
            turns.append((said, "\n".join(line.message.content or "" for line in group)))
            said = []
    return turns


class _MadeUp:
    """Endless conversations of made-up texts behind a shared system prompt."""

    name = "conversations"
    timed = False
    most: int | None = None
    certain = True

    def __init__(self, maker: _Maker, words: Wording, seed: Seed) -> None:
        self._maker = maker
        self._words = words
        self._seed = seed
        length = maker.options.system_len
        self._system = words.texts(Random(f"{seed.common}/system"), [length] if length else [])

    def sessions(self) -> Iterator[Session]:
        """Made as they are drawn."""
        random, draw = Random(f"{self._seed.words}/texts"), Random(f"{self._seed.work}/lengths")
        while True:
            lengths = self._lengths(draw)
            texts = self._words.texts(random, lengths)
            made = enumerate(zip(texts, lengths, strict=True))
            yield Session(turns=tuple(self._turn(place, *turn, draw) for place, turn in made))

    def _lengths(self, draw: Random) -> list[int]:
        options = self._maker.options
        later = drawn(draw, options.turns, options.range_ratio) - 1
        return [drawn(draw, n, options.range_ratio) for n in (options.first_len, *[options.later_len] * later)]

    def _turn(self, place: int, text: str, length: int, draw: Random) -> Turn:
        options = self._maker.options
        system = [Message(role="system", content=s) for s in self._system] if place == 0 else []
        return Turn(
            messages=(*system, Message(role="user", content=text)),
            prompt_tokens=length + (options.system_len if system else 0),
            output_tokens=drawn(draw, options.output_len or OUTPUT_LEN, options.range_ratio),
            ignore_eos=self._maker.ignores_eos(),
            think_ns=self._maker.think_ns(0.0),
        )

    def shortage(self) -> str:
        """There is none."""
        return ""
