"""Results that outlive the process that made them."""

from __future__ import annotations

import copy
import pickle
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import anabranch as ab

from conftest import GRID


@pytest.fixture
def result(network: ab.Scenario) -> ab.Result:
    return ab.sweep({"scenario": network, **GRID}, progress=False)


def assert_same(again: ab.Result, result: ab.Result) -> None:
    assert isinstance(again, ab.Result)
    assert again.to_ipc() == result.to_ipc()
    assert (again.name, again.units) == (result.name, result.units)
    assert (again.parameters, again.varied) == (result.parameters, result.varied)
    assert (again.missing, again.unmet) == (result.missing, result.unmet)
    assert list(again.rows()) == list(result.rows())
    assert list(again.means("latency_s").rows()) == list(result.means("latency_s").rows())


def test_a_result_survives_pickle_and_copy(result: ab.Result) -> None:
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
        assert_same(again, result)
    means = pickle.loads(pickle.dumps(result.means("latency_s")))
    assert means["mean"] == result.means("latency_s")["mean"]
    metrics = pickle.loads(pickle.dumps(result.metrics))
    assert metrics["latency_s"] == result.metrics["latency_s"]


def test_tables_of_experiments_and_models_survive_pickle() -> None:
    points = ab.lab.run("dtc", segments=20, loss=[0, "5%"], runs=2)
    again = pickle.loads(pickle.dumps(points))
    assert (again.varied, again.metrics, again.experiment) == (points.varied, points.metrics, points.experiment)
    assert again.to_ipc() == points.to_ipc()
    plan = ab.plan.set(gateways=3)
    assert list(pickle.loads(pickle.dumps(plan))) == list(plan)


def test_a_result_is_read_back_from_parquet(result: ab.Result, tmp_path: Path) -> None:
    result.write_parquet(tmp_path / "rows.parquet")
    assert_same(ab.read_parquet(tmp_path / "rows.parquet"), result)
    # And written again it is the same file.
    ab.read_parquet(tmp_path / "rows.parquet").write_parquet(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "rows.parquet").read_bytes()


def test_what_is_missing_is_known_of_a_file_too(network: ab.Scenario, tmp_path: Path) -> None:
    part = ab.sweep({"scenario": network, **GRID}, shard="1/3", progress=False)
    part.write_parquet(tmp_path / "part.parquet")
    assert ab.read_parquet(tmp_path / "part.parquet").missing == part.missing == 32
    enough = {"metric": "transfer.file.latency_s", "width": "0.001 %", "min": 2, "max": 3}
    unmet = ab.sweep({"scenario": network, "enough": enough}, progress=False)
    unmet.write_parquet(tmp_path / "unmet.parquet")
    assert ab.read_parquet(tmp_path / "unmet.parquet").unmet == unmet.unmet == [0]


def test_more_rows_than_a_batch(network: ab.Scenario, tmp_path: Path) -> None:
    result = ab.run(network.set("transfer.file.bytes", "1 B"), runs=9000)
    result.write_parquet(tmp_path / "many.parquet")
    assert ab.read_parquet(tmp_path / "many.parquet").to_ipc() == result.to_ipc()
    assert pickle.loads(pickle.dumps(result)).to_ipc() == result.to_ipc()


def test_the_program_s_tables_are_results(program: Path, network: ab.Scenario, tmp_path: Path) -> None:
    (tmp_path / "cable.toml").write_text(network.to_toml())
    spec = tmp_path / "losses.toml"
    spec.write_text('scenario = "cable.toml"\nruns = 3\nseeds = [4, 2]\n[grid]\n"link.cable.loss" = [0.0, 0.1]\n')
    out = tmp_path / "rows"
    subprocess.run([str(program), "sweep", str(spec), "--out", str(out)], check=True, capture_output=True)
    ours = ab.sweep(spec, progress=False)
    for path in (out, out / "table.parquet"):
        assert_same(ab.read_parquet(path), ours)


def test_files_that_are_no_results_are_refused(result: ab.Result, tmp_path: Path) -> None:
    with pytest.raises(ab.Error, match="cannot read it: No such file") as caught:
        ab.read_parquet(tmp_path / "nowhere.parquet")
    assert caught.value.place == str(tmp_path / "nowhere.parquet")
    (tmp_path / "text").write_text("point,seed\n0,1\n")
    with pytest.raises(ab.Error, match="cannot read the table") as caught:
        ab.read_parquet(tmp_path / "text")
    assert caught.value.hint is not None and caught.value.place == str(tmp_path / "text")
    whole = tmp_path / "whole.parquet"
    result.write_parquet(whole)
    (tmp_path / "cut").write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(ab.Error, match="cannot read the table"):
        ab.read_parquet(tmp_path / "cut")
    result.means("latency_s").write_parquet(tmp_path / "means.parquet")
    with pytest.raises(ab.Error, match="no rows of runs"):
        ab.read_parquet(tmp_path / "means.parquet")
    pd.DataFrame({"a": pd.array([1], dtype="int8")}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ab.Error, match="the column `a` has the type Int8"):
        ab.read_parquet(tmp_path / "other.parquet")
