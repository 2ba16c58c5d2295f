"""Results as labelled arrays of xarray."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ._error import missing

if TYPE_CHECKING:
    import xarray

    from ._table import Result


def dataset(result: Result) -> xarray.Dataset:
    """The metrics of a result over its axes, seeds and runs: see
    :meth:`anabranch.Result.to_xarray`.
    """
    try:
        import numpy
        import xarray
    except ImportError:
        raise missing("xarray", "xarray", "to_xarray") from None
    points: dict[int, tuple[Any, ...]] = {}
    values = [result[name] for name in result.varied]
    for row, point in enumerate(result["point"]):
        points.setdefault(point, tuple(column[row] for column in values))
    axes = [list(dict.fromkeys(point[i] for point in points.values())) for i in range(len(result.varied))]
    grid = bool(axes) and math.prod(map(len, axes)) == len(points) == len(set(points.values()))
    seeds, runs = list(dict.fromkeys(result["seed"])), sorted(set(result["run"]))
    # Index of each point: on every axis of a grid, else in the order of the points.
    if grid:
        dims, shape = [*result.varied], [len(axis) for axis in axes]
        places = {
            number: tuple(axis.index(value) for axis, value in zip(axes, point, strict=True))
            for number, point in points.items()
        }
    else:
        dims, shape = ["point"], [len(points)]
        places = {number: (i,) for i, number in enumerate(points)}
    dims, shape = [*dims, "seed", "run"], [*shape, len(seeds), len(runs)]
    keys = zip(result["point"], result["seed"], result["run"], strict=True)
    seed_at, run_at = ({value: i for i, value in enumerate(all_)} for all_ in (seeds, runs))
    index = tuple(numpy.array([(*places[p], seed_at[s], run_at[r]) for p, s, r in keys]).T)
    variables: dict[str, Any] = {}
    chosen = [name for name in result.columns if name.startswith("chosen.")]
    for name in dict.fromkeys([*chosen, *result.metrics]):
        array = numpy.full(shape, numpy.nan)
        array[index] = [math.nan if value is None else value for value in result[name]]
        variables[name] = (dims, array, _attributes(result, name))
    coordinates: dict[str, Any] = {"seed": seeds, "run": runs}
    for i, name in enumerate(result.varied):
        own = axes[i] if grid else [point[i] for point in points.values()]
        coordinates[name] = (name if grid else "point", own, _attributes(result, name))
    if not grid:
        coordinates["point"] = list(points)
    for name in result.parameters:
        if name not in coordinates:
            coordinates[name] = ((), result[name][0] if len(result) else None, _attributes(result, name))
    versions = sorted(set(result["version"]))
    return xarray.Dataset(variables, coordinates, {"name": result.name, "version": ", ".join(versions)})


def _attributes(result: Result, name: str) -> dict[str, str]:
    unit = result.unit(name)
    return {} if unit == "1" else {"units": unit}
