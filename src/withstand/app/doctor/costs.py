"""With and without the hop, in turn, in the order in which ``withstand ab`` has its blocks."""

from collections.abc import Iterator

from withstand.app.doctor.line import Line, TimeUpError
from withstand.app.doctor.patient import Dose, Patient
from withstand.control.interleaving import BLOCKS_MIN, pairs_of
from withstand.doctor.finding import Finding
from withstand.doctor.heard import NS_PER_MS, Heard
from withstand.doctor.hop import ITL, PAIRS_MIN, TTFT, added, judge_hop
from withstand.doctor.pace import Load

_TOKENS = 16
_HOW = "ttft=5,itl=2"

Pair = tuple[Heard, Heard]
"""Over the path, and at the engine itself."""


def costs_load(dose: Dose) -> Load:
    """What it takes."""
    return Load(2 + 2 * _wanted(dose), _TOKENS)


def _wanted(dose: Dose) -> int:
    pairs = max(dose.pairs, PAIRS_MIN, BLOCKS_MIN)
    return pairs + pairs % 2


def examine_costs(patient: Patient) -> Iterator[Finding]:
    """Findings of the chapter ``hop``."""
    direct = patient.direct
    if direct is None:
        cure = "Give the engine's own address by --direct, or put --echo behind the path."
        yield from (question.not_tried("there is nothing to compare with", cure) for question in (TTFT, ITL))
        return
    if patient.echo:
        patient.echo.play(_HOW)
    pairs, is_cut = _until_time_is_up(_pairs(patient, direct))
    if patient.echo:
        patient.echo.play()
    if is_cut and len(pairs) < PAIRS_MIN:
        yield from (patient.left_out(question) for question in (TTFT, ITL))
        return
    ttft = added([path.ttft_ms or 0 for path, _ in pairs], [own.ttft_ms or 0 for _, own in pairs])
    itl = added([_itl_ms(path) for path, _ in pairs], [_itl_ms(own) for _, own in pairs])
    yield from judge_hop(ttft, itl)


def _until_time_is_up(pairs: Iterator[Pair | None]) -> tuple[list[Pair], bool]:
    """The good ones, and whether there should have been more."""
    good: list[Pair] = []
    try:
        good.extend(pair for pair in pairs if pair)
    except TimeUpError:
        return good, True
    return good, False


def _pairs(patient: Patient, direct: Line) -> Iterator[Pair | None]:
    """None = one of them was no good answer."""
    lines = (patient.path, direct)
    for line in lines:  # the first goes over a new connection
        _ask(line)
    for pair in pairs_of(_wanted(patient.dose)):
        heard = {block.side: _ask(lines[block.side]) for block in pair}
        yield (heard[0], heard[1]) if _usable(heard[0]) and _usable(heard[1]) else None


def _ask(line: Line) -> Heard:
    return line.ask_long(stream=True, tokens=_TOKENS)


def _usable(heard: Heard) -> bool:
    return heard.ok and heard.streamed and len(heard.events_ns) > 1


def _itl_ms(heard: Heard) -> float:
    """The mean of one answer."""
    return (heard.events_ns[-1] - heard.events_ns[0]) / (len(heard.events_ns) - 1) / NS_PER_MS
