"""Sweeps: the same rows however they come about."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import anabranch as ab

from conftest import GRID, ROOT


def test_shards_threads_and_interruptions_make_the_same_rows(network: ab.Scenario, tmp_path: Path) -> None:
    spec = {"scenario": network, **GRID}
    whole = ab.sweep(spec, jobs=1, progress=False)
    assert (len(whole), whole.missing) == (48, 0)
    assert whole.varied == ["link.cable.delay", "link.cable.loss"]
    assert whole["seed"][:8] == [3] * 4 + [1] * 4

    first = ab.sweep(spec, tmp_path / "rows", shard="2/3", progress=False)
    assert (len(first), first.missing) == (16, 32)
    ab.sweep(spec, tmp_path / "rows", shard=(1, 3), jobs=2, progress=False)
    assert ab.sweep(spec, tmp_path / "rows", progress=False).to_ipc() == whole.to_ipc()

    class Enough(Exception):
        pass

    def stop(made: int, total: int) -> None:
        if made > 0:
            raise Enough

    with pytest.raises(Enough):
        ab.sweep({**spec, "runs": 3000}, tmp_path / "stopped", progress=stop)
    kept = ab.sweep(spec, tmp_path / "stopped", progress=False)
    assert kept.to_ipc() == whole.to_ipc()


def test_what_is_done_is_not_run_again(network: ab.Scenario, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    for _ in range(2):
        ab.sweep({"scenario": network, "runs": 5}, tmp_path, progress=lambda *count: seen.append(count))
    assert seen.count((5, 5)) >= 1
    assert seen[-1] == (0, 0)


def test_a_spec_file_and_the_program_s_folder(program: Path, tmp_path: Path, network: ab.Scenario) -> None:
    (tmp_path / "cable.toml").write_text(network.to_toml())
    spec = tmp_path / "losses.toml"
    spec.write_text('scenario = "cable.toml"\nruns = 3\n[grid]\n"link.cable.loss" = [0.0, 0.1]\n')
    out = tmp_path / "rows"
    subprocess.run([str(program), "sweep", str(spec), "--out", str(out)], check=True, capture_output=True)
    made: list[tuple[int, int]] = []
    result = ab.sweep(spec, out, progress=lambda *count: made.append(count))
    assert made[-1] == (0, 0), "the program has made them all"
    assert result.name == "losses"
    result.write_parquet(tmp_path / "ours.parquet")
    assert (tmp_path / "ours.parquet").read_bytes() == (out / "table.parquet").read_bytes()


def test_enough_runs(network: ab.Scenario) -> None:
    spec = {
        "scenario": network,
        "grid": {"link.cable.loss": [0.0, 0.3]},
        "enough": {"metric": "transfer.file.latency_s", "width": "60 %", "min": 4, "max": 12},
    }
    result = ab.sweep(spec, progress=False)
    runs = result.means("latency_s")["n"]
    assert runs[0] == 4
    assert runs[1] > 4 or result.unmet == [1]


def test_errors_of_specs(network: ab.Scenario, tmp_path: Path) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.sweep({"scenario": network, "rums": 3}, progress=False)
    assert caught.value.hint == "did you mean `runs`?"
    assert caught.value.place == "rums"
    with pytest.raises(ab.Error) as caught:
        ab.sweep({"scenario": network, "grid": {"link.cable.lost": [0.1]}}, progress=False)
    assert "lost" in caught.value.message
    with pytest.raises(ab.Error, match="names no scenario"):
        ab.sweep({"runs": 3})
    with pytest.raises(ab.Error, match="there is no shard 5 of 4"):
        ab.sweep({"scenario": network}, shard=(5, 4))
    with pytest.raises(ab.Error, match="is no shard"):
        ab.sweep({"scenario": network}, shard="second")
    with pytest.raises(ab.Error, match="cannot read"):
        ab.sweep(tmp_path / "nowhere.toml")
    (tmp_path / "file").write_text("")
    with pytest.raises(ab.Error) as caught:
        ab.sweep({"scenario": network}, tmp_path / "file" / "rows", progress=False)
    assert caught.value.hint is not None


def test_the_ready_sweep_is_understood() -> None:
    path = ROOT / "scenarios/sweeps/three-gateways.toml"
    seen: list[int] = []

    class Enough(Exception):
        pass

    def stop(made: int, total: int) -> None:
        seen.append(total)
        raise Enough

    with pytest.raises(Enough):
        ab.sweep(path, progress=stop)


EXPERIMENT = {
    "experiment": "dtc",
    "runs": 3,
    "seeds": [2, 4],
    "set": {"segments": 20},
    "grid": {"loss": [0, "5 %"], "mode": ["tcp", "dtc"]},
}
"""A sweep of an experiment whose runs take some milliseconds."""


def test_an_experiment_is_swept_as_its_own_runs_are(tmp_path: Path) -> None:
    found = ab.sweep(EXPERIMENT, tmp_path, progress=False)
    assert (len(found), found.missing, found.varied) == (24, 0, ["loss", "mode"])
    assert found.unit("completion_s") == "s"
    points = ab.lab.run("dtc", segments=20, loss=[0, "5%"], mode=["tcp", "dtc"], runs=3, seed=4)
    for index, mean in enumerate(points["data_transmissions"]):
        rows = [row for row in found.rows() if row["point"] == index and row["seed"] == 4]
        assert sum(row["data_transmissions"] for row in rows) / 3 == pytest.approx(mean)
        assert all(row["transmissions_by_node.4"] is not None for row in rows)
    made: list[tuple[int, int]] = []
    again = ab.sweep(EXPERIMENT, tmp_path, progress=lambda *count: made.append(count))
    assert made[-1] == (0, 0)
    assert again.to_ipc() == found.to_ipc()
    (tmp_path / "spec.toml").write_text('experiment = "dtc"\nruns = 1\n[set]\nsegments = 20\n')
    assert len(ab.sweep(tmp_path / "spec.toml", progress=False)) == 1


def test_errors_of_an_experiment_say_where_they_are(network: ab.Scenario) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.sweep({"experiment": "dct"}, progress=False)
    assert caught.value.hint == "did you mean `dtc`?"
    with pytest.raises(ab.Error, match="unknown key `los`") as caught:
        ab.sweep({"experiment": "dtc", "grid": {"los": [0.1]}}, progress=False)
    assert caught.value.place == "grid.los"
    with pytest.raises(ab.Error, match="both"):
        ab.sweep({"experiment": "dtc", "scenario": network}, progress=False)
    with pytest.raises(ab.Error, match="no scenario and no experiment"):
        ab.sweep({"runs": 1}, progress=False)


def test_axes_that_vary_together_and_points_one_by_one(network: ab.Scenario) -> None:
    loss, delay = "link.cable.loss", "link.cable.delay"
    together = {"zip": [{loss: [0.0, 0.02, 0.1], delay: ["5 ms", "10 ms", "20 ms"]}]}
    result = ab.sweep({"scenario": network, "runs": 2, **together}, progress=False)
    assert (len(result), sorted(result.varied)) == (6, [delay, loss])
    assert list(zip(result[loss], result[delay], strict=True))[::2] == [(0.0, 0.005), (0.02, 0.01), (0.1, 0.02)]
    points = {"point": [{loss: 0.1, delay: "20 ms"}, {delay: "5 ms", loss: 0.0}]}
    listed = ab.sweep({"scenario": network, "runs": 2, **points}, progress=False)
    # The same points have the same runs, however they were asked for.
    assert listed["latency_s"] == result["latency_s"][4:] + result["latency_s"][:2]
    both = ab.sweep({"scenario": network, **points, "grid": {"transfer.file.bytes": ["5 kB", "10 kB"]}}, progress=False)
    assert len(both) == 4
    assert ab.sweep({"experiment": "dtc", "set": {"segments": 20}, "zip": [{"loss": [0, "5%"], "mode": ["tcp", "dtc"]}]},
                    progress=False)["mode"] == ["tcp", "dtc"]  # fmt: skip


def test_a_pattern_of_names_reaches_the_links_that_it_means(gateways: ab.Scenario) -> None:
    """`link.*` would reach the cables too."""
    lossy = gateways.set("link.radio*.loss", 0.1)
    assert [link.get("loss", 0) for link in lossy.link] == [0, 0, 0, 0.1, 0.1, 0.1]
    result = ab.sweep({"scenario": gateways, "runs": 2, "grid": {"link.radio*.loss": [0.0, 0.1]}}, progress=False)
    assert result["latency_s"][2:] == ab.run(lossy, runs=2)["latency_s"]
    with pytest.raises(ab.Error, match="matches|no link|radoi") as caught:
        ab.sweep({"scenario": gateways, "grid": {"link.radoi*.loss": [0.1]}}, progress=False)
    assert caught.value.place == 'grid["link.radoi*.loss"]'


@pytest.mark.parametrize(
    ("spec", "message", "place"),
    [
        ({"rums": 3}, "unknown key `rums`", "rums"),
        ({"grid": {"link.cable.loss": []}}, "an axis needs at least one value", 'grid["link.cable.loss"]'),
        ({"zip": []}, "`zip` is empty", "zip"),
        ({"zip": [{}]}, "`zip` is empty", "zip.0"),
        ({"zip": [{"link.cable.loss": [0, 1], "link.cable.delay": ["1 s"]}]}, "has 2 values", 'zip.0["link.cable.loss"]'),
        ({"point": [{"link.cable.loss": 0}, {}]}, "the point has no `link.cable.loss`", "point.1"),
        ({"point": [{"link.cable.loss": 0}, {"link.cable.loss": 7}]}, "is not a probability", 'point.1["link.cable.loss"]'),
        ({"set": {"link.cabel.loss": 0}}, "cabel", 'set["link.cabel.loss"]'),
        ({"enough": {"metric": "x", "width": "5 %", "mux": 9}}, "unknown key `mux`", "enough.mux"),
        ({"sample": [{"count": 0, "axes": {}}]}, "`count` is in", "sample.0.count"),
    ],
)  # fmt: skip
def test_errors_name_the_key_of_the_mapping(
    network: ab.Scenario, spec: dict[str, object], message: str, place: str
) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.sweep({"scenario": network, **spec}, progress=False)
    assert message in caught.value.message
    assert caught.value.place == place
