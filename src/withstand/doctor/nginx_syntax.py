"""nginx's configuration files as a tree of directives. Pure: included files come in through a function."""

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from withstand.errors import UsageError

Include = Callable[[str], list[tuple[str, str]]]
"""A pattern as it is written → the (name, text) of each file."""
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<mark>[{};])
    |"(?P<double>(?:\\.|[^"\\])*)"
    |'(?P<single>(?:\\.|[^'\\])*)'
    |(?P<word>(?:\\.|\$\{[^}]*\}|[^\s{};"'\\])(?:\\.|\$\{[^}]*\}|[^\s{};\\])*)""",
    re.VERBOSE | re.DOTALL,
)
_LUA = re.compile(
    r"""--\[(?P<n>=*)\[.*?\](?P=n)\] | --[^\n]* | \[(?P<m>=*)\[.*?\](?P=m)\]
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | (?P<mark>[{}]) | .""",
    re.VERBOSE | re.DOTALL,
)
_LUA_BLOCK = "_by_lua_block"
_DEPTH_MAX = 40
"""Of files in files."""
_NEST_MAX = 100
"""Of blocks in blocks."""


class Directive(Struct, frozen=True):
    """``name args…;`` or ``name args… { block }``."""

    name: str
    args: tuple[str, ...]
    file: str
    line: int
    block: tuple["Directive", ...] | None = None

    @property
    def where(self) -> str:
        """``site.conf:12``."""
        return f"{self.file}:{self.line}"


class _Token(Struct, frozen=True):
    text: str
    line: int
    mark: bool = False


def parsed(file: str, text: str, include: Include, depth: int = 0) -> tuple[Directive, ...]:
    """All directives of a file, those of included ones in their place.

    Raises:
        UsageError: it is no such file; the text names the line.
    """
    if depth > _DEPTH_MAX:
        raise UsageError(f"{file} is included by what it includes.")
    tokens = list(_tokens(file, text))
    found, rest = _block(file, tokens, 0, include, depth)
    if rest < len(tokens):
        raise UsageError(f"{file}:{tokens[rest].line}: a }} that closes nothing; is it nginx's configuration?")
    return found


def _tokens(file: str, text: str) -> Iterator[_Token]:
    at, line, word = 0, 1, ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UsageError(f"{file}:{line}: a quote that does not end; is it nginx's configuration?")
        kind = match.lastgroup
        end = match.end()
        if kind == "mark":
            yield _Token(match["mark"], line, mark=True)
            if match["mark"] == "{" and word.endswith(_LUA_BLOCK):
                end = _lua_end(text, end)
            word = ""
        elif kind != "space":
            yield _Token(match[kind or 0], line)
            word = match[kind or 0]
        at, line = end, line + text.count("\n", at, end)


def _lua_end(text: str, at: int) -> int:
    """Where the brace stands that ends a block of Lua, whose comments and strings may hold others."""
    depth = 1
    for match in _LUA.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(match["mark"] or "", 0)
        if not depth:
            return match.start()
    return len(text)


def _block(
    file: str, tokens: list[_Token], at: int, include: Include, depth: int, nest: int = 0
) -> tuple[tuple[Directive, ...], int]:
    """The directives from ``at`` on to the end of their block, and where that is."""
    if nest > _NEST_MAX:
        raise UsageError(f"{file}:{tokens[at - 1].line}: more than {_NEST_MAX} blocks in one another; is it nginx's?")
    found: list[Directive] = []
    while at < len(tokens) and tokens[at] != _Token("}", tokens[at].line, mark=True):
        words, at = _words(file, tokens, at)
        name, args, line = words[0].text, tuple(word.text for word in words[1:]), words[0].line
        block: tuple[Directive, ...] | None = None
        if tokens[at].text == "{":
            block, at = _block(file, tokens, at + 1, include, depth, nest + 1)
            if at >= len(tokens):
                raise UsageError(f"{file}:{line}: the block of {name} does not end.")
        at += 1
        if name == "include" and args:
            found += [each for other, text in include(args[0]) for each in parsed(other, text, include, depth + 1)]
        else:
            found.append(Directive(name, args, file, line, block))
    return tuple(found), at


def _words(file: str, tokens: list[_Token], at: int) -> tuple[list[_Token], int]:
    """The words up to a mark, and where that is."""
    start = at
    while at < len(tokens) and not tokens[at].mark:
        at += 1
    if at == start or at >= len(tokens) or tokens[at].text == "}":
        line = tokens[min(start, len(tokens) - 1)].line
        raise UsageError(f"{file}:{line}: a directive without its end; is it nginx's configuration?")
    return tokens[start:at], at
