"""What stands for the marks that withstand prints where a stream knows only ASCII or Latin-1.

No two verdicts may look alike there; what else such a stream does not know is a question mark.
"""

import codecs
import unicodedata

STAND_INS = "withstand.stand_ins"
"""The name of the error handler."""

_MARKS = {
    "✓": "+",
    "✗": "x",
    "→": "->",
    "▶": ">",
    "⚠": "!",
    "…": "...",
    "·": "-",
    "—": "-",
    "\N{EN DASH}": "-",
    "\N{MINUS SIGN}": "-",
    "\N{MULTIPLICATION SIGN}": "x",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "±": "+/-",
    "µ": "u",
    "“": '"',
    "”": '"',
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
    **dict.fromkeys("─━═╌╍┄┅┈┉╴╶╸╺╼╾", "-"),
    **dict.fromkeys("│┃║╎╏┆┇┊┋╵╷╹╻╽╿", "|"),
}
_OTHER_LINES = range(0x2500, 0x2580)
_OTHER_BLOCKS = range(0x2580, 0x25A0)


def _stand_in(character: str) -> str:
    if ord(character) in _OTHER_LINES:
        other = "+"
    elif ord(character) in _OTHER_BLOCKS:
        other = "#"
    else:
        other = " " if unicodedata.category(character) == "Zs" else "?"
    return _MARKS.get(character, other)


def _encoded(e: UnicodeError) -> tuple[str, int]:
    if not isinstance(e, UnicodeEncodeError):
        raise e
    return "".join(map(_stand_in, e.object[e.start : e.end])), e.end


codecs.register_error(STAND_INS, _encoded)
