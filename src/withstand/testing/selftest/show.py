"""A proof as a table for people, as Markdown, and as JSON."""

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

import msgspec

from withstand.record import Clock, Status
from withstand.testing.selftest.judge import Check, Judged, Value
from withstand.testing.selftest.proof import Proof

SCHEMA: Final = 1
_MARKS: Final = {True: "✓", False: "✗", None: "?"}
_UNKNOWN: Final = "–"  # noqa: RUF001 - an en dash, as tables have it
_NAME, _VALUES, _WHAT_MIN = 25, 24, 12
_GAPS = 7
_CELLS: Final = ("output_tokens", "ttft_ms", "itl_p50_ms", "itl_p99_ms")
_WORDS: Final = {
    "ttft_ms": "TTFT",
    "itl_mean_ms": "ITL mean",
    "itl_p50_ms": "ITL p50",
    "itl_p99_ms": "ITL p99",
    "e2el_ms": "E2EL",
}
_HEAD: Final = "tokens  TTFT   p50   p99"


# For people.


def text(proof: Proof, width: int, *, detailed: bool = False) -> str:
    """The table, ``width`` columns wide; ``detailed`` = every value of every case."""
    lines = [_row("", "", "right", "ours", "", width), _row("behaviour", "the server", _HEAD, _HEAD, "", width)]
    for group, cases in groupby(proof.cases, key=lambda judged: judged.case.group):
        lines += ["", group]
        for judged in cases:
            lines.append(_case(judged, width))
            lines += [_detail(check) for check in judged.checks if detailed or not check.ok or check.what == "doubt"]
    foot = [line for told in (*_foot(proof), last_line(proof)) for line in textwrap.wrap(told, width)]
    return "\n".join([*lines, "", *foot])


def _case(judged: Judged, width: int) -> str:
    does = judged.case.does.replace("`", "")
    right, ours = (_values(judged, whose) for whose in ("right", "ours"))
    return _row(f"  {judged.case.behaviour}", does, right, ours, _MARKS[judged.ok], width)


def _row(name: str, what: str, right: str, ours: str, mark: str, width: int) -> str:
    """What the server does is cut where it is narrow, and left out where nothing of it would be seen."""
    room = max(_NAME, width - 2 * _VALUES - _GAPS)
    left = name if room < _NAME + _WHAT_MIN else f"{name:<{_NAME}}  {what}"
    left = left if len(left) <= room else left[: room - 1].rstrip() + "…"
    return f"{left:<{room}}  {right:<{_VALUES}}  {ours:<{_VALUES}}  {mark}".rstrip()


def _values(judged: Judged, whose: str) -> str:
    """The numbers of a success, the status of anything else."""
    status = judged.check("status")
    if status is None or getattr(status, whose) is not Status.OK:
        return _shown(getattr(status, whose, None))
    return "".join(f"{cell:>6}" for cell in _cells(judged, whose))


def _cells(judged: Judged, whose: str) -> list[str]:
    """The count, and the times of one and the same answer."""
    usual, place = judged.usual, ("right", "ours").index(whose)
    times = usual.values if usual else {}
    return [
        _cell(judged.check(_CELLS[0]), whose),
        *(_shown(times[what][place] if what in times else None) for what in _CELLS[1:]),
    ]


def _cell(check: Check | None, whose: str) -> str:
    return _shown(getattr(check, whose, None))


def _shown(value: Value) -> str:
    """Five characters at most of what is below 100 s: a column has six."""
    if isinstance(value, float):
        return f"{value:.{2 if value < 99.995 else 1 if value < 999.95 else 0}f}"
    return _UNKNOWN if value is None else str(value)


def _detail(check: Check) -> str:
    if check.what == "doubt" and check.ok:
        return f"      doubted, as it must be: {check.right}"
    unit = " ms" if check.what.endswith("_ms") else ""
    off = "" if check.error_ms is None else f", off by {check.error_ms:.3f} ms"
    values = f"right: {_shown(check.right)}{unit}, ours: {_shown(check.ours)}{unit}{off}"
    return f"      {_WORDS.get(check.what, check.what):<14} {values}  {_MARKS[check.ok]}"


def _foot(proof: Proof) -> Iterator[str]:
    by = "the kernel" if proof.clock is Clock.KERNEL else "this process, in user space"
    yield f"TTFT and ITL (p50, p99) in ms, of the answer in the middle of {proof.answers}."
    yield "Right is what follows from the server's log of its real writes, not from its schedule."
    yield f"Arrivals were stamped by {by}; a time is right within {proof.tolerance_ms:g} ms."
    errors = [(word, times) for name, word in _WORDS.items() if (times := proof.errors_ms(name))]
    if errors:
        off = ", ".join(f"{word} {times.p50_ms:.3f}/{times.p99_ms:.3f}" for word, times in errors)
        yield f"Off by (median/p99 ms): {off}".replace(", ITL p", ", p")
        unseen = proof.gaps - proof.known_gaps
        yield f"Gaps: {proof.gaps:,}, of them {unseen:,} not known (shared reads, interrupted writes), and not counted."
    if proof.unproved:
        yield "? = nothing proved: server or client waited for a core. End other programs and repeat."
    if any(judged.only_times_wrong for judged in proof.cases):
        yield "Wrong times alone may be a busy machine's: end other programs and repeat. What is wrong will be again."


def last_line(proof: Proof) -> str:
    """``69 of 69 right, in 5.0 s``; what the machine was too busy to show is told here too."""
    parts = [f"{proof.right} of {len(proof.cases)} right" + ("" if proof.seen else " in what could be seen")]
    if proof.unproved:
        parts.append(f"{proof.unproved} not proved")
    if not proof.seen:
        unseen = proof.gaps - proof.known_gaps
        parts.append(f"times not proved on so busy a machine ({unseen:,} of {proof.gaps:,} gaps unknown)")
    return "; ".join(parts) + f", in {proof.took_s:.1f} s"


# For documents and programs.


def markdown(proof: Proof) -> str:
    """One table."""
    lines = ["| behaviour | the server | right | ours | |", "| --- | --- | --- | --- | --- |"]
    for judged in proof.cases:
        right, ours = (_in_words(judged, whose) for whose in ("right", "ours"))
        lines.append(f"| `{judged.case.behaviour}` | {judged.case.does} | {right} | {ours} | {_MARKS[judged.ok]} |")
    return "\n".join([*lines, "", *(f"{line}  " for line in _foot(proof)), last_line(proof)])


def _in_words(judged: Judged, whose: str) -> str:
    words = [f"`{_cell(judged.check('status'), whose)}`"]
    if tokens := judged.check("output_tokens"):
        words.append(f"{_cell(tokens, whose)} tokens")
    times = zip(_CELLS[1:], _cells(judged, whose)[1:], strict=True)
    words += [f"{_WORDS[what]} {cell}" for what, cell in times if cell != _UNKNOWN]
    if doubt := judged.check("doubt"):
        words.append(f"doubted: `{_cell(doubt, whose)}`")
    return ", ".join(words)


def json_text(proof: Proof) -> str:
    """Every value of every case."""
    document = {
        "schema": SCHEMA,
        "right": proof.right,
        "unproved": proof.unproved,
        "of": len(proof.cases),
        "ok": proof.ok,
        "clock": proof.clock,
        "tolerance_ms": proof.tolerance_ms,
        "answers": proof.answers,
        "took_s": proof.took_s,
        "gaps": proof.gaps,
        "known_gaps": proof.known_gaps,
        "errors_ms": {name: proof.errors_ms(name) for name in _WORDS},
        "cases": [_as_tree(judged) for judged in proof.cases],
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode()


def _as_tree(judged: Judged) -> dict[str, Any]:
    case = judged.case
    return {
        "behaviour": case.behaviour,
        "group": case.group,
        "dialect": case.dialect,
        "does": case.does,
        "ok": judged.ok,
        "answers": judged.answers,
        "checks": judged.checks,
    }
