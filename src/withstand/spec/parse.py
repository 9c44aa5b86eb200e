"""Text → Plan. One path for files, options and ``--set``, hence one form of error."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from withstand.errors import SpecError, UsageError, extra
from withstand.hints import hinted, url_in
from withstand.spec.matrix import Origin, expanded
from withstand.spec.plan import Plan
from withstand.spec.targets import laid_over

_OF = defaultdict(str, stack=" to `withstand run`")
_STAGE_AT = re.compile(r"\$\.stages\[(\d+)\]([^`]*)")


def parse_plan(raw: dict[str, Any]) -> Plan:
    """The typed plan, with one stage for each combination of its lists.

    Raises:
        SpecError: with the path of the field, as ``Expected `float` > 0.0 - at `$.stages[0].arrivals.rate```.
    """
    tree, origins = expanded(laid_over(raw))
    try:
        plan = msgspec.convert(tree, Plan)
    except msgspec.ValidationError as e:
        told = _STAGE_AT.sub(lambda at: _asked_at(at, origins), hinted(str(e), Plan))
        raise SpecError(f"The plan is wrong: {told}. `withstand schema` prints what is allowed.") from None
    return _with_names(plan, origins)


def _asked_at(at: re.Match[str], origins: Sequence[Origin]) -> str:
    """The path in the file of what was found wrong in a stage that was made of it."""
    return origins[int(at[1])].path(at[2]) if origins else at[0]


def plan_from_file(path: Path) -> dict[str, Any]:
    """The raw tree of a TOML, YAML or JSON plan.

    Raises:
        UsageError: missing, unreadable, or no such syntax.
    """
    return tree_from_file(path, "plan")


def tree_from_file(path: Path, what: str) -> dict[str, Any]:
    """The raw tree of a TOML, YAML or JSON file; ``what`` it is, for the sentence.

    Raises:
        UsageError: missing, unreadable, or no such syntax.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as e:
        if url := url_in(path):
            raise UsageError(f"{url} is a URL, and no {what}'s file: give it as --base-url {url}{_OF[what]}.") from None
        raise UsageError(f"The {what} {path} cannot be read: {e.strerror}.") from None
    except UnicodeDecodeError as e:
        raise UsageError(f"The {what} {path} is not UTF-8 at byte {e.start}.") from None
    try:
        tree = _parse_text(text, path.suffix)
    except ImportError:
        raise UsageError(f"The {what} {path} is YAML: {extra('yaml')}.") from None
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as e:
        raise UsageError(f"The {what} {path} cannot be parsed: {' '.join(str(e).split())}.") from None
    except RecursionError:
        raise UsageError(f"The {what} {path} is nested too deeply to be a {what}.") from None
    if not isinstance(tree, dict):
        raise UsageError(f"The {what} {path} must be a table of keys, not a {type(tree).__name__}.")
    return tree


def _parse_text(text: str, suffix: str) -> Any:
    if suffix == ".json":
        return msgspec.json.decode(text)
    if suffix in {".yaml", ".yml"}:
        return msgspec.yaml.decode(text)
    return tomllib.loads(text)


def set_path(tree: dict[str, Any], assignment: str) -> None:
    """Apply one ``--set path=value`` to the raw tree; the value is JSON where it parses as such, else text.

    ``stages.0.max_concurrency=4`` reaches into a list.

    Raises:
        UsageError: no ``=``, or the path leads through something that is no table.
    """
    path, equals, value = assignment.partition("=")
    if not equals or not path:
        raise UsageError(f"--set {assignment}: write it as path=value, such as workload.options.input_len=512.")
    *parents, last = path.split(".")
    node: Any = tree
    for part in parents:
        node = _child(node, part, assignment)
    if isinstance(node, list):
        node[_index(node, last, assignment)] = _value(value)
    else:
        node[last] = _value(value)


def _child(node: Any, part: str, assignment: str) -> Any:
    child = node[_index(node, part, assignment)] if isinstance(node, list) else node.setdefault(part, {})
    if not isinstance(child, dict | list):
        raise UsageError(f"--set {assignment}: {part!r} is a value, not a table.")
    return child


def _index(node: list[Any], part: str, assignment: str) -> int:
    if not part.isdecimal() or int(part) >= len(node):
        raise UsageError(f"--set {assignment}: {part!r} is no index of a list of {len(node)}.")
    return int(part)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text


def _with_names(plan: Plan, origins: Sequence[Origin]) -> Plan:
    """Every stage gets a name, and no two the same."""
    seen: set[str] = set()
    stages = []
    for i, stage in enumerate(plan.stages):
        name = stage.name or f"stage-{i + 1}"
        if name in seen:
            at = origins[i].path(".name") if origins else f"$.stages[{i}].name"
            raise SpecError(f"The plan is wrong: the name {name!r} is used twice - at `{at}`.")
        seen.add(name)
        stages.append(msgspec.structs.replace(stage, name=name))
    return msgspec.structs.replace(plan, stages=tuple(stages))
