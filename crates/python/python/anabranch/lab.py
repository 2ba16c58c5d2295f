"""The papers' experiments: families of simulations, spanned by parameters."""

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
    """Its default, as one would write it."""
    takes: str
    """What it takes: a unit's example, or the words that it knows."""
    about: str
    """What it is."""


@dataclass(frozen=True)
class Metric:
    """A metric of an experiment."""

    name: str
    """Its name."""
    unit: str
    """Its unit: ``1``, ``s``, ``B``, ``bit/s``."""
    about: str
    """What it is."""


@dataclass(frozen=True)
class Experiment:
    """An experiment."""

    name: str
    """Its name."""
    about: str
    """What it is."""
    parameters: tuple[Parameter, ...]
    """Its parameters."""
    metrics: tuple[Metric, ...]
    """Its metrics."""
    arrays: tuple[Metric, ...]
    """Its metrics that are several numbers each, as one for each node."""


class Points(Table):
    """Points of an experiment, a row each: every parameter, ``runs``, ``seed``, and for each metric its mean over the runs (the metric's own name),
    ``.ci95`` (half the width of the mean's 95 % confidence interval), ``.min``, ``.max`` and ``.missing`` (runs without it). Of a metric
    that is an array, each element is a metric: ``name.0``."""

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
        """Which experiment."""
        self.varied: list[str] = list(varied)
        """The parameters that tell points apart."""
        self.metrics: list[str] = names
        """The metrics: columns."""

    def _shown(self) -> list[str]:
        return [*self.varied, "runs", *self.metrics[:6]]


def experiments() -> dict[str, Experiment]:
    """The experiments by name, with their parameters, defaults and metrics."""
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
    """Runs a point of an experiment, or a grid, so many times each, and returns a row for each point.

    Parameters go by mapping or by keyword; a list makes an axis of a grid, of which the last is the fastest, and a text such as
    ``"5ms+10ms"`` one value for each gateway. ``seed`` is the root of all random streams.

    Raises :class:`anabranch.Error` if there is no such experiment or parameter, or a value cannot be. Ctrl-C stops it.
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
    """The runs of :func:`run` one by one: a row for each run, as :func:`anabranch.sweep` has them.

    Parameters go as in :func:`run`. ``out`` is the folder where rows are kept, and ``client`` a client of Dask distributed; both,
    ``jobs`` and ``shard`` are those of :func:`anabranch.sweep`. The means of the rows are those of :func:`run`.

    Raises :class:`anabranch.Error` if there is no such experiment or parameter, or a value cannot be.
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
    """A metric of every point, or the elements of an array, of which points may have more or fewer."""
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

