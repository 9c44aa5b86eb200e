"""What a log says around a printed block: the command that made it, the argument dump, and a heading. Pure.

A heading holds for all blocks until the next one; a command only for the block after it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from withstand.interop.build import RunBuilder

_OPTION = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)[ =]+['\"]?(?P<value>[^\s'\"\\-][^\s'\"\\]*)")
_ARGUMENT = re.compile(r"\b(?P<name>[a-z][a-z0-9_]*)=(?P<value>'[^']*'|\"[^\"]*\"|[^\s,()'\"]+)")
_DUMP = re.compile(r"\bNamespace\(|benchmark_args=|bench_args=")
_TOTAL = re.compile(r"^#(?P<which>Input|Output) tokens:\s*(?P<value>\d+)\s*$")
_PAIR = re.compile(r"^(?P<name>[A-Za-z][\w .-]{0,30}?):\s*(?P<value>(?!//)[\w./+-][^{}]{0,80})$")
_HEADING = re.compile(r"^(?:#{1,6}\s+(?P<marked>\S.*)|(?P<bare>[A-Za-z][\w+/-]*(?: [\w.+/-]+){0,2}))(?<![.…])$")
_CONDITIONS = {
    "model": "model", "dataset-name": "dataset", "num-prompts": "num_prompts", "num-prompt": "num_prompts",
    "max-concurrency": "max_concurrency", "burstiness": "burstiness", "random-input-len": "input_tokens",
    "random-input": "input_tokens", "random-output-len": "output_tokens", "random-output": "output_tokens",
    "sharegpt-output-len": "output_tokens",
}  # fmt: skip
_ANNOUNCED = re.compile(
    r"^(?P<what>Traffic request rate|Maximum request concurrency|Burstiness factor):\s*(?P<value>[\w.]+)", re.IGNORECASE
)
_LEVELS = frozenset({"INFO", "WARNING", "WARN", "ERROR", "DEBUG", "NOTE"})
_SAYS_NOTHING = re.compile(
    r"^(?:bench(?:mark)?\s*)?(?:results?|outputs?|commands?|usage|tests?|done)\W*$", re.IGNORECASE
)
_HEADING_MAX = 60


def read_command(run: RunBuilder, lines: Sequence[str]) -> None:
    """Options of the last command before a block, and the argument dump that clients print."""
    _take(run, _asked(lines))
    for line in map(str.strip, lines):
        announced = _ANNOUNCED.match(line)
        if announced:
            _take_announced(run, announced["what"].lower(), announced["value"])
        total = _TOTAL.match(line)
        if total:
            run.label(f"requested_{total['which'].lower()}_tokens", total["value"])


def _asked(lines: Sequence[str]) -> dict[str, str]:
    """By the option's name; what the command says goes before what the dump says, the first before the second."""
    asked: dict[str, str] = {}
    for found in _OPTION.finditer("\n".join(_last_command(lines))):
        asked.setdefault(found["name"], found["value"])
    for line in lines:
        for found in _ARGUMENT.finditer(line) if _DUMP.search(line) else ():
            asked.setdefault(found["name"].replace("_", "-"), found["value"].strip("'\""))
    return {name: value for name, value in asked.items() if value != "None"}


def _take(run: RunBuilder, asked: Mapping[str, str]) -> None:
    """A dump has every option there is: those of other datasets than the one in use say nothing."""
    dataset = asked.get("dataset-name", "")
    run.ramp(asked.get("ramp-up-strategy"), asked.get("ramp-up-start-rps"), asked.get("ramp-up-end-rps"))
    run.rate(asked.get("request-rate"))
    for option, name in _CONDITIONS.items():
        if not (dataset and _is_of_another(option, dataset)):
            run.condition(name, asked.get(option))
    if "random" in (dataset or "random"):
        run.label("random_range_ratio", asked.get("random-range-ratio"))


def _is_of_another(option: str, dataset: str) -> bool:
    """SGLang's shared-prefix set has a number of prompts of its own."""
    if option == "num-prompts":
        return dataset == "generated-shared-prefix"
    owner = option.partition("-")[0]
    return owner in {"random", "sharegpt"} and owner not in dataset


def _take_announced(run: RunBuilder, what: str, value: str) -> None:
    """What vLLM's client says before it starts."""
    if what.startswith("traffic"):
        run.rate(value)
    else:
        run.condition("max_concurrency" if what.startswith("maximum") else "burstiness", value)


def _last_command(lines: Sequence[str]) -> Iterable[str]:
    """The options after the last line that starts a client; all lines where none does."""
    starts = [i for i, line in enumerate(lines) if re.search(r"benchmark_serving|bench[_ ]serv|-m sglang", line)]
    return lines[starts[-1] :] if starts else [line for line in lines if "--num-prompts" in line]


def _is_noise(line: str, name: str) -> bool:
    return name in _LEVELS or bool(_ANNOUNCED.match(line))


class Headings:
    """The heading and the ``name: value`` lines in force, block after block."""

    def __init__(self) -> None:
        self._heading: str | None = None
        self._pairs: dict[str, str] = {}

    def pass_over(self, lines: Sequence[str]) -> None:
        """The lines before the next block: a new heading replaces the old one and what stood under it."""
        for line in map(str.strip, lines):
            heading = _HEADING.match(line) if len(line) <= _HEADING_MAX else None
            pair = _PAIR.match(line)
            if heading and not _SAYS_NOTHING.match(heading["marked"] or heading["bare"]):
                self._heading, self._pairs = (heading["marked"] or heading["bare"]).strip(), {}
            elif pair and "," not in pair["value"] and not _is_noise(line, pair["name"]):
                self._pairs[pair["name"]] = pair["value"].strip()

    def put(self, run: RunBuilder) -> None:
        """What is in force, as labels."""
        run.label("heading", self._heading)
        for name, value in self._pairs.items():
            run.label(name, value)
