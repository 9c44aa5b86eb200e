"""What a Prometheus of ours has seen, asked over HTTP. Blocking."""

import http.client
import math
from collections.abc import Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct, field

from withstand.errors import EngineError

_TIMEOUT_S = 30.0
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}
_BELIEVED_MAX = 1e100
"""No count, time or size is so large; a mean of larger ones has no room in a double."""


class Series(Struct, frozen=True):
    """Its labels, and its values by their instants: seconds of the wall clock, as Prometheus counts them."""

    metric: dict[str, str]
    values: list[tuple[float, str]]

    def at(self) -> Mapping[float, float]:
        """Those that are numbers."""
        found = {instant: float(text) for instant, text in self.values}
        return {instant: value for instant, value in found.items() if abs(value) <= _BELIEVED_MAX}

    @property
    def is_odd(self) -> bool:
        """Whether it has numbers that are not believed."""
        return any(_BELIEVED_MAX < abs(float(text)) < math.inf for _, text in self.values)


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


class _Target(Struct, frozen=True):
    labels: dict[str, str] = {}
    last_error: str = field(name="lastError", default="")


class _Targets(Struct, frozen=True):
    active: list[_Target] = field(name="activeTargets", default_factory=list)


class _TargetsAnswer(Struct, frozen=True):
    data: _Targets = _Targets()


def last_errors(url: str) -> dict[str, str]:
    """Service → why its last page was not taken; those whose was are not in it.

    Raises:
        EngineError: it does not answer.
    """
    answer = _asked(url, "GET", "/api/v1/targets?state=active", None, _TargetsAnswer)
    return {one.labels.get("service", "?"): one.last_error for one in answer.data.active if one.last_error}


def over_time(url: str, expression: str, when: Range) -> list[Series]:
    """What an expression came to.

    Raises:
        EngineError: it does not answer, or refuses the expression.
    """
    start_s, end_s, step_s = (f"{value:.3f}" for value in when)
    form = urlencode({"query": expression, "start": start_s, "end": end_s, "step": step_s})
    answer = _asked(url, "POST", "/api/v1/query_range", form, _Answer)
    if answer.data is None:
        raise EngineError(f"Prometheus at {url} refuses {expression!r}: {answer.error}")
    return answer.data.result


_T = TypeVar("_T")


def _asked(url: str, method: str, path: str, form: str | None, kind: type[_T]) -> _T:
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=_TIMEOUT_S)
    try:
        connection.request(method, path, form, _HEADERS if form else {})
        return msgspec.json.decode(connection.getresponse().read(), type=kind)
    except (OSError, http.client.HTTPException, msgspec.DecodeError, UnicodeDecodeError) as e:
        raise EngineError(f"Prometheus at {url} does not answer: {e or type(e).__name__}.") from None
    finally:
        connection.close()
