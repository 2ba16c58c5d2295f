"""Runs and sweeps."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _anabranch as native
from ._error import Error
from ._policies import Brought
from ._progress import Progress, shown
from ._scenario import Scenario, understood
from ._table import Result
from ._toml import document, said

if TYPE_CHECKING:
    from distributed import Client

Spec = str | os.PathLike[str] | Mapping[str, Any]
"""A sweep: the path of a spec file, or a mapping with the content of one. It has an ``experiment``
or a ``scenario``, which is a path or a :class:`Scenario`.
"""


def run(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    runs: int = 1,
    seed: int | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = False,
) -> Result:
    """Simulates a scenario a number of times, on all cores, and returns a row for each run.

    ``scenario`` is a :class:`Scenario`, a dictionary with the same content (such as a
    :class:`Network`), or the path of a file; if it has axes of its own, all their points are run.
    ``seed`` is the root of all random streams (default: that of the scenario). ``jobs`` is the
    number of simultaneous runs (default and maximum: the number of cores). Runs are numbered from
    0. Runs of two scenarios with the same seed and number have the same random streams, and can be
    compared in pairs. The result depends only on scenario, seed and number of runs.

    Raises :class:`anabranch.Error` if the scenario cannot run. Ctrl-C stops it
    (``KeyboardInterrupt``).
    """
    scenario = understood(scenario)
    spec = {"runs": _count(runs, "runs"), "seeds": [scenario.seed if seed is None else _seed(seed)]}
    made = _of(scenario.name or "run", spec, scenario, None)
    with shown(progress, scenario.name or "run") as show:
        made.run(_threads(jobs), (1, 1), show)
    return result(made)


def sweep(
    spec: Spec,
    out: str | os.PathLike[str] | None = None,
    *,
    jobs: int | None = None,
    shard: tuple[int, int] | str | None = None,
    client: Client | None = None,
    progress: Progress = True,
) -> Result:
    """Makes all unfinished runs of a sweep, and returns the rows of all finished runs.

    ``spec`` is the path of a spec file, or a mapping with the content of one: ``scenario`` (a path
    or a :class:`Scenario`) or ``experiment`` (a name of :func:`anabranch.lab.experiments`),
    ``runs``, ``seeds``, ``grid``, ``zip`` (axes that vary together), ``point`` (single points),
    ``sample``, ``set``, ``enough``.

    * ``out``: folder in which rows are stored. Stored runs are not repeated, so that a stopped or
      killed sweep continues. Several processes may share the folder, also with ``anabranch sweep
      --out``. Without ``out``, rows exist only in the result. Rows of a scenario with policies
      written in Python cannot be stored.
    * ``jobs``: number of simultaneous runs (default and maximum: the number of cores).
    * ``shard``: one part of the sweep, for job arrays: ``(2, 8)`` or ``"2/8"`` is the second of
      eight.
    * ``client``: a client of Dask distributed, whose workers make the runs. Workers need this
      package in the same version, and nothing else.
    * ``progress``: a bar (``True``), nothing (``False``), or a function of the number of finished
      runs and of all runs.

    Rows do not depend on ``jobs``, ``shard`` or ``client``, nor on interruptions and lost workers.

    Raises :class:`anabranch.Error` if the spec or a scenario is invalid. Ctrl-C stops the sweep
    (``KeyboardInterrupt``). In both cases finished rows are kept.
    """
    part = _shard(shard)
    made, policies = _made(spec, out)
    with shown(progress, made.name()) as show:
        if client is None:
            made.run(_threads(jobs), part, show)
        else:
            from ._dask import drive

            drive(made, client, part, show, policies)
    return result(made)


def result(made: native.Sweep) -> Result:
    """The rows of all finished runs."""
    frame, missing, unmet = made.frame()
    parameters, varied = made.parameters()
    return Result(
        frame, name=made.name(), parameters=parameters, varied=varied, missing=missing, unmet=unmet, made=made
    )


def _made(spec: Spec, out: str | os.PathLike[str] | None) -> tuple[native.Sweep, tuple[Brought, ...]]:
    made, policies = _read(spec, out)
    if others := made.foreign():
        warnings.warn(f"{others} rows in {out} are of other builds: they are kept and not used", stacklevel=3)
    return made, policies


def _read(spec: Spec, out: str | os.PathLike[str] | None) -> tuple[native.Sweep, tuple[Brought, ...]]:
    if not isinstance(spec, Mapping):
        return native.Sweep.read(spec, out), ()
    keys = dict(spec)
    scenario = keys.pop("scenario", None)
    if scenario is None:
        if "experiment" in keys:
            text, paths = document({"name": str(keys["experiment"]), **keys})
            with said(_SPEC, paths):
                return native.Sweep.parse(_SPEC, text, out), ()
        hint = '"scenario": a path or an `anabranch.Scenario`; or "experiment": a name of `anabranch.lab.experiments()`'
        raise Error("the spec names no scenario and no experiment", hint=hint)
    scenario = understood(scenario)
    return _of(scenario.name or "sweep", keys, scenario, out), scenario._policies


_SPEC = "spec"
"""Name of the text that is made from a mapping, in errors that refer to no key of it."""


def _of(name: str, spec: Mapping[str, Any], scenario: Scenario, out: str | os.PathLike[str] | None) -> native.Sweep:
    text, paths = document({"name": name, **spec})
    with said(_SPEC, paths), scenario._said():
        return native.Sweep.of(_SPEC, text, scenario._native, scenario.folder, out)


def _count(number: int, what: str) -> int:
    number = operator.index(number)
    if number < 1:
        raise Error(f"`{what}` is {number}", hint=f"`{what}` is at least 1")
    return number


def _seed(number: int) -> int:
    number = operator.index(number)
    if not 0 <= number < 2**63:
        raise Error(f"`seed` is {number}", hint="`seed` is a number from 0 to 2^63 - 1")
    return number


def _threads(jobs: int | None) -> int:
    # The bound keeps the number within the integers of the compiled part; no machine has more cores.
    return 0 if jobs is None else min(_count(jobs, "jobs"), 2**16)


def _shard(shard: tuple[int, int] | str | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    try:
        number, of = shard.split("/") if isinstance(shard, str) else shard
        part = int(number), int(of)
    except ValueError:
        raise Error(f"`{shard}` is no shard", hint='(2, 8) or "2/8" is the second of eight') from None
    if not 1 <= part[0] <= part[1]:
        raise Error(f"there is no shard {part[0]} of {part[1]}", hint="shards are numbered from 1: (1, 4) to (4, 4)")
    return part


