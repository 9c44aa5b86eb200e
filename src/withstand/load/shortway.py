r"""The short way of nearly every token: a read that is like one before it in all but the token's text.

``1f\r\ndata: {"id":"c1",…"content":" the"…}\n\n\r\n``: the reads of one stream are mostly the same bytes around
another text. Read in full, by the HTTP parser, the SSE parser and the JSON decoder, they are most of what a token
costs. So the bytes around the text are learnt from a read that took the long way, and compared from then on. By the
grammars of all three, plain characters in a string's place change nothing else; that the string is the output, and
that nothing else in those bytes tells anything, is tried on a reader of its own before it is relied on.

It knows the look of bytes. What they mean is the reader's business, and every other read goes the long way.
"""

import re
from collections.abc import Callable

from withstand.wire import Reply, StreamReader

_SIZE_LINES = {len(line) + size + 2: line for size in range(1, 4096) for line in (b"%x\r\n" % size,)}
"""The line that a chunk begins with, by the chunk's whole length; each length has one at most."""
_TEXT = re.compile(rb'"(?:content|text)": ?"([^"\\\x00-\x1f]+)"')
_NOT_PLAIN = bytes({*b'"\\', *range(0x20), *range(0x7F, 0x100)})
_seen_plain: set[bytes] = set()
"""Texts are tokens, and come again and again; to look one up costs a fifth of looking through it."""
_SEEN_MAX, _TOKEN_BYTES = 1 << 14, 32
_NAMED = re.compile(rb'"(?:id|created)": ?(?:"[^"\\\x00-\x1f]*"|\d+)')
"""What differs from answer to answer, and tells nothing that we read."""
_PROBE = b"a probe of ours"
_tried: set[tuple[object, ...]] = set()
"""Surroundings of texts, without that, which have passed with a reader."""
_TRIED_MAX = 64
_LESSONS = 3
_UNKNOWN = b"\xff"


class ShortWay:
    """What the reads of one answer have in common, as far as it is known."""

    __slots__ = ("_after", "_append", "_before", "_lessons", "_reply", "_skipped", "_wants_text")

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._append = reply.chunk_ns.append
        self._wants_text = True
        self._before = self._after = _UNKNOWN
        self._skipped = 0
        self._lessons = _LESSONS

    @property
    def known(self) -> tuple[bytes, bytes, list[int], list[str], int] | None:
        """What another needs to take it in our place; None = not known yet.

        That is before the text, but for the chunk's first line; behind it; where stamps and texts go; how many
        characters of these are wanted.
        """
        reply = self._reply
        return None if self._after is _UNKNOWN else (self._before, self._after, reply.chunk_ns, reply.texts, reply.room)

    def take(self, data: bytes, stamp_ns: int) -> bool:
        """Count the output of a read that is like the one learnt from; False = read it in full."""
        line = _SIZE_LINES.get(len(data), _UNKNOWN)
        begin = len(line)
        after = self._after
        if not (data.startswith(line) and data.startswith(self._before, begin) and data.endswith(after)):
            return False
        text = data[begin + self._skipped : -len(after)]
        if text not in _seen_plain and not _is_plain(text):
            return False
        if self._wants_text:
            self._reply.add_output(text.decode("ascii"), stamp_ns)
            self._wants_text = self._reply.room > 0
        else:
            self._append(stamp_ns)
        return True

    def learn(self, data: bytes, reader_for: Callable[[Reply], StreamReader]) -> None:
        """From a chunk with one event with output, which began and ended with nothing pending."""
        texts = list(_TEXT.finditer(data)) if self._lessons else []
        if len(texts) != 1:
            return
        self._lessons -= 1
        begin, end = data.find(b"\r\n") + 2, len(data) - 2
        text_begin, text_end = texts[0].span(1)
        before, after = data[begin:text_begin], data[text_end:end]
        if _is_the_output(before, after, reader_for):
            self._before, self._after = before, data[text_end:]
            self._skipped = len(before)


def _is_plain(text: bytes) -> bool:
    plain = bool(text) and text.translate(None, _NOT_PLAIN) == text
    if plain and len(_seen_plain) < _SEEN_MAX and len(text) <= _TOKEN_BYTES:
        _seen_plain.add(text)
    return plain


def _is_the_output(before: bytes, after: bytes, reader_for: Callable[[Reply], StreamReader]) -> bool:
    """Whether a text between these bytes is all that they say."""
    shape = reader_for, _NAMED.sub(b"", before), after
    if shape in _tried:
        return True
    reply = Reply(keep_text=True)
    reader = reader_for(reply)
    reader.feed(before + _PROBE + after, 0)
    passed = reader.idle and reply.is_plain(_PROBE.decode())
    if passed and len(_tried) < _TRIED_MAX:
        _tried.add(shape)
    return passed
