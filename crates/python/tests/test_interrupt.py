"""Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SLOW

BEGIN = """
import signal
import sys
import anabranch as ab
# A shell's job in the background has its children ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
slow = ab.Scenario.from_toml(sys.argv[1])
told = False
def begun(made, total):
    global told
    if not told:
        print("begun", flush=True)
        told = True
try:
    {call}
except KeyboardInterrupt:
    print("stopped", flush=True)
"""

CALLS = {
    "run": "ab.run(slow, runs=4, progress=begun)",
    "sweep": "ab.sweep({'scenario': slow, 'runs': 4}, sys.argv[2], progress=begun)",
    "lab": "ab.lab.run('mptcp', runs=1_000_000, progress=begun)",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_stops_work_that_would_last_for_ever(call: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", BEGIN.format(call=CALLS[call]), SLOW, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "begun\n"
            child.send_signal(signal.SIGINT)
            # The work has no end of its own: whoever does not stop it sits here.
            assert child.wait(60) == 0
            assert child.stdout.read() == "stopped\n"
        finally:
            child.kill()
