"""The median of latencies of which some are censored."""

from __future__ import annotations

import math

import anabranch as ab
import pytest

from conftest import NETWORK

DRUG = ([6, 6, 6, 7, 10, 13, 16, 22, 23], [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35])
"""Weeks of remission with 6-MP (Freireich et al. 1963): those that ended, and those that went on."""


def test_the_median_of_the_leukaemia_data_is_the_published_one() -> None:
    assert ab.survival(*DRUG) == ab.Survival(21, 12, 23.0, 13.0, None)
    assert ab.survival([None], []) is None
    with pytest.raises(ab.Error):
        ab.survival([math.inf], [1.0])


def test_a_latency_that_is_cut_has_a_median_of_all_runs(network: ab.Scenario) -> None:
    lossy = network.set("link.cable.loss", 0.2)
    whole = ab.run(lossy, runs=11)
    latencies = sorted(whole["latency_s"])
    assert whole.survival("latency_s") == ab.survival(latencies, [])
    assert "median" not in whole.means("latency_s").columns
    cut = ab.run(lossy.set("stop", f"{(latencies[7] + latencies[8]) / 2} s"), runs=11)
    found = cut.survival("latency_s")
    assert found is not None
    assert (found.n, found.censored, found.median) == (11, 3, latencies[5])
    means = next(cut.means("latency_s").rows())
    assert (means["n"], means["missing"], means["censored"], means["median"]) == (8, 3, 3, found.median)
    assert means["median_low"] == found.low


def test_flows_are_a_table_of_series() -> None:
    probed = ab.Scenario.from_toml(NETWORK + '\n[probe.all]\nkind = "flows"\n')
    result = ab.run(probed)
    flows = list(result.series()["flows"])
    assert [row["protocol"] for row in flows] == ["tcp", "tcp"]
    assert [row["payload_bytes"] for row in flows] == [10_000, 0]
