"""What only several files show together."""

from withstand.audit.across import Work, cross_doubts, work_of_imports
from withstand.interop.shape import Conditions, ImportedRun, Source, Stats
from withstand.metrics.doubts import DoubtKind


def work(file: str, output_each: float | None = 100.0, input_each: float | None = 50.0, **told: str) -> Work:
    return Work(file=file, output_each=output_each, input_each=input_each, **{"model": "m", "client": "c"} | told)  # type: ignore[arg-type]


def kinds(*works: Work) -> list[DoubtKind]:
    return [doubt.kind for doubt in cross_doubts(works, ())]


def test_equal_work_raises_nothing() -> None:
    assert not kinds(work("a"), work("b", output_each=104.0))
    assert not kinds(work("a"), work("b", output_each=None, input_each=None))


def test_one_file_has_nothing_beside_it() -> None:
    assert not kinds(work("a"))


def test_answers_longer_by_a_twentieth_are_other_work() -> None:
    (doubt,) = cross_doubts([work("a", 1295.91), work("b", 255.99)], ())
    assert doubt.kind is DoubtKind.LENGTHS_DIFFER
    assert "a 1,296, b 256.0: 1,296 / 256.0 = 5.06" in doubt.sentence
    assert doubt.blocking


def test_other_prompts_are_other_work() -> None:
    assert kinds(work("a"), work("b", input_each=500.0)) == [DoubtKind.LENGTHS_DIFFER]


def test_what_differs_is_named() -> None:
    (doubt,) = cross_doubts([work("a"), work("b", model="n", client="d")], ())
    assert doubt.kind is DoubtKind.OTHER_CONDITIONS
    assert "model (m, n), client (c, d)" in doubt.sentence


def imported(file: str, **numbers: float) -> ImportedRun:
    stats = {} if numbers else {"speed_per_request": Stats(mean=36.5)}
    return ImportedRun(
        source=Source(file=file, format="f", tool="t"), conditions=Conditions(model="m"), numbers=numbers, stats=stats
    )


def test_speeds_of_single_requests_beside_throughputs_of_a_server() -> None:
    works = [
        work_of_imports("a", [imported("a", output_throughput=28.0), imported("a", output_throughput=320.5)]),
        work_of_imports("b", [imported("b")]),
    ]
    (doubt,) = cross_doubts(works, ())
    assert doubt.kind is DoubtKind.SPEED_BESIDE_THROUGHPUT
    assert "36.50 tok/s" in doubt.sentence
    assert "28 to 320.5 tok/s" in doubt.sentence


def test_what_a_file_has_said_by_itself_is_not_said_again() -> None:
    works = [work_of_imports("a", [imported("a", output_throughput=28.0), imported("a")]), work("b")]
    said = cross_doubts(works, ())
    assert not cross_doubts(works, said)[len(said) - 1 :]
