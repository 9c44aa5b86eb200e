"""What happens to result files: cut off, edited, joined, encoded otherwise, damaged. Each mutation is a drawn one."""

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from withstand.interop.shape import ImportedRun

Draw = st.DrawFn
_MARK = "\u2060{}\u2060"
_LITERALS = (
    "1e999",
    "-1e999",
    "1" * 400,
    "-3",
    "1e15",
    "1e16",
    "0",
    "-0.0",
    "1e-320",
    "NaN",
    "Infinity",
    "-Infinity",
    "[" * 200 + "]" * 200,
    '{"a":' * 100 + "1" + "}" * 100,
    "true",
    "null",
    '""',
    "[]",
    "{}",
)
_WORDS = (
    "xxx",
    "inf",
    "-1",
    "1,000",
    "12,34",
    "5ms",
    "3 s",
    "NaN",
    "N/A",
    "1e999",
    "0x10",
    "1_000",
    "٣",
    "½",
    "<b>",
    "</script>",
    "\ud800",
    "\x00",
    "\x1b[31m",
    "\u2028",
    "9" * 50,
    "a" * 5000,
    "=1+1",
    "%s{0}",
    "../../x",
)
_SIGNS = "\n\r\t |={}[],:\"'\\\x00\x1b\u2028\ufeff%-–│┃"  # noqa: RUF001  a dash of tables
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_SCALES = (1.0, 1e3, 1e-3, 1e-6, 1e-9, 1 / 60)


# Values of JSON


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a value, itself among them."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from leaves(item, (*path, key))


def changed(value: Any, path: Sequence[Any], change: Callable[[Any, Any], None]) -> Any:
    """A copy in which the holder of a place is changed."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return copy


def _put(what: Any) -> Callable[[Any, Any], None]:
    return lambda holder, key: holder.__setitem__(key, what)


def _renamed(name: str) -> Callable[[Any, Any], None]:
    def change(holder: Any, key: Any) -> None:
        if isinstance(holder, dict):
            holder[name] = holder.pop(key)

    return change


def _negated(holder: Any, key: Any) -> None:
    holder[key] = -holder[key] if isinstance(holder[key], int | float) else str(holder[key])


@st.composite
def json_mutant(draw: Draw, value: Any) -> str:
    """One to three places deleted, renamed, doubled, or something else put in."""
    literals: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        places = [path for path in leaves(value) if path]
        if not places:
            break
        literal = draw(st.sampled_from(_LITERALS))
        literals.append(literal)
        mark = _MARK.format(len(literals) - 1)
        change = draw(
            st.sampled_from(
                [
                    _put(mark),
                    _put(draw(st.sampled_from(_WORDS))),
                    _renamed(mark),
                    _negated,
                    lambda holder, key: holder.__delitem__(key),
                ]
            )
        )
        value = changed(value, draw(st.sampled_from(places)), change)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    for i, literal in enumerate(literals):
        for quoted in (json.dumps(_MARK.format(i)), json.dumps(_MARK.format(i), ensure_ascii=False)):
            text = text.replace(f"{quoted}:", '"completed":').replace(quoted, literal)
    return text


# Texts


def _cut(draw: Draw, text: str) -> str:
    return text[: draw(st.integers(0, len(text)))]


def _signs(draw: Draw, text: str) -> str:
    signs = list(text)
    for _ in range(draw(st.integers(1, 6))):
        signs[draw(st.integers(0, len(signs) - 1))] = draw(st.one_of(st.characters(), st.sampled_from(_SIGNS)))
    return "".join(signs)


def _number(draw: Draw, text: str) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    at = draw(st.sampled_from(found[:500]))
    return text[: at.start()] + draw(st.sampled_from([*_WORDS, *_LITERALS])) + text[at.end() :]


def _lines(draw: Draw, text: str) -> str:
    lines = text.split("\n")
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    how = draw(st.sampled_from(["doubled", "lost", "swapped", "twice", "crlf"]))
    if how == "doubled":
        lines.insert(i, lines[j])
    elif how == "lost":
        del lines[i]
    elif how == "swapped":
        lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines) * (2 if how == "twice" else 1) if how != "crlf" else "\r\n".join(lines)


_TEXTS: Sequence[Callable[[Draw, str], str]] = (_cut, _signs, _number, _lines)


@st.composite
def text_mutant(draw: Draw, text: str) -> str:
    """One or two of the above."""
    for _ in range(draw(st.integers(1, 2))):
        text = draw(st.sampled_from(_TEXTS))(draw, text) if text else text
    return text


_ENVELOPES: Sequence[Callable[[str], bytes]] = (
    lambda text: text.encode("utf-8", "replace"),
    lambda text: b"\xef\xbb\xbf" + text.encode("utf-8", "replace"),
    lambda text: text.encode("utf-16", "replace"),
    lambda text: text.encode("utf-16", "replace")[:-1],
    lambda text: text.encode("latin-1", "replace") + b"\xe9",
    lambda text: gzip.compress(text.encode("utf-8", "replace"), mtime=0),
    lambda text: gzip.compress(text.encode("utf-8", "replace"), mtime=0)[:-5],
)


@st.composite
def file_mutant(draw: Draw, text: str) -> bytes:
    """A text, changed by its kind or as any text, as bytes of some encoding; one in three stays as plain bytes."""
    value = _parsed(text)
    text = draw(json_mutant(value)) if value is not None and draw(st.booleans()) else draw(text_mutant(text))
    envelope = _ENVELOPES[0] if draw(st.integers(0, 2)) else draw(st.sampled_from(_ENVELOPES))
    return envelope(text)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# Where a number may come from


def unfounded(runs: Sequence[ImportedRun], text: str) -> list[str]:
    """Numbers that no number of the text gives, in any unit: the reader has made them up."""
    return [f"{name} {value!r}" for run in runs for name, value in _told(run).items() if not _stands(value, text, run)]


def _told(run: ImportedRun) -> Mapping[str, float]:
    told = {name: value for name, value in run.numbers.items() if "computed here" not in run.notes.get(name, "")}
    if run.facts is None:
        for name, stats in run.stats.items():
            moments = {"mean": stats.mean, "std": stats.std, "min": stats.min, "max": stats.max, **stats.percentiles}
            told |= {f"{name} {which}": value for which, value in moments.items() if value is not None}
    return told


def _stands(value: float, text: str, run: ImportedRun) -> bool:
    written = [found[0] for pattern in (_NUMBER, _THOUSANDS) for found in pattern.finditer(text)]
    near = [float(number.replace(",", "")) * scale for number in written for scale in _SCALES]
    counts = list(run.numbers.values())
    parts = [a - b - c for a in counts for b in counts for c in (*counts, 0)]
    return any(abs(value - one) <= 1e-9 * max(abs(value), 1e-9) for one in near) or value in parts or value == 0
