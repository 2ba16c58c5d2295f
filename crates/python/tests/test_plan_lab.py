"""Closed forms and experiments, against the program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab


def said(program: Path, *arguments: str) -> list[Any]:
    out = subprocess.run([str(program), *arguments, "--json"], capture_output=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def test_plan_set(program: Path) -> None:
    theirs = said(program, "plan", "set", "--set", "wireless_loss=0.01", "--set", "gateways=5")
    plan = ab.plan.set(wireless_loss=0.01, gateways=5)
    assert plan.facts == {name: theirs[0][name] for name in ("best_gateways", "latency_s")}
    assert plan["latency_s"] == [option["latency_s"] for option in theirs[0]["options"]]
    assert plan["best"].index(True) == plan.facts["best_gateways"] - 1
    assert plan.unit("latency_s") == "s"
    several = ab.plan.set({"gateways": 3, "wireless_rate": ["100kbit/s", "250kbit/s"]})
    assert len(several) == 6
    assert several.facts == {}


def test_plan_csma(program: Path) -> None:
    theirs = said(program, "plan", "csma", "--busy-by-period", "0.9x3,0.1", "--max-be", "6")[0]
    plan = ab.plan.csma([0.9, 0.9, 0.9, 0.1], max_be=6)
    assert plan.facts == {name: theirs[name] for name in plan.facts}
    assert plan["p_reached"] == [stage["p_reached"] for stage in theirs["stages"]]
    assert ab.plan.csma(0.3).facts["p_won"] == said(program, "plan", "csma", "--busy", "0.3")[0]["p_won"]


def test_plan_rtt(program: Path) -> None:
    theirs = said(
        program, "plan", "rtt", "--hops", "2", "--phy", "fsk100,cellular", "--busy", "0.2,0", "--back-rate", "3",
        "--cellular-delay", "30ms",
    )[0]  # fmt: skip
    plan = ab.plan.rtt(2, phy=["fsk100", "cellular"], busy=[0.2, 0.0], back_rate=3, cellular_delay="30 ms")
    assert plan.facts == {name: theirs[name] for name in plan.facts}
    hops = [*theirs["forward"], *theirs["reverse"]]
    assert plan["total_s"] == [hop["total_s"] for hop in hops]
    assert plan["way"] == ["there", "there", "back", "back"]


def test_plan_schedule(program: Path) -> None:
    paths = ["hops=2,busy=0.3,loss=0.02", "rtt=0.5s,first=300ms,next=40ms,cwnd=6"]
    theirs = said(program, "plan", "schedule", "--path", paths[0], "--path", paths[1])[0]
    plan = ab.plan.schedule(
        [{"hops": 2, "busy": 0.3, "loss": 0.02}, {"rtt": "0.5 s", "first": 0.3, "next": 0.04, "cwnd": 6}]
    )
    assert plan.facts == {"packets": theirs["packets"]}
    for name in ("path", "rtt_s", "expected", "packets", "cwnd"):
        assert plan[name] == [path[name] for path in theirs["paths"]]


def test_plan_sockbuf(program: Path) -> None:
    theirs = said(program, "plan", "sockbuf", "--gains", "paper", "--cycles", "300", "--to", "500 kB")[0]
    plan = ab.plan.sockbuf("paper", cycles=300, after="500 kB")
    facts = dict(plan.facts)
    assert facts.pop("roots_abs") == [root["abs"] for root in theirs["roots"]]
    assert facts == {name: theirs[name] for name in facts}
    assert plan["size_bytes"] == theirs["sizes_bytes"]
    assert plan.units == {"time_s": "s", "size_bytes": "B"}


def test_errors_of_plans() -> None:
    with pytest.raises(ab.Error) as caught:
        ab.plan.csma(0.3, max_be=12)
    assert caught.value.hint == "macMaxBE of the standard is 3 to 8: `max_be`"
    with pytest.raises(ab.Error, match="2 values for 3 hops"):
        ab.plan.rtt(3, busy=[0.1, 0.2])
    with pytest.raises(ab.Error, match="unknown PHY `lora`"):
        ab.plan.rtt(1, phy="lora")  # type: ignore[arg-type]
    with pytest.raises(ab.Error) as caught:
        ab.plan.schedule([{"hops": 1}, {"rtt": 1.0}])
    assert caught.value.place == "path 2"
    with pytest.raises(ab.Error) as caught:
        ab.plan.schedule([{"hops": 1, "loss": 2.0}])
    assert caught.value.place == "path 1"
    with pytest.raises(ab.Error, match="gatewys"):
        ab.plan.set(gatewys=3)
    with pytest.raises(ab.Error) as caught:
        ab.plan.sockbuf(before="3 MB")
    assert caught.value.hint is not None
    with pytest.raises(ab.Error, match="`10 m`"):
        ab.plan.rtt(1, cellular_delay="10 m")


@pytest.mark.parametrize(("name", "grid"), [("set", {"gateways": [1, 2]}), ("mptcp", {"nodes": 4})])
def test_lab_runs_are_those_of_the_program(name: str, grid: dict[str, Any], program: Path) -> None:
    sets = [f"{key}={','.join(map(str, v)) if isinstance(v, list) else v}" for key, v in grid.items()]
    options = [part for one in sets for part in ("--set", one)]
    theirs = said(program, "lab", "run", name, "--runs", "2", "--seed", "4", *options)
    seen: list[tuple[int, int]] = []
    points = ab.lab.run(name, grid, runs=2, seed=4, progress=lambda *count: seen.append(count))
    assert len(points) == len(theirs)
    assert seen[-1][0] == seen[-1][1] > 0
    experiment = ab.lab.experiments()[name]
    for row, point in zip(points.rows(), theirs, strict=True):
        for metric in experiment.metrics:
            figures = point["metrics"][metric.name]
            assert [row[metric.name], row[f"{metric.name}.ci95"]] == [figures["mean"], figures["ci95"]]
            assert points.unit(metric.name) == metric.unit
        for metric in experiment.arrays:
            means = point["metrics"][metric.name]["mean"]
            assert [row[f"{metric.name}.{i}"] for i in range(len(means))] == means


def test_lab_knows_its_experiments_and_says_what_is_wrong() -> None:
    found = ab.lab.experiments()
    assert {"set", "dtc", "mptcp", "rdca", "sockbuf"} <= set(found)
    assert any(parameter.name == "gateways" for parameter in found["set"].parameters)
    with pytest.raises(ab.Error) as caught:
        ab.lab.run("sett")
    assert caught.value.hint == "did you mean `set`?"
    with pytest.raises(ab.Error, match="unknown key `gatways`"):
        ab.lab.run("set", gatways=2)
    with pytest.raises(ab.Error, match="`runs` is 0"):
        ab.lab.run("set", runs=0)


def test_rows_of_an_experiment_are_the_runs_of_its_points(tmp_path: Path) -> None:
    given = {"segments": 20, "loss": [0, "5%"], "mode": ["tcp", "dtc"]}
    points = ab.lab.run("dtc", given, runs=3, seed=4)
    found = ab.lab.rows("dtc", given, runs=3, seed=4, out=tmp_path / "rows")
    assert (len(found), found.varied) == (12, ["loss", "mode"])
    means = found.means("data_transmissions", by=["loss", "mode"])
    assert means["mean"] == pytest.approx(points["data_transmissions"])
    made: list[tuple[int, int]] = []
    again = ab.lab.rows(
        "dtc", given, runs=3, seed=4, out=tmp_path / "rows", progress=lambda *count: made.append(count)
    )
    assert made[-1] == (0, 0)
    assert again.to_ipc() == found.to_ipc()
    assert len(ab.lab.rows("dtc", segments=20, runs=1, seed=[1, 2])) == 2
    table = ab.compare(found, "data_transmissions", by="mode", baseline="tcp")
    assert [row["mode"] for row in table] == ["dtc", "dtc"]
    with pytest.raises(ab.Error, match="unknown key `los`"):
        ab.lab.rows("dtc", los=0.1)
