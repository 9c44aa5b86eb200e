"""The arrays of ``--save-detailed`` and ``--output-details``: one entry a request, in seconds.

Failed requests keep 0.0 as their TTFT, which is no time. vLLM since 2025 has the instants of the sends; SGLang and
older files have none.
"""

from collections.abc import Mapping
from typing import Any

from withstand.interop import facts, values
from withstand.interop.build import RunBuilder
from withstand.record import Status, TokensFrom

_NEEDED = ("ttfts", "itls", "output_lens")
_OPTIONAL = ("input_lens", "errors", "start_times", "latencies")


def attach(run: RunBuilder, value: Mapping[str, Any]) -> None:
    """Facts, where all arrays are there."""
    if not any(isinstance(value.get(name), list) for name in _NEEDED):
        return
    present = [name for name in _OPTIONAL if isinstance(value.get(name), list)]
    columns = facts.columns(value, [*_NEEDED, *present])
    if columns is None:
        run.leave("per-request facts", "its lists (ttfts, itls, output_lens …) are not all there or differ in length.")
        return
    rows = [_row({name: column[i] for name, column in columns.items()}) for i in range(len(columns["ttfts"]))]
    if None in rows:
        run.leave("per-request facts", "a time in ttfts or itls is no number.")
        return
    facts.attach(run, [row for row in rows if row], gaps_known=True)


def _row(entry: Mapping[str, Any]) -> facts.Row | None:
    ttft_s, gaps_s = values.number(entry["ttfts"]), facts.seconds_list(entry["itls"])
    if ttft_s is None or gaps_s is None:
        return None
    error = facts.error_line(entry.get("errors"))
    status = facts.status_of(error) if error or ttft_s > 0 else Status.EMPTY
    good = status is Status.OK
    return facts.Row(
        sent_s=values.number(entry.get("start_times")),
        ttft_s=ttft_s if good else None,
        e2el_s=values.number(entry.get("latencies")) if good else None,
        gaps_s=gaps_s if good else None,
        prompt_tokens=values.whole(entry.get("input_lens")),
        output_tokens=values.whole(entry["output_lens"]) if good else None,
        tokens_from=TokensFrom.SERVER if good else None,
        error=error,
        status=status,
    )
