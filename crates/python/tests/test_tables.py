"""Tables as other libraries read them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab

from conftest import GRID


@pytest.fixture
def result(network: ab.Scenario) -> ab.Result:
    # A run that does not end has no latency: a null.
    grid = {"link.cable.loss": [0.0, 1.0], "link.cable.delay": ["5 ms", "20 ms"]}
    return ab.sweep({"scenario": network.set("stop", "2 s"), "runs": 2, "grid": grid}, progress=False)


def test_arrow_has_values_types_nulls_and_units(result: ab.Result) -> None:
    table = result.to_arrow()
    assert isinstance(table, pa.Table)
    assert table.column_names == result.columns
    for name in result.columns:
        assert table[name].to_pylist() == result[name]
        metadata = table.schema.field(name).metadata or {}
        assert metadata.get(b"unit", b"1").decode() == result.unit(name)
    assert table.schema.field("link.cable.delay").metadata == {b"unit": b"s"}
    assert table["link.cable.delay"].to_pylist() == [0.005] * 4 + [0.02] * 4
    assert table["transfer.file.latency_s"].null_count == 4
    # The schema alone, without a row.
    assert pa.schema(result).equals(table.schema, check_metadata=True)
    assert pa.ipc.open_stream(result.to_ipc()).read_all().equals(table)


def test_a_stream_can_be_asked_for_again_and_outlives_the_table(network: ab.Scenario) -> None:
    result = ab.run(network, runs=3)
    expected = result["latency_s"]
    streams = [pa.RecordBatchReader.from_stream(result) for _ in range(2)]
    unread = result.__arrow_c_stream__()
    del result, unread
    for stream in streams:
        assert stream.read_all()["transfer.file.latency_s"].to_pylist() == expected


def test_polars_and_pandas(result: ab.Result) -> None:
    frame = result.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == result.columns
    assert frame["transfer.file.latency_s"].to_list() == result["latency_s"]
    assert frame.schema["link.cable.loss"] == pl.Float64
    pandas = result.to_pandas()
    assert isinstance(pandas, pd.DataFrame)
    assert list(pandas.columns) == result.columns
    assert pandas.attrs["units"] == result.units
    assert pandas["transfer.file.latency_s"].isna().sum() == 4
    # And back: what polars makes of it is Arrow again.
    back = pa.table(frame)
    assert back["transfer.file.latency_s"].to_pylist() == result["latency_s"]


def test_a_table_goes_row_by_row(result: ab.Result) -> None:
    rows = list(result)
    assert len(rows) == len(result)
    assert [row["transfer.file.latency_s"] for row in rows] == result["latency_s"]
    assert [list(row) for row in rows] == [result.columns] * len(result)


def test_files(result: ab.Result, tmp_path: Path) -> None:
    result.write_parquet(tmp_path / "table.parquet")
    result.write_csv(tmp_path / "table.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.parquet"]
    assert (tmp_path / "table.csv").stat().st_mode & 0o444
    assert pq.read_table(tmp_path / "table.parquet").equals(result.to_arrow())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert [float(row["link.cable.delay [s]"]) for row in rows] == result["link.cable.delay"]
    latencies = [row["transfer.file.latency_s [s]"] for row in rows]
    assert [float(text) if text else None for text in latencies] == result["latency_s"]


def test_means_by_point_and_by_column(network: ab.Scenario) -> None:
    result = ab.sweep({"scenario": network, **GRID}, progress=False)
    points = result.means("latency_s")
    assert points.columns == ["link.cable.delay", "link.cable.loss", "n", "mean", "ci95", "min", "max", "missing"]
    assert len(points) == 6
    assert points.units["link.cable.delay"] == "s"
    by_loss = result.means("latency_s", by="link.cable.loss")
    assert by_loss["n"] == [16, 16, 16]
    values = [v for v, loss in zip(result["latency_s"], result["link.cable.loss"], strict=True) if loss == 0.1]
    assert by_loss["mean"][2] == pytest.approx(sum(values) / 16)
