"""Plots, each in one call. They need matplotlib (extra ``plot``).

Every function takes ``ax`` (default: axes of a new figure) and returns the axes, so that titles,
scales and files are set with matplotlib. Axes have units. Lines differ in colour, marker and
dashes, so that they can be distinguished without colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._error import Error, missing
from ._table import Result, Table, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._compare import Comparison
    from .lab import Points

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of Okabe and Ito, which can be distinguished with colour vision deficiencies; without the
yellow, which is too light for a line.
"""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def metric(
    results: Result | Points | Mapping[str, Result | Points],
    metric: str,
    over: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plots the mean of a metric over a parameter, with its 95 % confidence interval.

    ``results`` is a result of :func:`anabranch.sweep` or :func:`anabranch.lab.run`, or several by
    the names of their lines. ``over`` is the parameter on the x axis (default: the one that
    varies). ``by`` is a parameter, or several, with one line for each value.

    Raises :class:`anabranch.Error` if no parameter or too many parameters vary, or if no run has
    the metric.
    """
    ax = _axes(ax)
    given: Mapping[str, Result | Points] = results if isinstance(results, Mapping) else {"": results}
    lines: list[tuple[str, list[Any], list[float], list[float]]] = []
    labels = ("", "")
    for name, result in given.items():
        axis = result.resolve(over) if over is not None else _only(result, by)
        whole = result.resolve(metric)
        labels = _label(result, axis), _label(result, whole)
        for value, points in _means(result, whole, axis, by).items():
            parts = [name, *(f"{which} = {_text(one)}" for which, one in zip(_names(by), value, strict=True))]
            kept = [(x, mean, ci or 0.0) for x, mean, ci in points if mean is not None]
            if kept:
                xs, means, cis = (list(one) for one in zip(*kept, strict=True))
                lines.append((", ".join(part for part in parts if part), xs, means, cis))
    if not lines:
        raise Error(f"no run has the metric `{metric}`", hint="transfers that did not end have no latency")
    _draw(ax, lines)
    _finish(ax, labels[0], f"{labels[1]}\nmean, 95 % CI", any(name for name, *_ in lines))
    return ax


def ratio(comparison: Comparison, over: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Plots the ratios of a :func:`anabranch.compare` over a parameter, a line for each variant,
    with their 95 % confidence intervals and the baseline at 1.

    ``over`` is the parameter on the x axis (default: the one that varies in addition to the
    variants).

    Raises :class:`anabranch.Error` if the parameter is ambiguous, or if there is no ratio.
    """
    if over is None and len(comparison.axes) != 1:
        known = ", ".join(comparison.axes) or "nothing does"
        raise Error("it is not clear which parameter varies", hint=f"name one with `over=`: {known}")
    axis = comparison.axes[0] if over is None else comparison.resolve(over)
    names = [name for name in (*comparison.axes, *comparison.by) if name != axis]
    found: dict[tuple[Any, ...], list[tuple[Any, float, float]]] = {}
    for row in comparison:
        if row["ratio"] is not None:
            line = found.setdefault(tuple(row[name] for name in names), [])
            line.append((row[axis], row["ratio"], row["ratio_ci95"] or 0.0))
    if not found:
        raise Error("there is no ratio", hint="a baseline of mean 0 has none: see the column `difference`")
    lines = []
    for values, points in found.items():
        if _numbers(x for x, *_ in points):
            points.sort(key=_order)
        label = ", ".join(f"{name.rpartition('.')[2]} = {_text(one)}" for name, one in zip(names, values, strict=True))
        xs, means, cis = (list(one) for one in zip(*points, strict=True))
        lines.append((label, xs, means, cis))
    ax = _axes(ax)
    _draw(ax, lines)
    ax.axhline(1.0, color="0.5", linewidth=0.8)
    metric = comparison.metric
    _finish(ax, _label(comparison, axis), f"{metric}\nby that of {comparison.baseline}, 95 % CI", True)
    return ax


def _draw(ax: Axes, lines: Sequence[tuple[str, list[Any], list[float], list[float]]]) -> None:
    """Draws lines with their names, x values, means and half-widths."""
    ticks = _ticks(lines)
    for i, (name, xs, means, cis) in enumerate(lines):
        places = [ticks[x] for x in xs] if ticks else xs
        style = _style(i)
        ax.errorbar(places, means, yerr=cis, capsize=3, label=name or None, markersize=5, linewidth=1.4, **style)
    if ticks:
        ax.set_xticks(list(ticks.values()), [_text(value) for value in ticks])
    elif all(isinstance(x, int) for _, xs, _, _ in lines for x in xs):
        # Integer parameters, such as the number of gateways, have integer ticks only.
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def series(
    table: Table,
    column: str,
    *,
    where: Mapping[str, Any] | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plots a column of a time series (:meth:`anabranch.Result.series`) over time, as steps, with a
    line for each connection, link, node or sender.

    ``where`` selects rows by the values of other columns, such as ``{"node": "a"}``. ``label`` is
    the name of a single line. A line has a gap where there is no value, such as an unbounded
    threshold.

    Raises :class:`anabranch.Error` if no row is left, or if ``label`` is given for several lines.
    """
    wanted = where or {}
    for name in (column, *wanted):
        if name not in table.columns:
            raise Error(f"there is no column `{name}`", hint=f"the columns are {', '.join(table.columns)}")
    names = [name for name in _OWN if name in table.columns]
    lines: dict[tuple[Any, ...], tuple[list[float], list[float]]] = {}
    for row in table:
        if all(row[name] == value for name, value in wanted.items()):
            times, values = lines.setdefault(tuple(row[name] for name in names), ([], []))
            times.append(row["time_s"])
            values.append(float("nan") if row[column] is None else row[column])
    if not lines:
        raise Error("no row is left", hint=f"the table has {len(table)} rows")
    if label is not None and len(lines) > 1:
        raise Error(f"`{label}` would be the name of {len(lines)} lines", hint=f"tell them apart with `where`: {', '.join(names)}")
    ax = _axes(ax)
    differ = [i for i, _ in enumerate(names) if len({line[i] for line in lines}) > 1]
    for line, (times, values) in lines.items():
        parts = [f"{names[i]} {_text(int(line[i]) if isinstance(line[i], float) else line[i])}" for i in differ if line[i] is not None]
        # Styles continue after the lines that are already in these axes.
        style = {**_style(len(ax.lines)), "marker": None}
        ax.step(times, values, where="post", label=label or ", ".join(parts) or None, linewidth=1.2, **style)
    _finish(ax, "time_s [s]", f"{column} [{table.unit(column)}]", False)
    if label is not None or differ:
        # Above the axes, because step lines may cross every place within them.
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return ax


_OWN = ("node", "port", "peer", "peer_port", "subflow", "link", "traffic")
"""Columns that distinguish connections, links, nodes and senders."""


def cdf(
    results: Result | Mapping[str, Result], metric: str, *, by: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plots the distribution of a metric over runs: for each value, the share of all runs with at
    most this value.

    A run without the metric, such as the latency of an undelivered transfer, counts as larger than
    any value: its curve ends below 1. ``by`` is a parameter with one line for each value.

    Raises :class:`anabranch.Error` if no run has the metric.
    """
    ax = _axes(ax)
    given: Mapping[str, Result] = results if isinstance(results, Mapping) else {"": results}
    label, drawn = "", 0
    for name, result in given.items():
        whole = result.resolve(metric)
        label = _label(result, whole)
        groups = {None: result[whole]} if by is None else result.groups(result.resolve(by), whole)
        for value, values in groups.items():
            found = sorted(one for one in values if one is not None)
            if not found:
                continue
            parts = [name] if by is None else [name, f"{by} = {_text(value)}"]
            shares = [i / len(values) for i in range(len(found) + 1)]
            style = _style(drawn)
            every = max(1, len(found) // 8)
            ax.step(
                [found[0], *found], shares, where="post", label=", ".join(part for part in parts if part) or None,
                markevery=every, markersize=5, linewidth=1.4, **style,
            )  # fmt: skip
            drawn += 1
    if drawn == 0:
        raise Error(f"no run has the metric `{metric}`", hint="transfers that did not end have no latency")
    ax.set_ylim(0, 1.02)
    _finish(ax, label, "share of runs", drawn > 1 or by is not None or isinstance(results, Mapping))
    return ax


def compare(
    left: Result, right: Result, metric: str, *, labels: Sequence[str] = ("left", "right"), ax: Axes | None = None
) -> Axes:
    """Plots two protocols on the same runs: a line for each pair, both means, and the mean
    difference with its 95 % confidence interval.

    A pair consists of rows with the same seed, run and parameters. Both have the same random
    streams, so that the interval of their difference is much narrower than those of the two means.
    Pairs of which one lacks the metric are left out, and counted in the title.

    Raises :class:`anabranch.Error` if there is no pair, or if a row has several partners, for
    example because a parameter varies on one side only.
    """
    pairs, single = paired(left, right, metric)
    if not pairs:
        raise Error(
            f"no run of one has a partner in the other with the metric `{metric}`",
            hint="give both the same `seed` and `runs`, and the same parameters",
        )
    ax = _axes(ax)
    for a, b in pairs:
        ax.plot([0, 1], [a, b], color="0.75", linewidth=0.8, zorder=1)
    for i, values in enumerate(zip(*pairs, strict=True)):
        found = summary(values)
        assert found is not None
        ax.scatter([i] * len(values), values, s=14, color=COLOURS[i], marker=MARKERS[i], alpha=0.6, zorder=2)
        ax.errorbar(
            [i + (0.12 if i else -0.12)], [found.mean], yerr=[found.ci95 or 0.0], color=COLOURS[i], marker=MARKERS[i],
            capsize=4, markersize=8, zorder=3,
        )  # fmt: skip
    difference = summary(b - a for a, b in pairs)
    assert difference is not None
    unit = left.unit(metric)
    text = f"{labels[1]} − {labels[0]}: {difference.mean:+.4g}"
    if difference.ci95 is not None:
        text += f" ± {difference.ci95:.2g}"
    text += ("" if unit == "1" else f" {unit}") + f" ({len(pairs)} pairs, 95 % CI"
    ax.set_title(text + (f"; {single} without a partner)" if single else ")"), fontsize="medium")
    ax.set_xticks([0, 1], list(labels))
    ax.set_xlim(-0.4, 1.4)
    _finish(ax, "", _label(left, left.resolve(metric)), False)
    return ax


def paired(left: Result, right: Result, metric: str) -> tuple[list[tuple[float, float]], int]:
    """The pairs of values that :func:`compare` draws, and the number of rows without a partner.

    Raises :class:`anabranch.Error` if several rows of one result match the same row of the other.
    """
    varied = dict.fromkeys((*left.varied, *right.varied))
    keys = [*(name for name in varied if name in left and name in right), "seed", "run"]
    sides = [_by_key(one, metric, keys, alone) for one, alone in ((left, "left"), (right, "right"))]
    pairs = [(a, b) for key, a in sides[0].items() if a is not None and (b := sides[1].get(key)) is not None]
    return pairs, max(len(left), len(right)) - len(pairs)


def _by_key(one: Result, metric: str, keys: Sequence[str], side: str) -> dict[tuple[Any, ...], Any]:
    found: dict[tuple[Any, ...], Any] = {}
    for key, value in zip(zip(*(one[name] for name in keys), strict=True), one[metric], strict=True):
        if key in found:
            alone = [f"`{name}`" for name in one.varied if name not in keys and len(set(one[name])) > 1]
            what = f"{', '.join(alone)} varies in one of the two only" if alone else "a point is there twice"
            hint = "sweep both over the same parameters, or give their points apart"
            raise Error(f"several rows of the {side} result are alike: {what}", hint=hint)
        found[key] = value
    return found


def _names(by: str | Sequence[str] | None) -> list[str]:
    return [] if by is None else [by] if isinstance(by, str) else list(by)


def _means(
    result: Table, whole: str, axis: str, by: str | Sequence[str] | None
) -> dict[tuple[Any, ...], list[tuple[Any, Any, Any]]]:
    """Points of each line, by the values that distinguish it: parameter, mean, half-width."""
    names = [axis, *(result.resolve(name) for name in _names(by))]
    if isinstance(result, Result):
        others = [name for name in result.varied if name not in names]
        if others:
            raise Error(
                f"`{others[0]}` varies too", hint="a mean over it would say little: name it with `by=`, or sweep less"
            )
        points = result.means(whole, names)
        rows = zip(*(points[name] for name in names), points["mean"], points["ci95"], strict=True)
    else:
        rows = zip(*(result[name] for name in names), result[whole], result[f"{whole}.ci95"], strict=True)
    lines: dict[tuple[Any, ...], list[tuple[Any, Any, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[1:-2]), []).append((row[0], row[-2], row[-1]))
    return {value: sorted(points, key=_order) if _numbers(p[0] for p in points) else points for value, points in lines.items()}


def _order(point: tuple[Any, Any, Any]) -> Any:
    return point[0]


def _numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _ticks(lines: Sequence[tuple[str, list[Any], list[float], list[float]]]) -> dict[Any, int]:
    """Sets tick labels for values that are not numbers."""
    values = dict.fromkeys(x for _, xs, _, _ in lines for x in xs)
    return {} if _numbers(values) else {value: i for i, value in enumerate(values)}


def _only(result: Result | Points, by: str | Sequence[str] | None) -> str:
    lines = [result.resolve(name) for name in _names(by)]
    varied = [name for name in result.varied if name not in lines]
    if len(varied) == 1:
        return varied[0]
    known = ", ".join(varied) if varied else "nothing does"
    raise Error("it is not clear which parameter varies", hint=f"name one with `over=`: {known}")


def _label(result: Table, column: str) -> str:
    unit = result.unit(column)
    # The unit is shown separately: `latency_s` becomes `latency [s]`.
    name = column
    for end in ("_bit_per_s", "_per_s", "_s", "_bytes", "_j"):
        if unit != "1" and name.endswith(end):
            name = name.removesuffix(end)
            break
    return name if unit == "1" else f"{name} [{unit}]"


def _style(i: int) -> dict[str, Any]:
    n = len(COLOURS)
    # After a cycle of colours, markers and dashes are shifted by one.
    return {"color": COLOURS[i % n], "marker": MARKERS[(i + i // n) % n], "linestyle": DASHES[(i + i // n) % n]}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing("matplotlib", "plot", "a plot") from None
    return plt.subplots(figsize=(5.6, 3.6), layout="constrained")[1]


def _finish(ax: Axes, x: str, y: str, legend: bool) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(True, alpha=0.3, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(frameon=False, fontsize="small")
