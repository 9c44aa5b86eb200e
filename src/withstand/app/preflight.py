"""The first requests decide whether a load makes sense at all: what their failure means, and the cure."""

from collections.abc import Sequence

from withstand.app.endpoint import Endpoint
from withstand.errors import TargetError
from withstand.load.ask import key_sentence
from withstand.record import Record, Status
from withstand.wire.reply import one_line

_GO_ON = "`--num-warmups 0` measures all the same."


def check_warmup_of(endpoint: Endpoint, records: Sequence[Record]) -> None:
    """The same of an endpoint.

    Raises:
        TargetError: as below.
    """
    stream, sends_key = endpoint.target.stream, endpoint.asker.sends_key
    check_warmup(records, model=endpoint.model, models=endpoint.models, stream=stream, sends_key=sends_key)


def check_warmup(
    records: Sequence[Record], *, model: str | None, models: Sequence[str], stream: bool, sends_key: bool = True
) -> None:
    """Nothing, if any answer was good or a limiter spoke.

    Raises:
        TargetError: all failed, or a stream was asked for and none came.
    """
    good = [r for r in records if r.status is Status.OK]
    if good:
        if stream and not any(r.streamed for r in good):
            raise TargetError(
                "The endpoint answers all at once although a stream was asked for, so TTFT and ITL cannot be measured. "
                "`--set target.stream=false` measures whole answers."
            )
        return
    if not records or any(r.status is Status.LIMITED for r in records):
        return
    if all(r.status is Status.CANCELLED for r in records):
        return  # the budget cut them: nothing is known yet
    if records[0].http_status in {401, 403}:
        raise TargetError(key_sentence(_told(records[0]), sent=sends_key))
    raise TargetError(_sentence(records[0], model, models))


def _told(record: Record) -> str:
    return (record.error or record.status.value).rstrip(".")


def _sentence(first: Record, model: str | None, models: Sequence[str]) -> str:
    told = _told(first)
    served = f"It serves: {one_line(', '.join(models[:8]))}." if models else "It lists no models."
    by_http_status = {
        400: f"The endpoint refuses the request: {told}. If it names a field that it does not know, leave it out, "
        "for instance by --set workload.ignore_eos=false.",
        404: f"The endpoint does not know the model {model!r}, or not this path ({told}). {served}",
    }
    by_status = {
        Status.TLS_ERROR: f"{told}. Give the authority's certificate by --cacert, or skip the check by --insecure.",
        Status.BAD_ANSWER: f"The answer is not what --backend expects: {told}. "
        "Check the URL, --backend and target.endpoint.",
    }
    if "HTML" in told:
        return f"The endpoint answers with a web page ({told}); the URL must lead to an API, not to a site."
    return (
        by_http_status.get(first.http_status or 0)
        or by_status.get(first.status)
        or f"The first request failed, so nothing was measured: {told}. {_GO_ON}"
    )
