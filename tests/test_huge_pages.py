"""Programs on huge pages: what lies on them, that it is given back, and that the program notices nothing else."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.huge_pages import PAGE, Mapping, are_to_be_had, pages_of_code

needs_them = pytest.mark.skipif(not are_to_be_had(), reason="the kernel has no huge pages, or nothing was compiled")

_PROGRAM = """
import os, sys

def kib(what):
    return sum(int(l.split()[1]) for l in open("/proc/self/smaps_rollup") if l.startswith(what + ":"))

def on_huge_pages():
    return kib("AnonHugePages")

print(repr(sys.argv[1:]), __name__)
"""


def _run(
    tmp_path: Path, then: str, *arguments: str, under: tuple[str, ...] = (), **environment: str
) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "program.py").write_text(_PROGRAM + then, "utf-8")
    command = [*under, sys.executable, "-m", "withstand.huge_pages", "program", *arguments]
    path = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[1] / 'src'}"}
    return subprocess.run(command, capture_output=True, text=True, env=path | environment, timeout=60, check=False)


def test_the_program_is_run_as_if_it_were_called_itself(tmp_path: Path) -> None:
    ran = _run(tmp_path, "sys.exit(5)", "--a", "b c")
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, "['--a', 'b c'] __main__\n", "")


def test_who_names_no_module_is_told_so(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-m", "withstand.huge_pages"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (
        1,
        "withstand: Name a module: python -m withstand.huge_pages MODULE ARGUMENT…\n",
    )


@pytest.mark.parametrize("option", ["-v", "-d"])
def test_where_addresses_are_counted_none_are_set_aside(tmp_path: Path, option: str) -> None:
    limited = ("sh", "-c", f'ulimit {option} 650000 && exec "$@"', "sh")
    ran = _run(tmp_path, "print(len(bytearray(300_000_000)))", under=limited)
    assert ran.stdout.endswith("300000000\n"), ran.stderr


@needs_them
def test_what_a_program_keeps_lies_on_huge_pages_unless_they_are_not_wanted(tmp_path: Path) -> None:
    keep = "kept = [(i, str(i), [i] * 100) for i in range(30_000)]; print(on_huge_pages() >= 20 * 1024)"
    assert _run(tmp_path, keep).stdout.endswith("True\n")
    assert _run(tmp_path, keep, WITHSTAND_HUGE_PAGES="off").stdout.endswith("False\n")


@needs_them
def test_the_interpreters_own_code_lies_on_them(tmp_path: Path) -> None:
    ran = _run(tmp_path, "print(open('/proc/self/maps').read())")
    named = [line.split() for line in ran.stdout.splitlines()[1:] if line]
    ours = [
        tuple(int(a, 16) for a in fields[0].split("-")) for fields in named if len(fields) == 5 and fields[1] == "r-xp"
    ]
    assert any(begin % PAGE == 0 and end % PAGE == 0 for begin, end in ours)


@needs_them
def test_what_is_not_kept_is_given_back(tmp_path: Path) -> None:
    ran = _run(
        tmp_path,
        """
before = kib("Rss")
kept = [[i] for i in range(1_000_000)]
most = kib("Rss")
del kept
for i in range(300_000):  # and taken again, and more of it
    str(i)
print(most - before > 60_000, kib("Rss") - before < 20_000)
kept = [[i] for i in range(1_000_000)]
print(kept[777_777] == [777_777], abs(kib("Rss") - most) < 20_000)
""",
    )
    assert ran.stdout.splitlines()[1:] == ["True True", "True True"]


@needs_them
def test_more_than_there_is_room_for_lies_where_it_ever_did(tmp_path: Path) -> None:
    ran = _run(
        tmp_path,
        """
kept = [bytes(400) for _ in range(1_500_000)]  # 600 MB, and there is room for 512
print(sum(map(len, kept)), on_huge_pages() > 400 * 1024)
del kept
print(kib("Rss") < 200_000)
""",
    )
    assert ran.stdout.splitlines()[1:] == ["600000000 True", "True"], ran.stderr


@needs_them
def test_a_deep_stack_is_no_arena(tmp_path: Path) -> None:
    ran = _run(
        tmp_path,
        """
sys.setrecursionlimit(50_000)

def down(n):
    return down(n - 1) + 1 if n else 0

print([down(20_000) for _ in range(3)])
""",
    )
    assert ran.stdout.splitlines()[1:] == ["[20000, 20000, 20000]"], ran.stderr


@needs_them
def test_after_a_fork_what_is_written_is_put_on_them_again(tmp_path: Path) -> None:
    ran = _run(
        tmp_path,
        """
from withstand import huge_pages
kept = [[i] for i in range(200_000)]
sys.stdout.flush()
if not (child := os.fork()):
    for item in kept:
        item[0] = 0
    torn = on_huge_pages()
    huge_pages.settle()
    print(on_huge_pages() > torn + 10 * 1024)
    sys.exit()
os.waitpid(child, 0)
print(kept[-1])
""",
    )
    assert ran.stdout.splitlines()[-2:] == ["True", "[199999]"], ran.stdout + ran.stderr


_RIGHTS = st.sampled_from(["r--p", "r-xp", "rw-p", "---p", "--xp"])
_SIZES = st.integers(1, 2 * PAGE // 4096).map(lambda pages: pages * 4096)


@given(
    begin=st.integers(1, 4096).map(lambda page: page * 4096),
    parts=st.lists(st.tuples(_SIZES, _RIGHTS, st.sampled_from(["/python", "/other", ""])), min_size=1, max_size=9),
    which=st.integers(0, 8),
)
def test_only_pages_of_the_interpreters_file_that_nobody_writes_are_copied(
    begin: int, parts: list[tuple[int, str, str]], which: int
) -> None:
    mappings = []
    for size, rights, file in parts:
        mappings.append(Mapping(begin, begin + size, rights, file))
        begin += size
    asked = mappings[which % len(mappings)]
    pages = pages_of_code(mappings, asked.begin)
    assert all(before[1] <= after[0] for before, after in pairwise(pages))
    for page in pages:
        there = [m for m in mappings if m.begin < page[1] and m.end > page[0]]
        assert page[0] % PAGE == 0
        assert page[1] - page[0] == PAGE
        assert there[0].begin <= page[0]
        assert page[1] <= there[-1].end
        assert {m.file for m in there} == {asked.file} != {""}
        assert any("x" in m.rights for m in there)
        assert all("r" in m.rights and "w" not in m.rights for m in there)


def test_pages_of_a_python_that_debian_built() -> None:
    mappings = [
        Mapping(0x400000, 0x41F000, "r--p", "/usr/bin/python3.11"),
        Mapping(0x41F000, 0x6D2000, "r-xp", "/usr/bin/python3.11"),
        Mapping(0x6D2000, 0x945000, "r--p", "/usr/bin/python3.11"),
        Mapping(0x946000, 0xA85000, "rw-p", "/usr/bin/python3.11"),
    ]
    assert pages_of_code(mappings, 0x500000) == [(0x400000, 0x600000), (0x600000, 0x800000)]
