"""Types: the package and its tests are strictly typed, and the stub says what the compiled part has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

PACKAGE = ROOT / "crates/python"


def checked(place: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def mypy(*files: str, place: Path) -> None:
    # A cache that outlives the run: what has not changed is not read again.
    cache = Path(sys.prefix) / ".mypy_cache"
    checked(place, "mypy", "--strict", "--cache-dir", str(cache), *files)


def test_mypy_strict() -> None:
    mypy("python/anabranch", "tests", place=PACKAGE)


IDIOMS = """
import anabranch as ab

result = ab.run("network.toml", runs=3)
mean: float = result.metrics["latency_s"].mean
ab.plot.compare(result, result, "latency_s")
for row in result:
    print(row["seed"], mean)
"""


def test_what_users_write_is_typed(tmp_path: Path) -> None:
    """By itself: what another module imports would be known as well."""
    (tmp_path / "idioms.py").write_text(IDIOMS)
    mypy("idioms.py", place=tmp_path)


def test_the_stub_is_that_of_the_compiled_part(tmp_path: Path) -> None:
    from anabranch import _anabranch

    # By themselves: whoever reads the whole package reads matplotlib too.
    stub, compiled = PACKAGE / "python/anabranch/_anabranch.pyi", Path(_anabranch.__file__ or "")
    for file in (stub, compiled):
        shutil.copy(file, tmp_path)
    checked(tmp_path, "mypy.stubtest", "_anabranch")
