"""What our own error could have made is not believed; what it could not have changed is."""

import pytest
from msgspec.structs import replace

from withstand.control.belief import Evidence, believed
from withstand.control.probe import Look, Probe, Standing
from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summarize import summarize_stage
from withstand.metrics.summary import ClientError, Off, StageSummary
from withstand.record import Record
from withstand.spec import Poisson, Promise, Stage, promise_of
from withstand.testing.queues import Queue, fixed

SERVER = Queue(1, fixed(0.1, 0.001))
PROMISE = promise_of("ttft:p95:400")
NEAR = promise_of("ttft:p95:101")
TPOT = promise_of("tpot:p95:1.2")
"""Each answer has 1 ms between its two tokens."""


def records(rate_rps: float) -> list[Record]:
    return SERVER.answers(rate_rps, 1, 400)


def looked(of: list[Record], promise: Promise) -> Look:
    probe = Probe((promise,))
    probe.feed(of)
    return probe.last_look()


def error(**off_ms: float) -> ClientError:
    return ClientError(**{name: Off(p50=ms, p99=ms) for name, ms in off_ms.items()})


def under(of: list[Record], promise: Promise, client_error: ClientError, **changes: object) -> Look:
    summary: StageSummary = summarize_stage(
        of, StageContext(stage=Stage(name="rate-4", arrivals=Poisson(4.0), num_prompts=len(of)))
    )
    summary = replace(summary, client_error=client_error, **changes)
    return believed(looked(of, promise), Evidence(iter(of), summary, (promise,)))


def test_what_no_error_could_change_is_the_look_itself() -> None:
    for rate_rps, standing in ((3.0, Standing.HOLDS), (11.0, Standing.BREAKS)):
        of = records(rate_rps)
        assert looked(of, PROMISE).standing is standing
        assert under(of, PROMISE, error(ttft=0.05)) == looked(of, PROMISE)
        assert under(of, PROMISE, error(ttft=8.0)) == looked(of, PROMISE)


def test_a_break_that_our_error_may_have_made_is_open_and_says_so() -> None:
    of = records(3.0)
    assert looked(of, NEAR).standing is Standing.BREAKS
    believed_look = under(of, NEAR, error(ttft=400.0))
    assert believed_look.standing is Standing.OPEN
    assert believed_look.promise is None
    assert believed_look.doubt == "our own client's error could have made it (TTFT by up to 400 ms)"
    assert under(of, NEAR, error(ttft=0.5)).standing is Standing.BREAKS


def test_first_tokens_are_never_stamped_early_so_a_load_that_holds_is_believed() -> None:
    of = records(3.0)
    assert under(of, PROMISE, error(ttft=350.0)).standing is Standing.HOLDS


def test_a_time_between_two_stamps_may_be_too_short_through_us() -> None:
    of = records(3.0)
    assert looked(of, TPOT).standing is Standing.HOLDS
    assert under(of, TPOT, error(tpot=0.15)).standing is Standing.HOLDS
    assert "TPOT by up to 0.5 ms" in under(of, TPOT, error(tpot=0.5)).doubt


def test_less_load_than_was_asked_holds_nothing_and_still_breaks_what_it_breaks() -> None:
    less = ClientError(rate_share=0.2)
    assert under(records(3.0), PROMISE, less).doubt == "our own client sent 20 % less than was asked"
    assert under(records(11.0), PROMISE, less).standing is Standing.BREAKS


def test_requests_that_we_could_not_send_are_load_that_was_not_there() -> None:
    errors = {"This client's limit: too many open files": 40}
    look = under(records(3.0), PROMISE, ClientError(), errors=errors)
    assert look.doubt == "our own client sent 10 % less than was asked"


def test_a_queue_that_grows_in_front_of_a_slow_client_is_not_the_server_s() -> None:
    promise = promise_of("success:99%")
    grows = Look(standing=Standing.GROWS)
    of = records(3.0)
    summary = summarize_stage(of, StageContext(stage=Stage(arrivals=Poisson(3.0), num_prompts=400)))
    slow = replace(summary, client_error=error(e2el=500.0))
    evidence = Evidence(iter(of), slow, (promise,))
    assert "too slow to tell whose queue" in believed(grows, evidence).doubt
    assert believed(grows, replace(evidence, summary=summary)) == grows


@pytest.mark.parametrize("seen", [60, 120, 200])
def test_it_is_judged_by_the_requests_that_the_look_had_seen(seen: int) -> None:
    of = records(11.0)
    look = looked(of[:seen], PROMISE)
    assert look.standing is Standing.BREAKS
    summary = summarize_stage(of, StageContext(stage=Stage(arrivals=Poisson(11.0), num_prompts=400)))
    evidence = Evidence(iter(of), replace(summary, client_error=error(ttft=4.1)), (PROMISE,))
    assert believed(look, evidence) == look


def test_what_breaks_while_a_service_is_away_says_nothing_of_the_stack() -> None:
    lost = Doubt(DoubtKind.SERVICE_LOST, "…", "…", brief="llamacpp for 2.1 s (40 %)")
    broken = under(records(11.0), PROMISE, error(), doubts=(lost,))
    assert broken.standing is Standing.OPEN
    assert broken.doubt == "it was without llamacpp for 2.1 s (40 %)"
    assert under(records(3.0), PROMISE, error(), doubts=(lost,)).standing is Standing.HOLDS
