"""Who comes and who goes: whatever the machine holds, the rules hold."""

from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway.hosting.residence import Plan, Resident, Room, Wanted, plan

NOW_S = 1000.0
MEMORY = 16.0

seconds = st.floats(0, NOW_S)
sizes = st.sampled_from([0.0, 1.0, 4.0, 7.5, 16.0])


@st.composite
def machines(draw: st.DrawFn) -> tuple[list[Resident], list[Wanted]]:
    """Some engines that fit together, and some more that somebody waits for."""
    residents, free = [], MEMORY
    for i in range(draw(st.integers(0, 6))):
        memory = draw(sizes)
        if memory > free:
            break
        free -= memory
        state = draw(st.sampled_from(["up", "starting", "stopping"]))
        residents.append(
            Resident(
                name=f"r{i}",
                memory=memory,
                up=state == "up",
                stopping=state == "stopping",
                in_flight=draw(st.integers(0, 2)),
                used_s=draw(seconds),
                since_s=draw(seconds),
                idle_s=draw(st.sampled_from([1.0, 300.0, float("inf")])),
                unwanted=draw(st.booleans()),
            )
        )
    return residents, [Wanted(f"w{i}", draw(sizes)) for i in range(draw(st.integers(0, 3)))]


@given(machines(), st.floats(0, 600))
def test_what_always_holds(machine: tuple[list[Resident], list[Wanted]], residence_s: float) -> None:
    residents, wanted = machine
    done = plan(residents, wanted, Room(MEMORY, residence_s), NOW_S)
    by_name = {r.name: r for r in residents}
    size = {w.name: w.memory for w in wanted}
    assert not any(by_name[name].in_flight for name in done.stop), "nobody's answer is cut off"
    assert all(by_name[name].up for name in done.stop | done.closing)
    assert sum(r.memory for r in residents) + sum(size[name] for name in done.start) <= MEMORY
    assert list(done.start) == [w.name for w in wanted][: len(done.start)], "nobody overtakes"
    for name in done.stop | done.closing:
        resident = by_name[name]
        idle = NOW_S - resident.used_s >= resident.idle_s
        assert resident.unwanted or idle or NOW_S - resident.since_s >= residence_s
        assert resident.unwanted or idle or len(done.start) < len(wanted), "nobody goes for nothing"


@given(machines(), st.floats(0, 600))
def test_who_waits_gets_room_once_all_are_free(
    machine: tuple[list[Resident], list[Wanted]], residence_s: float
) -> None:
    """Carried out again and again, with requests that end, everything that is waited for comes up."""
    residents, waiting = machine
    now_s = NOW_S
    for _ in range(40):
        done = plan(residents, waiting, Room(MEMORY, residence_s), now_s)
        now_s += 100
        waiting = [w for w in waiting if w.name not in done.start]
        residents = [
            Resident(name=r.name, memory=r.memory, in_flight=0, used_s=r.used_s, since_s=r.since_s)
            for r in residents
            if not r.stopping and r.name not in done.stop
        ]
        size = {w.name: w.memory for w in machine[1]}
        residents += [Resident(name=n, memory=size[n], used_s=now_s, since_s=now_s) for n in done.start]
    assert not waiting


def up(name: str, memory: float = 8, used_s: float = 0, **more: float) -> Resident:
    return Resident(name=name, memory=memory, used_s=used_s, **more)  # type: ignore[arg-type]


def decided(*residents: Resident, want: float = 8, residence_s: float = 30) -> Plan:
    return plan(residents, [Wanted("w", want)], Room(MEMORY, residence_s), NOW_S)


def test_the_one_whose_last_request_is_longest_ago_goes() -> None:
    assert decided(up("a", used_s=900), up("b", used_s=800)).stop == {"b"}


def test_one_that_has_just_come_stays() -> None:
    assert decided(up("a", used_s=900), up("b", used_s=800, since_s=990)).stop == {"a"}
    assert decided(up("a", since_s=980), up("b", since_s=990)) == Plan(frozenset(), (), frozenset())


def test_no_more_go_than_must() -> None:
    assert decided(up("a", 2, 100), up("b", 8, 200), up("c", 6, 300), want=8).stop == {"b"}


def test_busy_ones_take_nothing_new_where_idle_ones_are_not_enough() -> None:
    busy, idle = up("busy", used_s=1000, in_flight=1), up("idle", used_s=999)
    assert decided(busy, idle) == Plan(frozenset({"idle"}), (), frozenset())
    assert decided(busy, idle, want=16) == Plan(frozenset({"idle"}), (), frozenset({"busy"}))


def test_nobody_has_to_go_whom_the_newcomer_needs() -> None:
    both = [up("needed", used_s=1), up("other", used_s=2, in_flight=1)]
    done = plan(both, [Wanted("w", 8, beside="needed")], Room(MEMORY, 30), NOW_S)
    assert done == Plan(frozenset(), (), frozenset({"other"}))


def test_what_is_on_its_way_out_already_is_waited_for() -> None:
    leaving = Resident(name="leaving", memory=8, up=False, stopping=True)
    assert decided(up("a"), leaving) == Plan(frozenset(), (), frozenset())


def test_without_a_limit_all_may_stay() -> None:
    done = plan([up("a")], [Wanted("b", 0), Wanted("c", 99)], Room(float("inf"), 30), NOW_S)
    assert done == Plan(frozenset(), ("b", "c"), frozenset())
