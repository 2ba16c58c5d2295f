"""Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab

from conftest import NETWORK, SLOW

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
    "one": "ab.run(slow, progress=begun)",
    "record": "begun(0, 1); ab._sweep._of('slow', {}, slow, None).record(0, 1, 0, 'events')",
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


FORK = """
import os
import sys
import anabranch as ab
network = ab.Scenario.from_toml(sys.argv[1])
before = ab.run(network, runs=4).to_ipc()
child = os.fork()
if child == 0:
    # Its parent's threads are not here.
    os._exit(0 if ab.run(network, runs=4).to_ipc() == before else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ab.run(network, runs=4).to_ipc() == before)
"""


def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    command = [sys.executable, "-c", FORK, NETWORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "0 True\n", done.stderr


def test_a_progress_function_stops_one_run() -> None:
    class Enough(Exception):
        pass

    def stop(made: int, total: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        ab.run(ab.Scenario.from_toml(SLOW), progress=stop)
