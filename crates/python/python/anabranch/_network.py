"""Scenarios built in Python."""

from __future__ import annotations

import os
from typing import Any, Self

from ._error import Error
from ._policies import Controllers, Schedulers, Stripings
from ._scenario import Scenario


class Network(dict[str, Any]):
    """A scenario that is built by method calls. It is a dictionary with the structure of a scenario
    file:

    >>> net = Network("cable").node("a").node("b").link("a", "b", rate="1 Mbit/s", delay="5 ms")
    >>> net.transfer("a", "b", kind="tcp", bytes="10 kB")
    >>> anabranch.run(net)

    Keyword arguments are the keys of the file. They are checked when the scenario is made
    (:meth:`scenario`, :func:`anabranch.run`, :func:`anabranch.sweep`). A key that is a keyword of
    Python ends in an underscore: ``from_``.
    """

    def __init__(self, name: str | None = None, **keys: Any) -> None:
        """Creates a scenario without nodes. ``keys`` are the top-level keys of the file: ``seed``,
        ``stop``, ``description``.
        """
        super().__init__(**({} if name is None else {"name": name}), **_plain(keys))

    def node(self, name: str, **keys: Any) -> Self:
        """Adds a node: a table of ``[[node]]``."""
        return self.add("node", name=name, **keys)

    def link(self, from_: str, to: str, **keys: Any) -> Self:
        """Adds a link between two nodes: a table of ``[[link]]``."""
        return self.add("link", **{"from": from_}, to=to, **keys)

    def transfer(self, from_: str, to: str, **keys: Any) -> Self:
        """Adds a transfer: a table of ``[[transfer]]``."""
        return self.add("transfer", **{"from": from_}, to=to, **keys)

    def event(self, at: str, action: str, **keys: Any) -> Self:
        """Adds a fault or a change: a table of ``[[event]]``."""
        return self.add("event", at=at, action=action, **keys)

    def add(self, table: str, /, **keys: Any) -> Self:
        """Adds a table to any list of tables: ``net.add("traffic", from_="a", to="b",
        kind="poisson")``.
        """
        entries = self.setdefault(table, [])
        if not isinstance(entries, list):
            raise Error(f"`{table}` is not a list of tables", hint=f"use `table(\"{table}\", ...)`")
        entries.append(_plain(keys))
        return self

    def table(self, path: str, /, **keys: Any) -> Self:
        """Sets keys of a single table: ``net.table("tcp.default", mss=1296)``,
        ``net.table("network", ip=6)``.
        """
        place: dict[str, Any] = self
        for step in path.split("."):
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise Error(f"`{path}` is not a single table", hint=f"use `add(\"{step}\", ...)`")
        place.update(_plain(keys))
        return self

    def scenario(
        self,
        folder: str | os.PathLike[str] = ".",
        *,
        congestion: Controllers | None = None,
        schedulers: Schedulers | None = None,
        striping: Stripings | None = None,
    ) -> Scenario:
        """Returns the scenario. ``folder`` is the folder of the files that it uses; the other
        arguments are policies written in Python that it names.

        Raises :class:`anabranch.Error` with the path of the invalid key.
        """
        return Scenario.from_dict(self, folder, congestion=congestion, schedulers=schedulers, striping=striping)


def _plain(keys: dict[str, Any]) -> dict[str, Any]:
    return {key.removesuffix("_"): value for key, value in keys.items()}
