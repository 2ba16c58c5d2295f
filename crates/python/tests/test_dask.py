"""Past one machine: Dask distributed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import anabranch as ab

# A worker that is killed complains.
pytestmark = pytest.mark.filterwarnings("ignore")


@contextmanager
def two_workers() -> Iterator[Client]:
    """Two worker processes with a thread each."""
    cluster: Any = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    client: Any = Client(cluster)  # type: ignore[no-untyped-call]
    with cluster, client:
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A cluster for all tests that leave its workers alive: it takes seconds to start."""
    with two_workers() as client:
        yield client


@pytest.fixture
def mortal() -> Iterator[Client]:
    """A cluster whose workers may be killed."""
    with two_workers() as client:
        yield client


def pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


def test_a_killed_worker_costs_no_row_and_doubles_none(network: ab.Scenario, mortal: Client, tmp_path: Path) -> None:
    spec = {
        "scenario": network.set("transfer.file.bytes", "100 kB"),
        "seeds": [1, 2],
        "runs": 150,
        "grid": {"link.cable.loss": [0.0, 0.02, 0.1]},
    }
    local = ab.sweep(spec, jobs=1, progress=False)
    before = pids(mortal)
    assert len(before) == 2
    killed: list[int] = []
    seen: list[tuple[int, int]] = []

    def kill(made: int, total: int) -> None:
        seen.append((made, total))
        if not killed:
            killed.append(before[0])
            os.kill(before[0], signal.SIGKILL)

    far = ab.sweep(spec, tmp_path, client=mortal, progress=kill)
    assert seen[0][0] < seen[-1][0] == 900, "the worker was killed on the way"
    assert killed[0] not in pids(mortal)
    assert far.missing == 0
    assert far.to_ipc() == local.to_ipc()
    for result, name in ((local, "local"), (far, "far")):
        result.write_parquet(tmp_path / name)
    assert (tmp_path / "far").read_bytes() == (tmp_path / "local").read_bytes()
    # What came back was kept.
    made: list[tuple[int, int]] = []
    again = ab.sweep(spec, tmp_path, progress=lambda *count: made.append(count))
    assert made[-1] == (0, 0)
    assert again.to_ipc() == local.to_ipc()


def test_enough_runs_shards_errors_and_stopping(network: ab.Scenario, client: Client, tmp_path: Path) -> None:
    enough = {
        "scenario": network,
        "grid": {"link.cable.loss": [0.0, 0.05, 0.3]},
        "enough": {"metric": "transfer.file.latency_s", "width": "60 %", "min": 4, "max": 40},
    }
    local = ab.sweep(enough, progress=False)
    assert ab.sweep(enough, client=client, progress=False).to_ipc() == local.to_ipc()

    grid = {"scenario": network, "runs": 6}
    ab.sweep(grid, tmp_path / "shards", shard=(1, 2), progress=False)
    far = ab.sweep(grid, tmp_path / "shards", shard=(2, 2), client=client, progress=False)
    assert far.to_ipc() == ab.sweep(grid, progress=False).to_ipc()

    # A worker knows an experiment by its name and parameters.
    experiment = {"experiment": "dtc", "runs": 10, "set": {"segments": 20}, "grid": {"loss": [0, 0.05], "hops": [2, 4]}}
    far = ab.sweep(experiment, tmp_path / "experiment", client=client, progress=False)
    assert (len(far), far.missing) == (40, 0)
    assert far.to_ipc() == ab.sweep(experiment, progress=False).to_ipc()
    given = {"segments": 20, "loss": [0, 0.05]}
    assert ab.lab.rows("dtc", given, runs=5, client=client).to_ipc() == ab.lab.rows("dtc", given, runs=5).to_ipc()

    # Whoever stops it leaves nothing to do on the cluster, and what has come is kept.
    def stop(made: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ab.sweep({**grid, "runs": 500}, tmp_path / "stopped", client=client, progress=stop)
    idle = threading.Event()
    for _ in range(600):
        processing: Any = client.processing()  # type: ignore[no-untyped-call]
        if not any(processing.values()):
            break
        idle.wait(0.1)
    assert not any(processing.values())
    assert len(ab.sweep(grid, tmp_path / "stopped", client=client, progress=False)) >= 6


def test_a_worker_of_another_version_is_refused(network: ab.Scenario, client: Client) -> None:
    from anabranch import _anabranch as native
    from anabranch import _dask

    made = native.Sweep.of("x", "runs = 1", network._native, ".", None)
    made.begin((1, 1))
    taken = made.take(1)
    assert taken is not None
    number, letter, runs = taken
    assert runs == 1
    other = letter.replace(f'"version":"{ab.__version__}"', '"version":"0.0.0"')
    assert other != letter
    future: Any = client.submit(_dask.make, other)
    with pytest.raises(ab.Error, match="the job is of version 0.0.0") as caught:
        future.result()
    assert caught.value.hint is not None
    with pytest.raises(ab.Error, match="a worker has sent other rows"):
        made.put(number, b"nonsense")


def test_policies_written_in_python_go_to_the_workers(network: ab.Scenario, client: Client) -> None:
    from newreno import NewReno

    client.run(sys.path.insert, 0, str(Path(__file__).parent))
    spec = {
        "scenario": network.with_congestion("mine", NewReno),
        "runs": 30,
        "grid": {"tcp.default.congestion": ["newreno", "mine"]},
    }
    local = ab.sweep(spec, progress=False)
    assert local["latency_s"][:30] == local["latency_s"][30:]
    assert ab.sweep(spec, client=client, progress=False).to_ipc() == local.to_ipc()


def test_what_a_policy_raises_on_a_worker_is_raised_here(network: ab.Scenario, client: Client) -> None:
    class Raises(ab.Controller):
        def on_ack(self, now: float, view: ab.policy.View, acked: int) -> None:
            raise ZeroDivisionError("on a worker")

    scenario = network.with_congestion("mine", Raises).set("tcp.default.congestion", "mine")
    with pytest.raises(ZeroDivisionError, match="on a worker"):
        ab.sweep({"scenario": scenario, "runs": 3}, client=client, progress=False)
