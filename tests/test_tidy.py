"""Style is a test: the limits of the house, and the layers. Lower a limit when the code allows; never raise one."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "withstand"
FILES = sorted(SOURCE.rglob("*.py"))

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 6
OPTIONS_MAX = 12
AGENTS_LINES_MAX = 80
DECISION_WORDS_MAX = 600

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(path: Path) -> Iterator[Function]:
    return (n for n in ast.walk(tree_of(path)) if isinstance(n, Function))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_open_with_what_they_are_and_stay_small(path: Path) -> None:
    assert ast.get_docstring(tree_of(path)), "a module opens with what it is"
    assert len(path.read_text("utf-8").splitlines()) <= FILE_LINES_MAX


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_functions_do_one_thing(path: Path) -> None:
    for function in functions(path):
        where = f"{name_of(path)}:{function.lineno} {function.name}"
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= FUNCTION_LINES_MAX, where
        if not _is_command(function):
            count = len(function.args.args) + len(function.args.kwonlyargs) - _bound(function)
            assert count <= PARAMETERS_MAX, where


def _bound(function: Function) -> bool:
    return bool(function.args.args) and function.args.args[0].arg in {"self", "cls"}


def _is_command(function: Function) -> bool:
    return any("command" in ast.unparse(d) for d in function.decorator_list)


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").glob("*.py")), ids=name_of)
def test_a_verb_has_few_options_of_its_own(path: Path) -> None:
    for function in functions(path):
        if _is_command(function):
            own = [d for d in function.decorator_list if ast.unparse(d).startswith("click.option")]
            assert len(own) <= OPTIONS_MAX, f"{name_of(path)} {function.name}"


def test_median_function_is_short() -> None:
    bodies = sorted((f.end_lineno or 0) - f.body[0].lineno + 1 for path in FILES for f in functions(path))
    assert bodies[len(bodies) // 2] <= 8


def test_layers_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_public_name_of_a_package_is_documented_once_in_the_design() -> None:
    design = (ROOT / "DESIGN.md").read_text("utf-8")
    packages = [p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists()]
    missing = [p for p in packages if f"`{p}`" not in design]
    assert not missing


def test_agents_md_stays_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) <= AGENTS_LINES_MAX


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=name_of)
def test_decisions_are_short_and_numbered(path: Path) -> None:
    assert re.match(r"\d{3}-[a-z0-9-]+\.md$", path.name)
    assert len(path.read_text("utf-8").split()) <= DECISION_WORDS_MAX


def test_no_place_for_later() -> None:
    for path in FILES:
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", path.read_text("utf-8")), name_of(path)


def test_no_document_waits_for_figures() -> None:
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        assert not re.search(r"%[A-Z]{2,}%|\b(TODO|FIXME|XXX)\b", path.read_text("utf-8")), name_of(path)


def test_percents_are_written_by_one_helper() -> None:
    for path in FILES:
        assert not re.search(r":[<>]?\d*\.\d%}", path.read_text("utf-8")), name_of(path)


def test_the_core_imports_no_extra() -> None:
    extras = "{'numpy', 'torch', 'tiktoken', 'yaml'}"
    code = f"import sys, withstand.cli, withstand.app; print(sorted({extras} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
