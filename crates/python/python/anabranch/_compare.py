"""Paired comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _anabranch as native
from ._error import Error
from ._table import Result, Table, table


class Comparison(Table):
    """Result of :func:`compare`: a row for each variant at each combination of the other
    parameters.
    """

    def __init__(self, frame: native.Frame, metric: str, by: Sequence[str], axes: Sequence[str], baseline: str) -> None:
        super().__init__(frame)
        self.metric: str = metric
        """Full name of the compared metric."""
        self.by: list[str] = list(by)
        """Columns that distinguish the variants."""
        self.axes: list[str] = list(axes)
        """The other parameters that vary."""
        self.baseline: str = baseline
        """The baseline, as text."""


def compare(
    results: Result | Mapping[str, Result],
    metric: str,
    *,
    by: str | Sequence[str] | None = None,
    baseline: Any = None,
) -> Comparison:
    """Compares variants run by run: the difference from a baseline and the ratio to it, with 95 %
    confidence intervals.

    ``results`` is a result in which ``by`` names the columns that distinguish the variants, such as
    ``by="transfer.update.kind"``, or several results by the names of the variants. ``baseline`` is
    the variant with which all others are compared: a value of ``by``, a tuple of values if ``by``
    names several columns, or a name (default: the first variant).

    Runs with the same seed, number and other parameters are a pair. They have the same random
    streams, so that the interval of their difference is much narrower than those of the two means.
    A pair of which one run lacks the metric is left out and counted.

    The table has a row for each variant at each combination of the other parameters that vary. Its
    columns are these parameters, ``by`` (or ``variant``), ``n`` (number of pairs), ``mean`` and
    ``baseline`` (means over the pairs), ``difference`` (variant - baseline) and
    ``difference_ci95``, ``ratio`` (of the means) and ``ratio_ci95``, and ``missing`` (pairs left
    out). ``_ci95`` is half the width of an interval: Student's t for the difference, the ratio
    estimator for the ratio.

    Raises :class:`anabranch.Error` if the variant does not exist, if there is nothing to compare,
    or if rows are ambiguous.
    """
    if isinstance(results, Mapping):
        if by is not None:
            raise Error("`by` has no meaning for several results", hint="the names of the results tell them apart")
        given, names = dict(results), ["variant"]
    else:
        if by is None:
            known = ", ".join(results.varied) or "nothing varies"
            raise Error("it is not clear what is compared", hint=f"name a parameter with `by=`: {known}")
        given, names = {"": results}, [results.resolve(name) for name in ([by] if isinstance(by, str) else by)]
    if not given or not names:
        raise Error("there is nothing to compare", hint="give a result, or several by their names")
    found = _Found(given, metric, names, isinstance(results, Mapping))
    chosen = found.baseline(baseline)
    return found.table(chosen)


class _Found:
    """The values of all variants, by the other parameters and by seed and run."""

    def __init__(self, given: Mapping[str, Result], metric: str, names: Sequence[str], several: bool) -> None:
        self.names = list(names)
        first = next(iter(given.values()))
        self.metric, self.unit = first.resolve(metric), first.unit(metric)
        varied = dict.fromkeys(name for result in given.values() for name in result.varied)
        shared = [name for name in varied if all(name in result for result in given.values())]
        self.axes = [name for name in shared if name not in names]
        self.units = {name: first.unit(name) for name in (*self.axes, *(() if several else names))}
        # By variant and by the other parameters: values by seed and run.
        self.values: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[tuple[int, int], Any]]] = {}
        self.places: dict[tuple[Any, ...], None] = {}
        for name, result in given.items():
            self._take(name, result, metric, several)

    def _take(self, name: str, result: Result, metric: str, several: bool) -> None:
        rows = len(result)
        variants = [(name,)] * rows if several else _rows(result, self.names)
        runs = zip(result["seed"], result["run"], strict=True)
        for variant, place, run, value in zip(variants, _rows(result, self.axes), runs, result[metric], strict=True):
            self.places.setdefault(place)
            values = self.values.setdefault(variant, {}).setdefault(place, {})
            if run in values:
                alone = [f"`{axis}`" for axis in result.varied if axis not in (*self.axes, *self.names)]
                what = f"{', '.join(alone)} varies too" if alone else "a point is there twice"
                raise Error(f"several runs of {_text(variant)} are alike: {what}", hint="name it in `by=`, or sweep less")
            values[run] = value

    def baseline(self, said: Any) -> tuple[Any, ...]:
        if len(self.values) < 2:
            raise Error("there is only one variant", hint="compare at least two values of `by`, or two results")
        if said is None:
            return next(iter(self.values))
        wanted = tuple(said) if isinstance(said, tuple | list) else (said,)
        if wanted not in self.values:
            known = ", ".join(_text(variant) for variant in list(self.values)[:8])
            raise Error(f"there is no variant {_text(wanted)}", hint=f"the baseline is one of {known}")
        return wanted

    def table(self, baseline: tuple[Any, ...]) -> Comparison:
        rows: list[list[Any]] = []
        for place in self.places:
            other = self.values[baseline].get(place, {})
            for variant, places in self.values.items():
                if variant == baseline or not (other or place in places):
                    continue
                # A run that exists on one side only is counted as missing, too.
                own = places.get(place, {})
                runs = [run for run in own if own[run] is not None and other.get(run) is not None]
                gaps = len(own.keys() | other.keys()) - len(runs)
                figures = _figures([own[run] for run in runs], [other[run] for run in runs])
                rows.append([*place, *variant, *figures, gaps])
        if all(row[len(self.axes) + len(self.names)] == 0 for row in rows):
            raise Error(
                f"no run of a variant has a partner with the metric in {_text(baseline)}",
                hint="give all the same `seeds` and `runs`; transfers that did not end have no latency",
            )
        heads = [(name, self.units.get(name, "1")) for name in (*self.axes, *self.names)]
        heads += [("n", "1"), ("mean", self.unit), ("baseline", self.unit), ("difference", self.unit)]
        heads += [("difference_ci95", self.unit), ("ratio", "1"), ("ratio_ci95", "1"), ("missing", "1")]
        found = table((name, unit, [row[i] for row in rows]) for i, (name, unit) in enumerate(heads))
        return Comparison(found._frame, self.metric, self.names, self.axes, _text(baseline))


def _rows(result: Result, names: Sequence[str]) -> list[tuple[Any, ...]]:
    if not names:
        return [()] * len(result)
    return list(zip(*(result[name] for name in names), strict=True))


def _figures(own: list[float], other: list[float]) -> list[Any]:
    """Number of pairs, both means, difference and ratio with their intervals."""
    n = len(own)
    if n == 0:
        return [0, None, None, None, None, None, None]
    difference, ratio = native.compared(own, other)
    means = [sum(own) / n, sum(other) / n]
    return [n, *means, difference[1], difference[2], *((None, None) if ratio is None else ratio[1:3])]


def _text(variant: tuple[Any, ...]) -> str:
    texts = [f'"{one}"' if isinstance(one, str) else str(one) for one in variant]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
