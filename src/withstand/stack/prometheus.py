"""What a Prometheus of ours has seen, asked over HTTP. Blocking."""

import http.client
import math
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from withstand.errors import EngineError

_TIMEOUT_S = 30.0
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


class Series(Struct, frozen=True):
    """Its labels, and its values by their instants: seconds of the wall clock, as Prometheus counts them."""

    metric: dict[str, str]
    values: list[tuple[float, str]]

    def at(self) -> Mapping[float, float]:
        """Those that are numbers."""
        found = {instant: float(text) for instant, text in self.values}
        return {instant: value for instant, value in found.items() if math.isfinite(value)}


class _Data(Struct, frozen=True):
    result: list[Series]


class _Answer(Struct, frozen=True):
    data: _Data | None = None
    error: str = ""


class Range(NamedTuple):
    """From the first instant, in steps, to the last one; seconds of the wall clock."""

    start_s: float
    end_s: float
    step_s: float


def over_time(url: str, expression: str, when: Range) -> list[Series]:
    """What an expression came to.

    Raises:
        EngineError: it does not answer, or refuses the expression.
    """
    start_s, end_s, step_s = (f"{value:.3f}" for value in when)
    form = urlencode({"query": expression, "start": start_s, "end": end_s, "step": step_s})
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=_TIMEOUT_S)
    try:
        connection.request("POST", "/api/v1/query_range", form, _HEADERS)
        answer = msgspec.json.decode(connection.getresponse().read(), type=_Answer)
    except (OSError, http.client.HTTPException, msgspec.DecodeError) as e:
        raise EngineError(f"Prometheus at {url} does not answer: {e or type(e).__name__}.") from None
    finally:
        connection.close()
    if answer.data is None:
        raise EngineError(f"Prometheus at {url} refuses {expression!r}: {answer.error}")
    return answer.data.result
