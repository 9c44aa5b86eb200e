"""The core stays small: what `pip install .` brings into an empty environment."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE_BYTES_MAX = 60 << 20
CORE_PACKAGES_MAX = 14


def test_the_core_is_small_and_runs(tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--target", str(target)]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraints, str(ROOT)], check=True, capture_output=True)
    packages = {path.name.partition("-")[0] for path in target.glob("*.dist-info")}
    assert len(packages) <= CORE_PACKAGES_MAX, packages
    assert not packages & {"torch", "numpy", "pydantic"}
    assert sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) < CORE_BYTES_MAX
    program = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(target)!r}); import withstand.cli as c; c.main()",
    ]
    done = subprocess.run([*program, "schema"], capture_output=True, text=True, check=True)
    assert '"num_warmups"' in done.stdout
