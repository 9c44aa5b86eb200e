"""Who makes the requests asks an engine that restarts: it is waited for, and meanwhile the stage goes on."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from driving import Drive, Driven, asked, interrupting
from restarting import Restarting, restarting
from withstand.app.endpoint import Endpoint
from withstand.errors import AwayError, TargetError
from withstand.load.ask import EngineTokenizer, engine_tokenizer
from withstand.load.job import Report
from withstand.load.patience import Patience
from withstand.request import Request
from withstand.spec import Target
from withstand.testing import Schedule, TruthServer

__all__ = ["restarting"]


@contextlib.contextmanager
def tokenizing(server: Restarting, patience: Patience) -> Iterator[EngineTokenizer]:
    endpoint = Endpoint(Target(base_url=server.base_url))
    with contextlib.closing(endpoint):
        tokenizer = engine_tokenizer(endpoint.asker, endpoint.address, "m", patience)
        assert tokenizer is not None
        yield tokenizer


def test_an_engine_that_comes_back_has_counted(restarting: Restarting) -> None:
    told: list[str] = []
    with tokenizing(restarting, Patience(tell=told.append)) as tokenizer:
        restarting.away = True
        threading.Timer(0.6, setattr, (restarting, "away", False)).start()
        assert tokenizer.counts(["a b c", "d"]) == [3, 1]
    (sentence,) = told
    assert sentence.endswith("It is asked again, for 30 s at most.")


def test_one_that_stays_away_is_no_reason_for_another_tokenizer(restarting: Restarting) -> None:
    with tokenizing(restarting, Patience(0.4)) as tokenizer:
        restarting.away = True
        with pytest.raises(AwayError) as e:
            tokenizer.counts(["a b c"])
    assert str(e.value) == (
        "/tokenize answers HTTP 503: No engine can be asked at present: connection refused. "
        "Look what became of the server. It was asked again for 0.4 s."
    )


@pytest.mark.parametrize(
    ("status", "cure"),
    [(400, "Choose another"), (429, "Measure with a key that has no such limit, or choose another")],
)
def test_one_that_refuses_the_text_is_not_asked_again(restarting: Restarting, status: int, cure: str) -> None:
    with tokenizing(restarting, Patience()) as tokenizer:
        restarting.refuses_texts = status
        with pytest.raises(TargetError, match=rf"HTTP {status}: no texts\. {cure} --tokenizer\.$"):
            tokenizer.counts(["a b c"])


def test_nobody_at_the_port_is_away_too() -> None:
    with TruthServer() as server:
        endpoint = Endpoint(Target(base_url=server.base_url))
        tokenizer = engine_tokenizer(endpoint.asker, endpoint.address, "m", Patience(0.4))
        assert tokenizer is not None
    with contextlib.closing(endpoint), pytest.raises(AwayError, match=r"asked again for 0\.4 s"):
        tokenizer.counts(["a b c"])


AHEAD = 512
"""So many are made before the start."""
QUICK = Schedule(ttft_ms=10, itl_ms=1, tokens=2)


def then_away(patience: Patience, away_s: float) -> Iterator[Request]:
    """A few more than are made before the start, and after a while as many again."""
    requests = asked(2 * AHEAD + 20, tokens=2)
    yield from requests[: AHEAD + 10]
    back_s = time.monotonic() + away_s

    def count() -> int:
        if time.monotonic() < back_s:
            raise AwayError("It is away.")
        return 1

    patience.ask(count)
    yield from requests[AHEAD + 10 :]


def driven_while_away(
    drive: Drive, away_s: float, listener: Callable[[Report, int], None], duration_s: float
) -> Driven:
    patience = Patience()
    with TruthServer(QUICK) as server:
        return drive(
            server.base_url,
            then_away(patience, away_s),
            cap=8,
            endless=True,
            listener=listener,
            patience=patience,
            duration_ns=int(duration_s * 1e9),
        )


def test_a_stage_goes_on_when_the_engine_is_back(drive: Drive) -> None:
    heard_ns: list[int] = []
    driven = driven_while_away(drive, 1.5, lambda _, ns: heard_ns.append(ns), 60)
    assert driven.result.error is None
    assert len(driven.records) == 2 * AHEAD + 20
    gaps_ns = [after - before for before, after in pairwise(heard_ns)]
    assert max(gaps_ns) < 1_000_000_000


@pytest.mark.parametrize(("interrupt_s", "duration_s"), [((), 1.5), ((1.5,), 60)], ids=["duration", "Ctrl-C"])
def test_a_stage_ends_while_the_engine_is_away(drive: Drive, interrupt_s: tuple[float, ...], duration_s: float) -> None:
    result = driven_while_away(drive, 60, interrupting(*interrupt_s), duration_s).result
    assert result.error is None
    assert 1.4 < (result.ended_ns - result.started_ns) / 1e9 < 4
