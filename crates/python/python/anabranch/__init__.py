"""Anabranch: simulation of transports over lossy, low-power networks with several gateways to the
Internet.

>>> import anabranch
>>> network = anabranch.Scenario.from_file("scenarios/three-gateways.toml")
>>> result = anabranch.run(network.set("link.*.loss", "2 %"), runs=20)
>>> result.metrics["transfer.update.latency_s"].mean

* :class:`Scenario`: a network with its transfers, traffic and events. :class:`Network` builds one
  without a file.
* :func:`run`: a number of runs of a scenario. :func:`sweep`: grids and samples over parameters, on
  all cores or on a cluster.
* :mod:`anabranch.plan`: closed forms. :mod:`anabranch.lab`: the papers' experiments.
  :mod:`anabranch.plot`: plots.
* :func:`compare`: paired comparison of variants, with intervals.
* :class:`Controller`, :class:`Scheduler`, :class:`Striping`: policies written in Python
  (:mod:`anabranch.policy`).
* :class:`Table`: results, with conversions to polars, pandas and Arrow.

Invalid input raises :class:`Error`, with place and hint. The simulator does not hold the
interpreter's lock, and Ctrl-C stops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import lab, plan, policy
from ._anabranch import VERSION as __version__
from ._compare import Comparison, compare
from ._error import Error
from ._network import Network
from ._progress import Progress
from ._scenario import Entries, Scenario, Section
from ._sweep import Spec, run, sweep
from ._table import Metrics, Replay, Result, Summary, Survival, Table, read_parquet, summary, survival

from .policy import Controller, Scheduler, Striping

if TYPE_CHECKING:
    from . import plot

__all__ = [
    "Comparison",
    "Controller",
    "Entries",
    "Error",
    "Metrics",
    "Network",
    "Progress",
    "Replay",
    "Result",
    "Scenario",
    "Scheduler",
    "Section",
    "Spec",
    "Striping",
    "Summary",
    "Survival",
    "Table",
    "__version__",
    "compare",
    "lab",
    "plan",
    "plot",
    "policy",
    "read_parquet",
    "run",
    "summary",
    "survival",
    "sweep",
]


def __getattr__(name: str) -> object:
    # Imported on first use: matplotlib is optional, and its import is slow.
    if name == "plot":
        import importlib

        return importlib.import_module(f"{__name__}.plot")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
