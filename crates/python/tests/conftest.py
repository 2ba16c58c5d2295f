"""What tests have in common."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

# No window, whoever runs the tests.
os.environ.setdefault("MPLBACKEND", "agg")

import anabranch as ab

ROOT = Path(__file__).resolve().parents[3]

NETWORK = """
name = "cable"
seed = 7
stop = "60 s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "cable"
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "5 ms"
loss = 0.05
[[transfer]]
name = "file"
kind = "tcp"
from = "a"
to = "b"
bytes = "10 kB"
"""
"""A network whose runs take about a millisecond and differ from each other."""

SLOW = """
name = "slow"
stop = "100000 h"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "cable"
from = "a"
to = "b"
rate = "1 Gbit/s"
delay = "1 ms"
[[transfer]]
name = "endless"
kind = "tcp"
from = "a"
to = "b"
"""
"""A network of which one run takes longer than anybody lives."""

GRID = {"runs": 4, "seeds": [3, 1], "grid": {"link.cable.loss": [0.0, "2 %", 0.1], "link.cable.delay": ["5 ms", "20 ms"]}}


@pytest.fixture
def network() -> ab.Scenario:
    return ab.Scenario.from_toml(NETWORK)


@pytest.fixture
def gateways() -> ab.Scenario:
    return ab.Scenario.from_file(ROOT / "scenarios/three-gateways.toml").set("transfer.update.bytes", "20 kB")


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `anabranch`."""
    found = os.environ.get("ANABRANCH_PROGRAM") or shutil.which("anabranch")
    if found is None or not Path(found).exists():
        pytest.skip("SKIPPED: the program anabranch is not there: name it in ANABRANCH_PROGRAM")
    return Path(found)
