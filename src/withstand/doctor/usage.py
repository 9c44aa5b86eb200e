"""Whether the counts that are told fit what was said."""

from collections.abc import Sequence
from statistics import median

from withstand.doctor.finding import Finding, Question
from withstand.doctor.heard import Heard

TOLD = Question("usage.stream", "Usage in the stream")
FITS = Question("usage.fits", "Usage fits what came")
_OFF = 0.05
_SLACK = 2
"""Tokens without a text of their own: the end token, a special one."""


def judge_told(streamed: Sequence[Heard]) -> Finding:
    """Answers that were asked with ``stream_options.include_usage``."""
    told = sum(heard.usage_tokens is not None for heard in streamed)
    if told == len(streamed):
        return TOLD.ok("told at the end of every stream, as asked")
    cure = "Have the hop pass stream_options on, and the last chunk back: without it lengths are guessed."
    return TOLD.wrong(f"asked for by stream_options.include_usage, told in {told} of {len(streamed)} streams", cure)


def judge_fit(pairs: Sequence[tuple[int, int]], counter: str) -> Finding:
    """Of (told, counted) tokens of each answer; ``counter`` says who counted."""
    if not pairs:
        return FITS.not_tried("no answer told its usage")
    told, counted = (round(median(column)) for column in zip(*pairs, strict=True))
    said = f"{told} tokens told, {counted} by {counter}"
    if all(abs(a - b) <= max(_SLACK, _OFF * max(a, b)) for a, b in pairs):
        return FITS.ok(said, told=told, counted=counted)
    if counter.endswith("events") and told > counted:
        return FITS.doubt(said, "Several tokens an event, or too many counted: name a tokenizer.", told=told)
    return FITS.wrong(said, "Find out who counts wrongly; until then trust no tokens a second.", told=told)
