"""Pictures: what they show, not how they look."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgb

import anabranch as ab

from conftest import GRID


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    plt.close("all")


@pytest.fixture
def result(network: ab.Scenario) -> ab.Result:
    return ab.sweep({"scenario": network, **GRID}, progress=False)


def test_a_metric_over_a_parameter(result: ab.Result) -> None:
    ax = ab.plot.metric(result, "latency_s", "link.cable.loss", by="link.cable.delay")
    assert ax.get_xlabel() == "link.cable.loss"
    assert ax.get_ylabel() == "transfer.file.latency [s]\nmean, 95 % CI"
    means = result.means("latency_s", by=["link.cable.loss", "link.cable.delay"])
    assert len(ax.containers) == 2
    line: Any = ax.containers[0]
    expected = [row for row in means.rows() if row["link.cable.delay"] == 0.005]
    assert list(line[0].get_ydata()) == [row["mean"] for row in expected]
    assert list(line[0].get_xdata()) == [0.0, 0.02, 0.1]
    low = [segment[0][1] for segment in line[2][0].get_segments()]
    assert low == pytest.approx([row["mean"] - row["ci95"] for row in expected])
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["link.cable.delay = 0.005", "link.cable.delay = 0.02"]


def test_axes_have_units_and_lines_differ_in_more_than_colour(network: ab.Scenario) -> None:
    one = ab.sweep({"scenario": network, "runs": 3, "grid": {"link.cable.delay": ["5 ms", "9 ms"]}}, progress=False)
    ax = ab.plot.metric({"one": one, "two": one, "three": one}, "goodput_bit_per_s")
    assert ax.get_xlabel() == "link.cable.delay [s]"
    assert ax.get_ylabel().startswith("transfer.file.goodput [bit/s]")
    lines: list[Any] = [container[0] for container in ax.containers]
    for look in ("get_color", "get_marker", "get_linestyle"):
        assert len({getattr(line, look)() for line in lines}) == 3, look


def test_texts_on_the_axis_and_points_of_experiments(network: ab.Scenario) -> None:
    words = ab.sweep(
        {"scenario": network, "runs": 2, "grid": {"tcp.default.congestion": ["newreno", "cubic"]}}, progress=False
    )
    ax = ab.plot.metric(words, "latency_s")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["newreno", "cubic"]
    points = ab.lab.run("set", gateways=[1, 2], runs=2)
    ax = ab.plot.metric(points, "latency_s")
    assert ax.get_xlabel() == "gateways"
    assert all(float(tick).is_integer() for tick in ax.get_xticks()), "there is no gateway and a half"


def test_a_distribution_counts_those_that_never_arrived(network: ab.Scenario) -> None:
    spec = {"scenario": network.set("stop", "500 ms"), "runs": 40}
    some = ab.sweep(spec, progress=False)
    found = [value for value in some["latency_s"] if value is not None]
    assert 0 < len(found) < 40
    ax = ab.plot.cdf(some, "latency_s")
    assert ax.get_xlabel() == "transfer.file.latency [s]"
    line: Any = ax.lines[0]
    assert list(line.get_xdata())[1:] == sorted(found)
    assert list(line.get_ydata())[-1] == len(found) / 40


def test_a_comparison_is_paired_by_run(network: ab.Scenario) -> None:
    left, right = ab.run(network, runs=20), ab.run(network.set("link.cable.delay", "9 ms"), runs=20)
    ax = ab.plot.compare(left, right, "latency_s", labels=["near", "far"])
    difference = ab.summary(b - a for a, b in zip(left["latency_s"], right["latency_s"], strict=True))
    assert difference is not None
    assert difference.ci95 is not None
    assert ax.get_title() == f"far − near: {difference.mean:+.4g} ± {difference.ci95:.2g} s (20 pairs, 95 % CI)"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["near", "far"]
    with pytest.raises(ab.Error, match="has a partner"):
        ab.plot.compare(left, ab.run(network, seed=99), "latency_s")


def test_an_axis_of_one_side_alone_is_refused(result: ab.Result, network: ab.Scenario) -> None:
    """Of the points of that axis only one would have a partner, and the rest would be gone without a word."""
    single = ab.run(network, runs=8)
    for sides in ((result, single), (single, result)):
        with pytest.raises(ab.Error, match="`link.cable.delay`, `link.cable.loss` varies in one of the two only"):
            ab.plot.compare(*sides, "latency_s")


def sweep(network: ab.Scenario, grid: dict[str, list[Any]], **more: Any) -> ab.Result:
    return ab.sweep({"scenario": network, "runs": 2, "grid": grid, **more}, progress=False)


def test_points_are_paired_by_what_both_vary(network: ab.Scenario) -> None:
    from anabranch.plot import paired

    both = sweep(network, {"link.cable.loss": [0.0, 0.1]})
    # An axis of one value, and a point of the grid that is set instead.
    for other, pairs in (
        (sweep(network, {"link.cable.loss": [0.0, 0.1], "transfer.file.bytes": ["10 kB"]}), 4),
        (sweep(network, {}, set={"link.cable.loss": 0.1}), 2),
    ):
        for sides in ((both, other), (other, both)):
            assert len(paired(*sides, "latency_s")[0]) == pairs
    twice = sweep(network, {"link.cable.loss": [0.1, 0.1]})
    with pytest.raises(ab.Error, match="a point is there twice"):
        paired(twice, both, "latency_s")


def test_what_cannot_be_drawn_is_said(result: ab.Result) -> None:
    with pytest.raises(ab.Error, match="`link.cable.delay` varies too"):
        ab.plot.metric(result, "latency_s", "link.cable.loss")
    with pytest.raises(ab.Error, match="not clear which parameter"):
        ab.plot.metric(result, "latency_s")


def test_colours_can_be_told_apart_by_the_colour_blind() -> None:
    """Through Machado's matrices (2009) for full deuteranopia and protanopia, every pair keeps its distance."""
    deuteranopia = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    protanopia = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    from anabranch import plot

    for matrix in (deuteranopia, protanopia):
        seen = []
        for colour in plot.COLOURS:
            linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(colour)]
            seen.append([sum(a * b for a, b in zip(row, linear, strict=True)) for row in matrix])
        for a, b in itertools.combinations(seen, 2):
            assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 > 0.05


def test_ratios_of_a_comparison(result: ab.Result) -> None:
    table = ab.compare(result, "latency_s", by="link.cable.delay", baseline=0.005)
    ax = ab.plot.ratio(table)
    assert ax.get_xlabel() == "link.cable.loss"
    assert ax.get_ylabel() == "transfer.file.latency_s\nby that of 0.005, 95 % CI"
    line: Any = ax.containers[0]
    assert list(line[0].get_xdata()) == table["link.cable.loss"]
    assert list(line[0].get_ydata()) == table["ratio"]
    low = [segment[0][1] for segment in line[2][0].get_segments()]
    assert low == pytest.approx([row["ratio"] - row["ratio_ci95"] for row in table])
    # Over the variants' own parameter, with a line for each loss; and without any.
    assert len(ab.plot.ratio(table, over="delay").containers) == 3
    with pytest.raises(ab.Error, match="not clear which parameter varies"):
        ab.plot.ratio(ab.compare(result, "latency_s", by=["link.cable.delay", "link.cable.loss"]))


def test_several_parameters_tell_lines_apart(result: ab.Result) -> None:
    ax = ab.plot.metric(result, "latency_s", "seed", by=["loss", "link.cable.delay"])
    assert len(ax.containers) == 6
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_texts()[1].get_text() == "loss = 0.02, link.cable.delay = 0.005"


def test_a_time_series_is_a_line_for_each_of_its_things(network: ab.Scenario) -> None:
    series = ab.run(network).series(every="10 ms")
    ax = ab.plot.series(series["connections"], "cwnd_bytes")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time_s [s]", "cwnd_bytes [B]")
    assert len(ax.lines) == 2, "both ends of a connection"
    rows = [row for row in series["connections"] if row["node"] == "a"]
    ax = ab.plot.series(series["connections"], "cwnd_bytes", where={"node": "a"}, label="file")
    assert [line.get_label() for line in ax.lines] == ["file"]
    line: Any = ax.lines[0]
    assert list(line.get_xdata()) == [row["time_s"] for row in rows]
    assert list(line.get_ydata()) == [row["cwnd_bytes"] for row in rows]
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"column": "window"}, "no column `window`"),
        ({"column": "cwnd_bytes", "where": {"nod": "a"}}, "no column `nod`"),
        ({"column": "cwnd_bytes", "where": {"node": "z"}}, "no row is left"),
        ({"column": "cwnd_bytes", "label": "both"}, "2 lines"),
    ]
    for wrong, words in wrongs:
        with pytest.raises(ab.Error, match=words):
            ab.plot.series(series["connections"], **wrong)
