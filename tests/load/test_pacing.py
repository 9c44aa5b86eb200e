"""The dispatcher in virtual time: no sleeping, no sockets."""

import heapq
from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from withstand.load.pacing import Dispatcher, Due
from withstand.request import Message, Request

SAID = (Message(role="user", content="x"),)


def single(i: int, due_ns: int | None = None) -> Request:
    return Request(id=i, session=i, due_ns=due_ns, messages=SAID)


def conversation(session: int, turns: int, *, think_ns: int = 0, due_ns: int | None = None) -> list[Request]:
    return [
        Request(
            id=session * 100 + turn,
            session=session,
            turn=turn,
            last_turn=turn == turns - 1,
            due_ns=due_ns if turn == 0 else None,
            think_ns=think_ns,
            messages=SAID,
        )
        for turn in range(turns)
    ]


def play(
    dispatcher: Dispatcher, service_ns: Callable[[Request], int], *, fails: frozenset[int] = frozenset()
) -> tuple[list[tuple[int, Due]], list[Request], int]:
    """Run to the end: (what was sent when, what was dropped, the most in flight)."""
    now_ns, sent, dropped, most = 0, [], [], 0
    running: list[tuple[int, int, Request]] = []
    while True:
        while due := dispatcher.take(now_ns):
            sent.append((now_ns, due))
            heapq.heappush(running, (now_ns + service_ns(due.request), due.request.id, due.request))
            most = max(most, len(running))
        wake_ns = dispatcher.wake_ns()
        if dispatcher.ended(now_ns):
            wake_ns = None
        candidates = [t for t in (wake_ns, running[0][0] if running else None) if t is not None]
        if not candidates:
            return sent, dropped, most
        now_ns = max(now_ns, min(candidates))
        while running and running[0][0] <= now_ns:
            end_ns, _, request = heapq.heappop(running)
            dropped += dispatcher.finished(request, end_ns, ok=request.id not in fails)


def test_open_loop_never_waits_for_answers() -> None:
    dispatcher = Dispatcher(cap=None, closed=False, end_ns=None)
    for i in range(5):
        dispatcher.offer(single(i, due_ns=i * 10))
    sent, _, most = play(dispatcher, lambda _: 1_000)
    assert [(t, d.scheduled_ns, d.ready_ns) for t, d in sent] == [(i * 10, i * 10, i * 10) for i in range(5)]
    assert most == 5


def test_a_cap_delays_and_the_wait_is_seen() -> None:
    dispatcher = Dispatcher(cap=1, closed=False, end_ns=None)
    for i in range(3):
        dispatcher.offer(single(i, due_ns=i * 10))
    sent, _, most = play(dispatcher, lambda _: 25)
    assert [(t, d.scheduled_ns, d.ready_ns) for t, d in sent] == [(0, 0, 0), (25, 10, 25), (50, 20, 50)]
    assert most == 1


def test_closed_loop_has_no_schedule() -> None:
    dispatcher = Dispatcher(cap=2, closed=True, end_ns=None)
    for i in range(4):
        dispatcher.offer(single(i))
    sent, _, most = play(dispatcher, lambda r: 10 + r.id)
    assert [(t, d.scheduled_ns, d.ready_ns) for t, d in sent] == [
        (0, None, 0),
        (0, None, 0),
        (10, None, 10),
        (11, None, 11),
    ]
    assert most == 2


def test_everything_at_once_without_a_cap() -> None:
    dispatcher = Dispatcher(cap=None, closed=False, end_ns=None)
    for i in range(100):
        dispatcher.offer(single(i, due_ns=0))
    sent, _, most = play(dispatcher, lambda _: 5)
    assert most == 100
    assert {t for t, _ in sent} == {0}


def test_a_turn_follows_the_answer_by_its_think_time() -> None:
    dispatcher = Dispatcher(cap=None, closed=False, end_ns=None)
    for request in conversation(0, 3, think_ns=7, due_ns=5):
        dispatcher.offer(request)
    sent, _, _ = play(dispatcher, lambda _: 10)
    assert [(t, d.scheduled_ns) for t, d in sent] == [(5, 5), (22, 22), (39, 39)]


def test_a_user_keeps_his_slot_while_he_thinks() -> None:
    dispatcher = Dispatcher(cap=1, closed=True, end_ns=None)
    for session in range(2):
        for request in conversation(session, 2, think_ns=100):
            dispatcher.offer(request)
    sent, _, _ = play(dispatcher, lambda _: 10)
    assert [d.request.session for _, d in sent] == [0, 0, 1, 1]
    assert sent[2][0] == 120


def test_a_failed_turn_ends_its_conversation_and_frees_its_slot() -> None:
    dispatcher = Dispatcher(cap=1, closed=True, end_ns=None)
    for request in (*conversation(0, 3), single(50)):
        dispatcher.offer(request)
    sent, dropped, _ = play(dispatcher, lambda _: 10, fails=frozenset({1}))
    assert [d.request.id for _, d in sent] == [0, 1, 50]
    assert [r.id for r in dropped] == [2]


def test_nothing_is_sent_after_the_end_and_the_backlog_is_told() -> None:
    dispatcher = Dispatcher(cap=1, closed=False, end_ns=30)
    for i in range(6):
        dispatcher.offer(single(i, due_ns=i * 10))
    sent, _, _ = play(dispatcher, lambda _: 20)
    assert [d.request.id for _, d in sent] == [0, 1]
    assert [d.request.id for d in dispatcher.leftover(1_000)] == [2, 3]


@given(
    dues=st.lists(st.integers(0, 1_000), max_size=40),
    cap=st.one_of(st.none(), st.integers(1, 4)),
    service=st.integers(1, 200),
)
def test_every_request_is_sent_once_never_early_and_within_the_cap(
    dues: list[int], cap: int | None, service: int
) -> None:
    dispatcher = Dispatcher(cap=cap, closed=False, end_ns=None)
    for i, due_ns in enumerate(sorted(dues)):
        dispatcher.offer(single(i, due_ns=due_ns))
    sent, _, most = play(dispatcher, lambda r: service + r.id % 3)
    assert [d.request.id for _, d in sent] == list(range(len(dues)))
    assert all(t == d.ready_ns >= d.request.due_ns for t, d in sent)
    assert cap is None or most <= cap
    assert dispatcher.idle


@given(
    sessions=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 50)), max_size=12),
    cap=st.integers(1, 3),
    failing=st.sets(st.integers(0, 1_200), max_size=10),
)
def test_closed_loop_of_conversations_loses_nothing(
    sessions: list[tuple[int, int]], cap: int, failing: set[int]
) -> None:
    dispatcher = Dispatcher(cap=cap, closed=True, end_ns=None)
    every = [r for s, (turns, think_ns) in enumerate(sessions) for r in conversation(s, turns, think_ns=think_ns)]
    for request in every:
        dispatcher.offer(request)
    sent, dropped, most = play(dispatcher, lambda r: 5 + r.id % 7, fails=frozenset(failing))
    assert sorted([d.request.id for _, d in sent] + [r.id for r in dropped]) == sorted(r.id for r in every)
    assert most <= cap


def _refused(dispatcher: Dispatcher, times: int, took_ns: int = 0) -> list[int]:
    """When each of one slot's requests was sent, where all fail without a byte."""
    sent_ns = []
    now_ns = 0
    for _ in range(times):
        now_ns = max(now_ns, dispatcher.wake_ns() or 0)
        due = dispatcher.take(now_ns)
        assert due
        assert due.ready_ns == now_ns
        assert dispatcher.take(now_ns) is None
        sent_ns.append(now_ns)
        now_ns += took_ns
        dispatcher.finished(due.request, now_ns, ok=False, unheard_ns=sent_ns[-1])
    return sent_ns


def test_a_slot_that_gets_no_byte_pauses_longer_each_time_and_ready_is_after_it() -> None:
    dispatcher = Dispatcher(cap=1, closed=True, end_ns=None)
    for i in range(20):
        dispatcher.offer(single(i))
    sent_ns = _refused(dispatcher, 12)
    gaps_ms = [(later - earlier) // 1_000_000 for earlier, later in pairwise(sent_ns)]
    assert gaps_ms == [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000]
    now_ns = dispatcher.wake_ns()
    assert now_ns
    due = dispatcher.take(now_ns)
    assert due
    dispatcher.finished(due.request, now_ns + 5, ok=True)
    assert dispatcher.wake_ns() == now_ns + 5
    assert dispatcher.take(now_ns + 5)


def test_who_has_waited_for_the_failure_itself_does_not_pause_on_top_of_it() -> None:
    dispatcher = Dispatcher(cap=1, closed=True, end_ns=None)
    for i in range(20):
        dispatcher.offer(single(i))
    assert _refused(dispatcher, 12, took_ns=2_000_000_000) == [i * 2_000_000_000 for i in range(12)]


def test_an_open_loop_does_not_pause() -> None:
    dispatcher = Dispatcher(cap=1, closed=False, end_ns=None)
    for i in range(5):
        dispatcher.offer(single(i, due_ns=0))
    assert _refused(dispatcher, 5) == [0] * 5
