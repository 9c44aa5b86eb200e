"""Arithmetic by walking a syntax tree: nothing is evaluated, and no number grows beyond a bound."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from withstand.agent.tools.tool import Example, Tool, ToolError

CHARS_MAX = 400
NODES_MAX = 200
BITS_MAX = 2048
"""Of a whole number, on the way too."""
_FACTORIAL_MAX = 200

Number = int | float

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_NAMES: Mapping[str, Number] = {"pi": math.pi, "e": math.e}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (abs, round, min, max)},
    **{f.__name__: f for f in (math.sqrt, math.floor, math.ceil, math.log10, math.log2, math.exp)},
    **{f.__name__: f for f in (math.sin, math.cos, math.tan, math.gcd, math.log)},
}
_WRITTEN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "\u00a0": " "})  # noqa: RUF001


def calculate(expression: str) -> str:
    """The value of an expression, as a text.

    Raises:
        ToolError: it is no arithmetic, has no value, or is too large.
    """
    text = expression.translate(_WRITTEN).replace("^", "**").strip().rstrip("=").strip()
    if len(text) > CHARS_MAX:
        raise ToolError(f"The expression has more than {CHARS_MAX} characters.")
    try:
        tree = ast.parse(text, mode="eval")
        if sum(1 for _ in ast.walk(tree)) > NODES_MAX:
            raise ToolError("The expression has too many parts.")
        return _written(_value(tree.body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(
            f"{text[:80]!r} is no arithmetic that has a value; write like 12 * (3 + 4.5), without units or commas."
        ) from None
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None
    except (OverflowError, TypeError) as e:
        raise ToolError(f"It cannot be computed: {e}.") from None


def calculator() -> Tool:
    """The tool."""

    async def run(expression: str) -> str:
        return calculate(expression)

    return Tool(
        name="calculator",
        purpose="Computes arithmetic exactly: + - * / // % **, parentheses, sqrt, round, min, max.",
        argument="expression",
        meaning="the arithmetic, in digits, for example (31 - 4) * 2.5",
        run=run,
        example=Example(
            question="Add 12 and 30, then halve it.", argument="(12 + 30) / 2", result="21", answer="The result is 21."
        ),
    )


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _bounded(_UNARY[type(op)](_value(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _binary(op, _value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _called(name, [_value(each) for each in args])
        case ast.Tuple():
            raise ToolError("Write numbers without commas.")
    raise ToolError("Only numbers, + - * / // % **, parentheses, and sqrt, round, min, max and the like are known.")


def _binary(op: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(op, ast.Pow):
        if abs(right) > BITS_MAX or (isinstance(left, int) and _bits(left) * abs(right) > BITS_MAX):
            raise ToolError("The power is too large.")
        if left < 0 and not float(right).is_integer():
            raise ToolError("A root of a negative number is no real number.")
    return _bounded(_BINARY[type(op)](left, right))


def _called(name: str, args: list[Number]) -> Number:
    if name == "factorial" and len(args) == 1 and isinstance(args[0], int) and 0 <= args[0] <= _FACTORIAL_MAX:
        return math.factorial(args[0])
    if name not in _FUNCTIONS:
        raise ToolError(f"The function {name} is not known here; there are {', '.join(sorted(_FUNCTIONS))}.")
    if name == "round" and len(args) == 2 and abs(args[1]) > 100:
        raise ToolError("That many digits are not known.")
    return _bounded(_FUNCTIONS[name](*args))


def _bits(value: int) -> int:
    return value.bit_length()


def _bounded(value: Number) -> Number:
    if isinstance(value, int):
        if value.bit_length() > BITS_MAX:
            raise ToolError("The number is too large.")
    elif not math.isfinite(value):
        raise ToolError("The number is too large, or none.")
    return value


def _written(value: Number) -> str:
    """Floats without the noise of their last digits."""
    if isinstance(value, int):
        return str(value)
    shown = float(f"{value:.12g}")
    return str(int(shown)) if shown.is_integer() and abs(shown) < 1e15 else repr(shown)
