"""What is done next with a stack's processes, in virtual time."""

from hypothesis import given
from hypothesis import strategies as st

from withstand.stack.blueprint import Process, Upkeep, in_order
from withstand.stack.supervision import Absence, Phase, Supervision


def process(name: str, *needs: str, restart: bool = False, ready_s: float = 10.0) -> Process:
    upkeep = Upkeep(restart=restart, ready_s=ready_s)
    return Process(name=name, kind="command", argv=("x",), port=1, needs=needs, upkeep=upkeep)


CHAIN = (process("engine", restart=True), process("gateway", "engine"), process("edge", "gateway"))


def names(processes: list[Process]) -> list[str]:
    return [each.name for each in processes]


def ready(supervision: Supervision, name: str, now_s: float) -> None:
    supervision.started(name, now_s)
    supervision.healthy(name, now_s)


def test_a_service_starts_when_all_that_it_needs_is_ready() -> None:
    supervision = Supervision(CHAIN)
    assert names(supervision.to_start(0)) == ["engine"]
    supervision.started("engine", 0)
    assert names(supervision.to_start(1)) == []
    supervision.healthy("engine", 2)
    assert names(supervision.to_start(2)) == ["gateway"]
    ready(supervision, "gateway", 3)
    ready(supervision, "edge", 4)
    assert supervision.all_ready
    assert supervision.units["engine"].ready_after_s == 2


def test_one_that_never_was_ready_fails_the_stack() -> None:
    supervision = Supervision(CHAIN)
    supervision.started("engine", 0)
    assert supervision.overdue(9) == []
    assert supervision.overdue(10.1) == ["engine"]
    supervision.ended("engine", 11, "no memory")
    failed = supervision.never_up
    assert failed
    assert failed.reason == "no memory"
    assert supervision.to_start(1000) == []


def test_one_that_ends_before_all_are_up_fails_the_stack_though_it_was_ready() -> None:
    supervision = Supervision((process("engine"), process("gateway", "engine")))
    ready(supervision, "engine", 0)
    supervision.started("gateway", 1)
    supervision.ended("engine", 2, "was killed")
    failed = supervision.never_up
    assert failed
    assert failed.reason == "was killed"


def test_one_that_ends_later_is_started_again_only_where_that_is_asked_for() -> None:
    supervision = Supervision(CHAIN)
    for at, name in enumerate(("engine", "gateway", "edge")):
        ready(supervision, name, at)
    supervision.ended("engine", 100, "crashed")
    supervision.ended("gateway", 100, "crashed")
    assert supervision.never_up is None
    assert names(supervision.to_start(100.5)) == []
    assert names(supervision.to_start(101)) == ["engine"]
    assert supervision.units["gateway"].phase is Phase.FAILED


def test_back_off_doubles_up_to_a_minute_and_is_forgotten_after_a_good_minute() -> None:
    supervision = Supervision((process("engine", restart=True),))
    ready(supervision, "engine", 0)
    now_s, waits = 1.0, []
    for _ in range(9):
        supervision.ended("engine", now_s, "crashed")
        ended_s = now_s
        while not supervision.to_start(now_s):
            now_s += 0.5
        waits.append(now_s - ended_s)
        ready(supervision, "engine", now_s)
        now_s += 1
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    supervision.ended("engine", now_s + 60, "crashed")
    assert names(supervision.to_start(now_s + 61)) == ["engine"]
    assert supervision.units["engine"].restarts == 10


def test_one_that_starts_in_vain_before_all_are_up_fails_the_stack_at_the_third_start() -> None:
    supervision = Supervision(CHAIN)
    ready(supervision, "engine", 0)
    supervision.started("gateway", 0)
    supervision.ended("engine", 1, "crashed")
    for at in (10, 20, 30):
        assert supervision.never_up is None
        supervision.started("engine", at)
        supervision.ended("engine", at + 1, "no memory")
    failed = supervision.never_up
    assert failed
    assert (failed.process.name, failed.vain_starts) == ("engine", 3)
    ready(supervision, "engine", 60)
    assert failed.vain_starts == 0


def test_whoever_asks_has_one_started_again_whatever_it_does() -> None:
    supervision = Supervision(CHAIN)
    for name in ("engine", "gateway", "edge"):
        ready(supervision, name, 0)
    assert supervision.restart("gateway", 10)
    assert supervision.to_start(11) == []
    assert supervision.restart("gateway", 11)  # once more makes no difference
    supervision.ended("gateway", 12, "told to end")
    assert names(supervision.to_start(12)) == ["gateway"]
    assert (supervision.units["gateway"].reason, supervision.units["gateway"].restarts) == ("", 1)
    supervision.ended("edge", 13, "crashed")
    assert supervision.units["edge"].phase is Phase.FAILED
    assert not supervision.restart("edge", 14)
    assert names(supervision.to_start(14)) == ["gateway"]  # which the edge waits for
    ready(supervision, "gateway", 15)
    supervision.ended("engine", 16, "crashed")
    assert not supervision.restart("engine", 16)
    assert names(supervision.to_start(16)) == ["engine", "edge"]  # before its time


def test_the_end_comes_from_the_edge_inwards() -> None:
    supervision = Supervision(CHAIN)
    alive, order = {"engine", "gateway", "edge"}, []
    while alive:
        (last,) = supervision.may_end(alive)
        order.append(last)
        alive.remove(last)
    assert order == ["edge", "gateway", "engine"]


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_whatever_needs_whatever_nothing_starts_before_what_it_needs(needs: list[set[int]], dice: object) -> None:
    """Of any graph without a circle."""
    processes = [process(str(i), *(str(need) for need in sorted(needed) if need < i)) for i, needed in enumerate(needs)]
    dice.shuffle(processes)  # type: ignore[attr-defined]
    placed: set[str] = set()
    for each in in_order(processes):
        assert placed.issuperset(each.needs)
        placed.add(each.name)
    assert len(placed) == len(processes)


def test_it_is_known_when_a_process_was_away_and_why_it_went_first() -> None:
    supervision = Supervision((process("engine", restart=True),))
    ready(supervision, "engine", 0)
    assert supervision.units["engine"].absences == []
    supervision.ended("engine", 5, "was killed")
    supervision.started("engine", 6)
    supervision.ended("engine", 7, "has no memory")
    ready(supervision, "engine", 9)
    supervision.ended("engine", 20, "was killed again")
    assert supervision.units["engine"].absences == [
        Absence(began_s=5, reason="was killed", back_s=9),
        Absence(began_s=20, reason="was killed again"),
    ]


def test_of_many_absences_the_last_are_kept() -> None:
    supervision = Supervision((process("engine", restart=True),))
    for i in range(1000):
        ready(supervision, "engine", 10 * i)
        supervision.ended("engine", 10 * i + 5, "was killed")
    kept = supervision.units["engine"].absences
    assert len(kept) == 100
    assert kept[-1].began_s == 9995


def test_one_that_never_was_ready_was_never_away() -> None:
    supervision = Supervision(CHAIN)
    supervision.started("engine", 0)
    supervision.ended("engine", 1, "no memory")
    assert supervision.units["engine"].absences == []


def test_one_that_is_started_anew_by_hand_was_away_too() -> None:
    supervision = Supervision((process("engine"),))
    ready(supervision, "engine", 0)
    assert supervision.restart("engine", 5)
    supervision.ended("engine", 6, "")
    ready(supervision, "engine", 8)
    [absence] = supervision.units["engine"].absences
    assert (absence.began_s, absence.back_s) == (5, 8)
    assert absence.reason == "was started anew, as somebody asked for it."


def test_one_that_leaves_is_away_from_then_on_and_for_the_reason_that_is_known_later() -> None:
    supervision = Supervision((process("engine", restart=True), process("gateway", "engine", restart=True)))
    ready(supervision, "engine", 0)
    ready(supervision, "gateway", 0)
    supervision.left("engine", 70)
    supervision.left("engine", 71)  # once more makes no difference
    engine = supervision.units["engine"]
    assert (engine.phase, engine.since_s, engine.reason) == (Phase.LEAVING, 70, "has ended")
    assert not supervision.all_ready
    supervision.ended("gateway", 72, "crashed")
    assert supervision.to_start(75) == []  # it waits for the engine
    supervision.ended("engine", 78, "was killed", 137)
    assert (engine.reason, engine.exit_code, engine.vain_starts) == ("was killed", 137, 0)
    assert names(supervision.to_start(79)) == ["engine"]  # it had a good minute
    ready(supervision, "engine", 80)
    assert engine.absences == [Absence(began_s=70, reason="was killed", back_s=80)]
    supervision.left("engine", 90)
    assert supervision.restart("engine", 91)
    supervision.ended("engine", 92, "was killed")
    assert names(supervision.to_start(92)) == ["engine"]


def test_a_wall_clock_that_is_set_decides_nothing() -> None:
    ahead_s = [1000.0]
    supervision = Supervision((process("engine", restart=True),), lambda at_s: at_s + ahead_s[0])
    engine = supervision.units["engine"]
    supervision.started("engine", 0)
    ahead_s[0] += 3600
    assert supervision.overdue(9) == []
    supervision.healthy("engine", 9)
    assert (engine.ready_after_s, engine.since_s) == (9, 4609)
    supervision.ended("engine", 20, "was killed")
    ahead_s[0] -= 7200
    assert names(supervision.to_start(21)) == ["engine"]
    ready(supervision, "engine", 22)
    assert engine.absences == [Absence(began_s=4620, reason="was killed", back_s=-2578)]
