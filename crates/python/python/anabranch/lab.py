"""The papers' experiments: families of simulations with parameters."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _anabranch as native
from ._error import Error
from ._progress import Progress, shown
from ._table import Result, Table, _kind, _plain

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Parameter:
    """A parameter of an experiment."""

    name: str
    """Its name."""
    default: str
    """Its default, in the syntax of ``--set``."""
    takes: str
    """Accepted values: an example with a unit, or a list of words."""
    about: str
    """Its meaning."""


@dataclass(frozen=True)
class Metric:
    """A metric of an experiment."""

    name: str
    """Its name."""
    unit: str
    """Its unit: ``1``, ``s``, ``B``, ``bit/s``."""
    about: str
    """Its meaning."""


@dataclass(frozen=True)
class Experiment:
    """An experiment."""

    name: str
    """Its name."""
    about: str
    """Its subject."""
    parameters: tuple[Parameter, ...]
    """Its parameters."""
    metrics: tuple[Metric, ...]
    """Its metrics."""
    arrays: tuple[Metric, ...]
    """Its metrics that are arrays, such as one number for each node."""


class Points(Table):
    """Points of an experiment, one row each: every parameter, ``runs``, ``seed``, and for each
    metric its mean over the runs (under the metric's own name), ``.ci95`` (half the width of the
    mean's 95 % confidence interval), ``.min``, ``.max`` and ``.missing`` (number of runs without
    it). Each element of an array metric is a metric: ``name.0``.
    """

    def __init__(self, experiment: Experiment, varied: Sequence[str], records: Sequence[Mapping[str, Any]]) -> None:
        columns: list[tuple[str, str, list[Any]]] = []
        for parameter in experiment.parameters:
            columns.append((parameter.name, "1", [record["params"][parameter.name] for record in records]))
        for name in ("runs", "seed"):
            columns.append((name, "1", [record[name] for record in records]))
        names: list[str] = []
        for metric in (*experiment.metrics, *experiment.arrays):
            found = [record["metrics"][metric.name] for record in records]
            for name, each in _elements(metric.name, found):
                names.append(name)
                columns.append((name, metric.unit, [one["mean"] for one in each]))
                for figure in ("ci95", "min", "max"):
                    columns.append((f"{name}.{figure}", metric.unit, [one[figure] for one in each]))
                columns.append((f"{name}.missing", "1", [one["missing"] for one in each]))
        super().__init__(native.Frame.of([(name, unit, _kind(v), _plain(v)) for name, unit, v in columns]))
        self.experiment: Experiment = experiment
        """The experiment."""
        self.varied: list[str] = list(varied)
        """The parameters that distinguish points."""
        self.metrics: list[str] = names
        """Columns of the metrics."""

    def _shown(self) -> list[str]:
        return [*self.varied, "runs", *self.metrics[:6]]


def experiments() -> dict[str, Experiment]:
    """Returns the experiments by name, with their parameters, defaults and metrics."""
    found = {}
    for text in native.lab_list():
        said = json.loads(text)
        found[said["name"]] = Experiment(
            said["name"],
            said["about"],
            tuple(Parameter(**one) for one in said["parameters"]),
            tuple(Metric(**one) for one in said["metrics"]),
            tuple(Metric(**one) for one in said["arrays"]),
        )
    return found


def run(
    experiment: str,
    parameters: Mapping[str, Any] | None = None,
    /,
    *,
    runs: int = 10,
    seed: int = 1,
    progress: Progress = False,
    **more: Any,
) -> Points:
    """Runs a point or a grid of an experiment, each point a number of times, and returns a row for
    each point.

    Parameters are given as a mapping or as keywords. A list is an axis of a grid, the last of which
    varies fastest; a string such as ``"5ms+10ms"`` has one value for each gateway. ``seed`` is the
    root of all random streams.

    Raises :class:`anabranch.Error` if the experiment or a parameter does not exist, or a value is
    invalid. Ctrl-C stops it.
    """
    if runs < 1:
        raise Error(f"`runs` is {runs}", hint="`runs` is at least 1")
    given = {**(parameters or {}), **more}
    with shown(progress, experiment) as show:
        records = [json.loads(text) for text in native.lab_run(experiment, _assignments(given), runs, seed, show)]
    varied = [name for name, value in given.items() if _is_axis(value)]
    return Points(experiments()[experiment], varied, records)


def rows(
    experiment: str,
    parameters: Mapping[str, Any] | None = None,
    /,
    *,
    runs: int = 10,
    seed: int | Sequence[int] = 1,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    shard: tuple[int, int] | str | None = None,
    client: Client | None = None,
    progress: Progress = False,
    **more: Any,
) -> Result:
    """Makes the runs of :func:`run`, and returns a row for each run, like :func:`anabranch.sweep`.

    Parameters are given as in :func:`run`. ``out`` is the folder in which rows are stored,
    ``client`` a client of Dask distributed; both, ``jobs`` and ``shard`` are those of
    :func:`anabranch.sweep`. The means of the rows are those of :func:`run`.

    Raises :class:`anabranch.Error` if the experiment or a parameter does not exist, or a value is
    invalid.
    """
    from ._sweep import sweep

    given = {**(parameters or {}), **more}
    fixed = {name: value for name, value in given.items() if not _is_axis(value)}
    axes = {name: list(value) for name, value in given.items() if _is_axis(value)}
    seeds = [seed] if isinstance(seed, int) else list(seed)
    spec = {"experiment": experiment, "runs": runs, "seeds": seeds, "set": fixed, "grid": axes}
    return sweep(spec, out, jobs=jobs, shard=shard, client=client, progress=progress)


def _assignments(parameters: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}=" + (",".join(str(one) for one in value) if _is_axis(value) else str(value))
        for name, value in parameters.items()
    ]


def _is_axis(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str)


def _elements(name: str, found: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """A metric of every point, or each element of an array metric, whose length may differ between
    points.
    """
    if not any(isinstance(one["mean"], list) for one in found):
        return [(name, [{**one, "missing": one.get("missing", 0)} for one in found])]
    longest = max(len(one["mean"]) for one in found)
    figures = ("mean", "ci95", "min", "max")
    return [
        (
            f"{name}.{i}",
            [
                {
                    **{figure: one[figure][i] if i < len(one[figure]) else None for figure in figures},
                    "missing": one.get("missing", 0),
                }
                for one in found
            ],
        )
        for i in range(longest)
    ]

