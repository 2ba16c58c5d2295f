"""Runs, tables, statistics, and what they share with the program."""

from __future__ import annotations

import json
import math
import subprocess
import threading
import time
from pathlib import Path

import pytest

import anabranch as ab

from conftest import ROOT, SLOW


def test_a_row_for_each_run_with_units(network: ab.Scenario) -> None:
    result = ab.run(network, runs=5, seed=3)
    assert len(result) == 5
    assert result["run"] == [0, 1, 2, 3, 4]
    assert set(result["seed"]) == {3}
    assert set(result["scenario_hash"]) == {network.hash}
    assert set(result["version"]) == {ab.__version__}
    latency = result.metrics["latency_s"]
    assert latency.n == 5
    assert latency.ci95 is not None
    assert latency.min < latency.mean < latency.max
    assert result.units["transfer.file.latency_s"] == "s"
    assert result.unit("goodput_bit_per_s") == "bit/s"
    assert result.unit("run") == "1"
    assert result["latency_s"] == result["transfer.file.latency_s"]
    assert "transfer.file.latency_s" in list(result.metrics)
    assert "run" not in list(result.metrics)
    assert "transfer.file.latency_s: 0." in repr(result.metrics)
    assert "<th>transfer.file.latency_s [s]</th>" in result._repr_html_()
    first = next(result.rows())
    assert first["run"] == 0
    assert first["transfer.file.delivered"] == 1.0


def test_a_call_costs_little_beside_its_run(network: ab.Scenario) -> None:
    """Half a millisecond of processor time, three times that on a machine with other work; ten runs of one call tell what a run takes."""

    def cost(runs: int) -> float:
        best = math.inf
        for _ in range(30):
            began = time.process_time()
            for _ in range(10):
                ab.run(network, runs=runs, jobs=1)
            best = min(best, (time.process_time() - began) / 10)
        return best

    one, more = cost(1), cost(50)
    assert one - (more - one) / 49 < 1.5e-3


def test_the_scenario_s_own_seed_counts_if_none_is_given(network: ab.Scenario) -> None:
    assert ab.run(network).to_ipc() == ab.run(network, seed=7).to_ipc()
    assert ab.run(network, runs=3)["latency_s"] != ab.run(network, runs=3, seed=8)["latency_s"]


@pytest.mark.parametrize("file", ["three-gateways.toml", "three-hops-radio.toml"])
def test_runs_are_those_of_the_program(file: str, program: Path) -> None:
    path = ROOT / "scenarios" / file
    command = [str(program), "run", str(path), "--runs", "3", "--seed", "5", "--json", "--set"]
    transfer = ab.Scenario.from_file(path).transfer[0].name
    out = subprocess.run([*command, f"transfer.{transfer}.bytes=5 kB"], capture_output=True, check=True).stdout
    said = [json.loads(line) for line in out.splitlines()]
    scenario = ab.Scenario.from_file(path).set(f"transfer.{transfer}.bytes", "5 kB")
    result = ab.run(scenario, runs=3, seed=5)
    assert [one["hash"] for one in said] == result["scenario_hash"]
    for one, row in zip(said, result.rows(), strict=True):
        assert {name: metric["mean"] for name, metric in one["metrics"].items()} == {
            name: value for name, value in row.items() if name in set(result.metrics)
        }
        units = {name: metric["unit"] for name, metric in one["metrics"].items()}
        assert units == {name: result.unit(name) for name in result.metrics}


def test_the_best_number_of_gateways_is_the_model_s(gateways: ab.Scenario, program: Path, tmp_path: Path) -> None:
    asked = gateways.set("transfer.update.gateways", "best")
    file = tmp_path / "best.toml"
    file.write_text(asked.to_toml())
    out = subprocess.run([str(program), "run", str(file), "--json"], capture_output=True, check=True).stdout
    metrics = json.loads(out)["metrics"]
    assert ab.run(asked)["latency_s"] == [metrics["transfer.update.latency_s"]["mean"]]
    assert ab.run(asked)["sessions"] == [metrics["transfer.update.sessions"]["mean"]]


def test_own_axes_are_columns(network: ab.Scenario) -> None:
    text = network.to_toml() + '\n[sweep]\n"link.cable.loss" = [0.0, 0.1]\n'
    result = ab.run(ab.Scenario.from_toml(text), runs=3)
    assert result.varied == ["link.cable.loss"]
    assert result["link.cable.loss"] == [0.0] * 3 + [0.1] * 3
    means = result.means("latency_s")
    assert means["n"] == [3, 3]
    assert means["mean"][0] < means["mean"][1]
    assert means.unit("ci95") == "s"


def test_other_threads_go_on_while_runs_are_made() -> None:
    """A run that takes longer than the test holds nobody up, neither the interpreter nor another run."""
    slow, ended = ab.Scenario.from_toml(SLOW), threading.Event()
    seen = threading.Event()

    def watch(made: int, total: int) -> None:
        seen.set()
        if ended.is_set():
            raise RuntimeError("enough")

    def endless() -> None:
        with pytest.raises(RuntimeError, match="enough"):
            ab.run(slow, progress=watch, jobs=1)

    threads = [threading.Thread(target=endless) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert seen.wait(60)
        # Both are under way; this thread has the interpreter, and a third run comes to its end.
        assert sum(range(100_000)) == 4_999_950_000
        assert len(ab.run(ab.Scenario.from_file(ROOT / "scenarios/three-gateways.toml"))) == 1
        assert all(thread.is_alive() for thread in threads)
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_more_jobs_than_cores_are_as_many_as_cores(network: ab.Scenario) -> None:
    expected = ab.run(network, runs=3).to_ipc()
    for jobs in (10**9, 10**30):
        assert ab.run(network, runs=3, jobs=jobs).to_ipc() == expected


def test_metrics_are_asked_for_by_name(network: ab.Scenario) -> None:
    metrics = ab.run(network, runs=3).metrics
    assert "transfer.file.latency_s" in metrics
    assert "latency_s" in metrics
    assert metrics.get("latency_s") == metrics["transfer.file.latency_s"]
    # `seed` is a column, and a part of the name ends several.
    for no_metric in ("zzz", "seed", "scenario_hash", "packets", 7):
        assert no_metric not in metrics
        assert metrics.get(no_metric, "none") == "none"  # type: ignore[arg-type]
    with pytest.raises(ab.Error, match="`seed` is no metric"):
        metrics["seed"]
    assert metrics["latency_s"].mean > 0
    none = ab.run(network.set("stop", "1 ms"), runs=2).metrics["latency_s"]
    assert (none.n, none.ci95) == (0, None)
    assert math.isnan(none.mean)


def test_a_misspelt_end_of_a_name_is_understood(network: ab.Scenario) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.run(network).metrics["latncy_s"]
    assert caught.value.hint == "did you mean `transfer.file.latency_s`?"


def test_errors_of_runs(network: ab.Scenario, tmp_path: Path) -> None:
    with pytest.raises(ab.Error, match="`runs` is 0"):
        ab.run(network, runs=0)
    with pytest.raises(ab.Error, match="`jobs` is -1"):
        ab.run(network, jobs=-1)
    for seed in (-1, 2**63):
        with pytest.raises(ab.Error, match=f"`seed` is {seed}"):
            ab.run(network, seed=seed)
    for wrong in ({"runs": 5.0}, {"seed": 1.5}, {"jobs": 1.5}):
        with pytest.raises(TypeError):
            ab.run(network, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ab.Error, match="anabranch emulate"):
        ab.run(ROOT / "scenarios/two-tun-ends.toml")
    result = ab.run(network)
    with pytest.raises(ab.Error) as caught:
        result["latency"]
    assert caught.value.hint == "did you mean `transfer.file.latency_s`?"
    with pytest.raises(ab.Error) as caught:
        result["packets"]
    assert caught.value.message == "`packets` may be several columns"
    with pytest.raises(ab.Error, match="cannot write it"):
        result.write_csv(tmp_path / "nowhere" / "table.csv")


def test_statistics_are_those_of_the_laboratory() -> None:
    """Student's sleep data, first drug: mean 0.75, s = 1.789, t(9) = 2.262."""
    found = ab.summary([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, None, 0.0, 2.0])
    assert found is not None
    assert found[:2] == pytest.approx((10, 0.75))
    assert found.ci95 == pytest.approx(1.2797827, rel=1e-5)
    assert ab.summary([]) is None
    assert ab.summary([3.5]) == (1, 3.5, None, 3.5, 3.5)
    with pytest.raises(ab.Error, match="no finite value"):
        ab.summary([1.0, float("nan")])
