"""What the gateway must know of a body, and the one change that it may make: pure. The rest it does not look at."""

import re

import msgspec
from msgspec import Struct


class Asked(Struct, frozen=True):
    """Read from the body; unknown fields are passed over."""

    model: str
    stream: bool | None = None


_read = msgspec.json.Decoder(Asked).decode
_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read(body: bytes) -> Asked:
    """The fields of a JSON body.

    Raises:
        ValueError: it is no JSON object with a model; the text says what is wrong.
    """
    try:
        return _read(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise ValueError(str(e)) from None
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


def renamed(body: bytes, old: str, new: str) -> bytes:
    """The same bytes with another value of the top level's ``model``.

    Which of the places that look like it is the one, the decoder says: it is where a change is seen.

    Raises:
        ValueError: the body's field names are no UTF-8.
    """
    quoted = msgspec.json.encode(new)
    for place in re.finditer(rb'"model"\s*:\s*(%s)' % re.escape(msgspec.json.encode(old)), body):
        changed = body[: place.start(1)] + quoted + body[place.end(1) :]
        if _read(changed).model == new:
            return changed
    tree = _read_fields(body)  # the field or its name is spelled with escapes
    tree["model"] = msgspec.Raw(quoted)
    return msgspec.json.encode(tree)
