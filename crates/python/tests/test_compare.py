"""Paired comparisons, against the same figures worked out by hand."""

from __future__ import annotations

import math
import statistics

import pytest

import anabranch as ab

T_975_OF_7 = 2.364624
"""Student's t, 97.5 %, 7 degrees of freedom, from tables."""

KIND, GATEWAYS, LOSS = "transfer.update.kind", "transfer.update.gateways", "link.radio*.loss"


@pytest.fixture
def schemes(gateways: ab.Scenario) -> ab.Result:
    spec = {
        "scenario": gateways,
        "runs": 8,
        "point": [{KIND: "split", GATEWAYS: 1}, {KIND: "set", GATEWAYS: 1}, {KIND: "set", GATEWAYS: 3}],
        "grid": {LOSS: [0.0, 0.05]},
    }
    return ab.sweep(spec, progress=False)


def latencies(result: ab.Result, kind: str, gateways: int, loss: float) -> list[float]:
    rows = [row for row in result if (row[KIND], row[GATEWAYS], row[LOSS]) == (kind, gateways, loss)]
    assert [row["run"] for row in rows] == list(range(8))
    return [row["transfer.update.latency_s"] for row in rows]


def test_differences_and_ratios_by_axes(schemes: ab.Result) -> None:
    table = ab.compare(schemes, "latency_s", by=[KIND, GATEWAYS], baseline=("split", 1))
    assert table.columns == [
        LOSS, KIND, GATEWAYS, "n", "mean", "baseline", "difference", "difference_ci95", "ratio", "ratio_ci95", "missing",
    ]  # fmt: skip
    assert table.units == {name: "s" for name in ("mean", "baseline", "difference", "difference_ci95")}
    assert [(row[LOSS], row[KIND], row[GATEWAYS]) for row in table] == [
        (loss, "set", gateways) for loss in (0.0, 0.05) for gateways in (1, 3)
    ]
    for row in table:
        own = latencies(schemes, "set", row[GATEWAYS], row[LOSS])
        other = latencies(schemes, "split", 1, row[LOSS])
        differences = [a - b for a, b in zip(own, other, strict=True)]
        assert (row["n"], row["missing"]) == (8, 0)
        assert row["difference"] == pytest.approx(statistics.fmean(differences))
        half = T_975_OF_7 * statistics.stdev(differences) / math.sqrt(8)
        assert row["difference_ci95"] == pytest.approx(half, rel=1e-4)
        assert row["mean"] - row["baseline"] == pytest.approx(row["difference"])
        assert row["ratio"] == pytest.approx(statistics.fmean(own) / statistics.fmean(other))
        # The ratio estimator: residuals of the ratio over the baseline's mean.
        residuals = [a - row["ratio"] * b for a, b in zip(own, other, strict=True)]
        half = T_975_OF_7 * statistics.stdev(residuals) / math.sqrt(8) / statistics.fmean(other)
        assert row["ratio_ci95"] == pytest.approx(half, rel=1e-4)


def test_several_results_are_compared_by_their_names(gateways: ab.Scenario) -> None:
    both = {kind: ab.run(gateways.set(LOSS, 0.05).set(KIND, kind), runs=8) for kind in ("set", "split")}
    table = ab.compare(both, "latency_s", baseline="split")
    assert [row["variant"] for row in table] == ["set"]
    axes = ab.sweep(
        {"scenario": gateways.set(LOSS, 0.05), "runs": 8, "grid": {KIND: ["set", "split"]}}, progress=False
    )
    other = ab.compare(axes, "latency_s", by=KIND, baseline="split")
    for name in ("n", "difference", "difference_ci95", "ratio", "ratio_ci95"):
        assert table[name] == other[name]
    # Without a baseline the first one is it.
    assert ab.compare(axes, "latency_s", by="kind")["difference"] == [-d for d in table["difference"]]


def test_the_order_of_rows_and_runs_that_are_missing_do_not_matter(network: ab.Scenario) -> None:
    hurried = network.set("stop", "300 ms")
    spec = {"scenario": hurried, "runs": 40, "grid": {"link.cable.loss": [0.2, 0.0]}}
    result = ab.sweep(spec, progress=False)
    ends = [value is not None for value in result["latency_s"][:40]]
    assert 0 < sum(ends) < 40, "some do not end in time"
    table = ab.compare(result, "latency_s", by="link.cable.loss", baseline=0.0)
    assert (table["n"], table["missing"]) == ([sum(ends)], [40 - sum(ends)])
    # Another number of runs: those that are on one side only have no partner.
    fewer = ab.compare({"a": ab.run(network, runs=5), "b": ab.run(network.set("link.cable.loss", 0), runs=7)}, "latency_s")
    assert (fewer["n"], fewer["missing"]) == ([5], [2])


def test_what_cannot_be_compared_is_refused(schemes: ab.Result, network: ab.Scenario) -> None:
    with pytest.raises(ab.Error, match="not clear what is compared"):
        ab.compare(schemes, "latency_s")
    with pytest.raises(ab.Error, match='there is no variant "end-to-end"') as caught:
        ab.compare(schemes, "latency_s", by=[KIND, GATEWAYS], baseline="end-to-end")
    assert caught.value.hint is not None and '("split", 1)' in caught.value.hint
    with pytest.raises(ab.Error, match="are alike"):
        ab.compare({"a": schemes, "b": ab.run(network, runs=2)}, "stop_s" if "stop_s" in schemes else schemes.columns[-1])
    with pytest.raises(ab.Error, match="there is no column `latencies`"):
        ab.compare(schemes, "latencies", by=KIND)
    with pytest.raises(ab.Error, match="only one variant"):
        ab.compare({"a": ab.run(network)}, "latency_s")
    with pytest.raises(ab.Error, match="no run of a variant has a partner"):
        ab.compare({"a": ab.run(network, seed=1), "b": ab.run(network, seed=2)}, "latency_s")
