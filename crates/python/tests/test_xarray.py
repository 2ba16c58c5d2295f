"""Results as labelled arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
import xarray as xr

import anabranch as ab

from conftest import GRID

LOSS, DELAY, LATENCY = "link.cable.loss", "link.cable.delay", "transfer.file.latency_s"


def test_dimensions_coordinates_units_and_values(network: ab.Scenario) -> None:
    result = ab.sweep({"scenario": network, **GRID, "set": {"transfer.file.bytes": "5 kB"}}, progress=False)
    data = result.to_xarray()
    assert isinstance(data, xr.Dataset)
    assert dict(data.sizes) == {DELAY: 2, LOSS: 3, "seed": 2, "run": 4}
    assert set(data.data_vars) == set(result.metrics)
    assert data[LATENCY].dims == (DELAY, LOSS, "seed", "run")
    assert data[LATENCY].attrs == {"units": "s"} and data[DELAY].attrs == {"units": "s"} and data[LOSS].attrs == {}
    assert (data["seed"].values.tolist(), data["transfer.file.bytes"].item()) == ([3, 1], 5000)
    assert data.attrs == {"name": "cable", "version": ab.__version__}
    for row in result:
        where = {name: row[name] for name in (DELAY, LOSS, "seed", "run")}
        for metric in result.metrics:
            value = data[metric].sel(where).item()
            assert value == row[metric] or (row[metric] is None and np.isnan(value))


def test_points_that_are_no_grid_are_one_dimension(network: ab.Scenario) -> None:
    spec = {"scenario": network, "runs": 2, "zip": [{LOSS: [0.0, 0.1, 1.0], DELAY: ["1 ms", "2 ms", "3 ms"]}]}
    result = ab.sweep(spec, progress=False)
    data = result.to_xarray()
    assert dict(data.sizes) == {"point": 3, "seed": 1, "run": 2}
    assert data[DELAY].dims == ("point",)
    assert data[LATENCY].sel(point=1).values.ravel().tolist() == result["latency_s"][2:4]
    assert np.isnan(data[LATENCY].sel(point=2)).all()


def test_one_run_texts_and_parts(network: ab.Scenario) -> None:
    assert dict(ab.run(network).to_xarray().sizes) == {"point": 1, "seed": 1, "run": 1}
    words = ab.sweep({"scenario": network, "grid": {"tcp.default.congestion": ["newreno", "cubic"]}}, progress=False)
    assert words.to_xarray()["tcp.default.congestion"].values.tolist() == ["newreno", "cubic"]
    # Runs of other shards are missing.
    part = ab.sweep({"scenario": network, **GRID}, shard="1/2", progress=False)
    data = part.to_xarray()
    assert int(data["transfer.file.delivered"].count()) == len(part) == 24


def test_without_xarray_it_is_said_what_is_missing(network: ab.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    result, plain = ab.run(network), builtins.__import__

    def without(name: str, *args: Any, **keys: Any) -> Any:
        if name.partition(".")[0] == "xarray":
            raise ImportError(name)
        return plain(name, *args, **keys)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ab.Error, match="to_xarray needs xarray") as caught:
        result.to_xarray()
    assert caught.value.hint is not None and "xarray" in caught.value.hint
