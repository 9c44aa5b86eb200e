"""Whether a body's fields arrive: by their effect on answers, or byte for byte where our echo engine stands behind."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from withstand.doctor.finding import Finding, Question

BYTES = Question("fields.bytes", "The body's bytes")
KEPT = Question("fields.kept", "Its fields")
_SHOWN_MAX = 6
LENGTHS: Final = ("max_completion_tokens", "max_tokens")
"""Whoever loses one of these has the engine say several times as much, and its times are about something else."""


class Effect(StrEnum):
    """What a field did."""

    HAS = "has"
    HAS_NOT = "has not"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The answers would have been so without it."""


class Tried(msgspec.Struct, frozen=True):
    """One field, asked for over one way."""

    effect: Effect
    said: str


def question_of(field: str) -> Question:
    """``fields.max_tokens``."""
    return Question(f"fields.{field}", field)


def judge_field(field: str, path: Tried, direct: Tried | None) -> Finding:
    """Over the path, and at the engine itself where it could be asked."""
    question = question_of(field)
    known = direct is not None and direct.effect
    if path.effect is Effect.HAS:
        return question.ok(path.said)
    if path.effect is Effect.UNKNOWN:
        return question.not_tried(path.said)
    if known == Effect.HAS:
        cure = f"The hop loses or refuses `{field}`: have it pass bodies on as they come."
        return question.wrong(f"{path.said}; at the engine itself it has its effect", cure)
    if known == path.effect:
        return question.ok(f"{path.said}, as at the engine itself")
    if path.effect is Effect.REFUSED:
        return question.doubt(path.said, f"Do without `{field}`, or find out who refuses it by --direct.")
    cure = "It is lost on the path, or the engine does not know it: --direct or --echo tells."
    return question.wrong(path.said, cure) if field in LENGTHS else question.doubt(path.said, cure)


# Byte for byte.


class Arrived(msgspec.Struct, frozen=True):
    """Two bodies compared."""

    same_bytes: bool
    dropped: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def compared(sent: bytes, came: bytes) -> Arrived | None:
    """By their bytes, then by their fields; None = what came is no JSON object."""
    if sent == came:
        return Arrived(same_bytes=True)
    try:
        before, after = msgspec.json.decode(sent), msgspec.json.decode(came)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(after, dict):
        return None
    return Arrived(
        same_bytes=False,
        dropped=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(sorted(k for k in before.keys() & after.keys() if not _same(before[k], after[k]))),
        added=tuple(sorted(after.keys() - before.keys())),
    )


def _same(one: Any, other: Any) -> bool:
    """Equal in value and kind: 1 and true are not the same, nor 1 and 1.0."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def judge_bodies(sent: bytes, came: bytes) -> list[Finding]:
    """Of one body as we sent it and as the echo engine got it."""
    arrived = compared(sent, came)
    if arrived is None:
        return [BYTES.wrong("what arrives is no JSON object", "Have the hop pass bodies on as they come.")]
    count = len(msgspec.json.decode(sent))
    if arrived.same_bytes:
        return [BYTES.ok(f"as they were sent, all {len(sent)}"), KEPT.ok(f"all {count}, unknown ones too")]
    only_model = arrived.changed == ("model",) and not arrived.dropped and not arrived.added
    why = "as they were sent, but for the model's name" if only_model else "parsed and written anew"
    return [BYTES.ok(why), _kept(arrived, count)]


def _kept(arrived: Arrived, count: int) -> Finding:
    changed = tuple(name for name in arrived.changed if name != "model")
    told = {"dropped": arrived.dropped, "changed": changed, "added": arrived.added}
    said = "; ".join(f"{what}: {_names(names)}" for what, names in told.items() if names)
    facts = {what: ", ".join(names) for what, names in told.items()}
    if arrived.dropped or changed:
        return KEPT.wrong(said, "Have the hop pass on what it does not know, and change nothing.", **facts)
    if arrived.added:
        return KEPT.doubt(said, "See that what the hop adds is what you want to measure.", **facts)
    return KEPT.ok(f"all {count}, unknown ones too")


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more
