"""What the gateway must know of a body, and the one change that it may make: pure. The rest it does not look at."""

import re

import msgspec
from msgspec import Raw, Struct

_NOTHING = Raw()


class Asked(Struct, frozen=True):
    """Read from the body; unknown fields are passed over, and of those that are raw nothing is looked at or copied."""

    model: str
    stream: bool | None = None
    tools: Raw = _NOTHING
    system: Raw = _NOTHING
    instructions: Raw = _NOTHING
    messages: Raw = _NOTHING
    prompt: Raw = _NOTHING
    input: Raw = _NOTHING
    user: Raw = _NOTHING
    metadata: Raw = _NOTHING
    session_id: Raw = _NOTHING
    prompt_cache_key: Raw = _NOTHING

    def prompt_parts(self) -> tuple[Raw, ...]:
        """What the engine reads, in the order in which it does."""
        return self.tools, self.system, self.instructions, self.messages, self.prompt, self.input


_read = msgspec.json.Decoder(Asked).decode
_read_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def read(body: bytes) -> Asked:
    """The fields of a JSON body.

    Raises:
        ValueError: it is no JSON object with a model; the text says what is wrong.
    """
    try:
        return _read(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise ValueError(str(e) if body else "it is empty") from None
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
    tree["model"] = Raw(quoted)
    return msgspec.json.encode(tree)
