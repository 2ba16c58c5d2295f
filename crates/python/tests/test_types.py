"""Types: the package and its tests are strictly typed, and the stub says what the compiled part has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "crates/python"


def checked(place: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def mypy(*files: str, place: Path) -> None:
    # A cache that outlives the run: what has not changed is not read again. The package has one of
    # its own: elsewhere mypy finds the installed copy, and the two would replace each other.
    cache = Path(sys.prefix) / (".mypy_cache" if place == PACKAGE else ".mypy_cache_users")
    checked(place, "mypy", "--strict", "--cache-dir", str(cache), *files)


def test_mypy_strict() -> None:
    mypy("python/anabranch", "tests", place=PACKAGE)


IDIOMS = """
import functools

import anabranch as ab

result = ab.run("network.toml", runs=3)
mean: float = result.metrics["latency_s"].mean
ab.plot.compare(result, result, "latency_s")
for row in result:
    print(row["seed"], mean)


class Mine(ab.Controller):
    def __init__(self, start: ab.policy.Start, gain: float = 1.0) -> None:
        super().__init__(start)
        self.gain = gain

    def on_ack(self, now: float, view: ab.policy.View, acked: int) -> None:
        self.cwnd += self.gain * view.mss * acked / self.cwnd


class First(ab.Scheduler):
    def pick(self, demand: ab.policy.Demand, paths: list[ab.policy.Subflow]) -> ab.policy.Pick:
        return next((path.index for path in paths if path.takes(demand.unsent)), None)


scenario = ab.Scenario.from_file("network.toml", congestion={"mine": Mine}, schedulers={"first": First})
scenario.with_congestion("double", functools.partial(Mine, gain=2.0)).with_scheduler("last", First)
"""
WRONG = """
import anabranch as ab


class Mine(ab.Controller):
    def on_ack(self, now: str) -> None:
        self.cwnd = "big"


ab.Scenario.from_file("network.toml").with_congestion("mine", int)
"""


def test_what_users_write_is_typed(tmp_path: Path) -> None:
    """By itself: what another module imports would be known as well."""
    (tmp_path / "idioms.py").write_text(IDIOMS)
    (tmp_path / "controller.py").write_text((ROOT / "docs/examples/controller.py").read_text())
    mypy("idioms.py", "controller.py", place=tmp_path)


def test_mistakes_in_policies_are_found_by_types(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    with pytest.raises(AssertionError) as caught:
        mypy("wrong.py", place=tmp_path)
    said = str(caught.value)
    assert all(code in said for code in ("[override]", "[assignment]", "[arg-type]")), said


def test_the_stub_is_that_of_the_compiled_part(tmp_path: Path) -> None:
    from anabranch import _anabranch

    # By themselves: whoever reads the whole package reads matplotlib too.
    stub, compiled = PACKAGE / "python/anabranch/_anabranch.pyi", Path(_anabranch.__file__ or "")
    for file in (stub, compiled):
        shutil.copy(file, tmp_path)
    checked(tmp_path, "mypy.stubtest", "_anabranch")
