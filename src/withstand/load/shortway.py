r"""The short way of nearly every token: a read that is one chunk, which holds one event, which holds one JSON object.

``1f\r\ndata: {…}\n\n\r\n``, where nothing was pending before. Then neither the HTTP parser nor the SSE parser learns
anything from it, and it need not pass through them: that is most of what a token costs. Everything else goes the long
way. It knows the look of those bytes, and keeps no state.
"""

_SIZES = {b"%x" % size: size for size in range(1, 4096)}
"""The usual sizes of a chunk, as they are written."""
_SIZE_CHARS_MAX = 3


def lone_object(data: bytes) -> bytes | None:
    """The JSON object, if that is all that there is."""
    end = data.find(b"\r\n", 1, _SIZE_CHARS_MAX + 2)
    if _SIZES.get(data[:end]) != len(data) - end - 4 or not data.startswith(b"data: {", end + 2):
        return None
    if not data.endswith(b"}\n\n\r\n") or data.find(b"\n", end + 2) != len(data) - 4:
        return None
    return None if data.find(b"\r", end + 2) != len(data) - 2 else data[end + 8 : -4]
