"""Scenarios: a network with its transfers, traffic and events."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, overload

from . import _anabranch as native
from ._error import Error
from ._policies import Brought, Controllers, Schedulers, Stripings, brought
from ._toml import document, said, toml
from .policy import Controller, Scheduler, Start, Striping


class Section(Mapping[str, Any]):
    """A table of a scenario. ``section["rate"]`` and ``section.rate`` are equivalent; lists of
    tables are :class:`Entries`.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._values[key])

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"there is no `{key}` here, only {', '.join(self._values)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"Section({dict(self._values)!r})"


class Entries(Sequence[Any]):
    """A list of a scenario. Its tables are found by index or by ``name``:
    ``scenario.link["radio1"]``.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    @overload
    def __getitem__(self, key: int | str) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> Entries: ...
    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, slice):
            return Entries(self._values[key])
        if isinstance(key, int):
            return _wrapped(self._values[key])
        for value in self._values:
            if isinstance(value, Mapping) and value.get("name") == key:
                return _wrapped(value)
        if key.isdigit():
            return _wrapped(self._values[int(key)])
        raise KeyError(key)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Entries({list(self._values)!r})"


def _wrapped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Section(value)
    return Entries(value) if isinstance(value, list) else value


class Scenario:
    """A network with its transfers, traffic and events, as in a scenario file.

    A scenario is immutable: :meth:`set` returns a new one. Values are read by path
    (``scenario["link.radio1.rate"]``) or by attribute (``scenario.link["radio1"].rate``), including
    defaults that the file does not mention. Scenarios with the same resolved values (without the
    seed) are equal and have the same :attr:`hash`.
    """

    def __init__(
        self,
        text: str,
        *,
        name: str = "scenario",
        folder: str | os.PathLike[str] = ".",
        congestion: Controllers | None = None,
        schedulers: Schedulers | None = None,
        striping: Stripings | None = None,
        _set: tuple[str, ...] = (),
        _paths: Sequence[str] | None = None,
        _policies: tuple[Brought, ...] = (),
    ) -> None:
        """Parses the text of a scenario file.

        ``name`` is the name in error messages, ``folder`` the folder of the files that the scenario
        uses. ``congestion``, ``schedulers`` and ``striping`` are policies written in Python that
        the text may name (:mod:`anabranch.policy`), by their names.

        Raises :class:`anabranch.Error` with line and column if the text is not a valid scenario.
        """
        self._text, self._name, self._folder, self._set, self._paths = text, name, Path(folder), _set, _paths
        self._policies = brought(_policies, congestion, schedulers, striping)
        with self._said():
            self._native = native.Scenario(name, text, _set, self._folder, self._policies)
        self._resolved: dict[str, Any] = json.loads(self._native.resolved())

    def _said(self) -> AbstractContextManager[None]:
        """Translates places in a text that was made from values into the paths of these values."""
        return said(self._name, self._paths)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        congestion: Controllers | None = None,
        schedulers: Schedulers | None = None,
        striping: Stripings | None = None,
    ) -> Scenario:
        """Reads a scenario file. The files that it uses are relative to it. ``congestion``,
        ``schedulers`` and ``striping`` are policies written in Python that it may name.

        Raises :class:`anabranch.Error` if the file cannot be read or is not a valid scenario.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Error(f"cannot read it: {reason}", str(path), "name a scenario file, such as those in `scenarios`") from None
        return cls(text, name=str(path), folder=path.parent, congestion=congestion, schedulers=schedulers, striping=striping)

    @classmethod
    def from_toml(
        cls,
        text: str,
        folder: str | os.PathLike[str] = ".",
        *,
        congestion: Controllers | None = None,
        schedulers: Schedulers | None = None,
        striping: Stripings | None = None,
    ) -> Scenario:
        """Parses the text of a scenario file. ``folder`` is the folder of the files that the
        scenario uses; the other arguments are those of :meth:`from_file`.
        """
        return cls(text, folder=folder, congestion=congestion, schedulers=schedulers, striping=striping)

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        folder: str | os.PathLike[str] = ".",
        *,
        congestion: Controllers | None = None,
        schedulers: Schedulers | None = None,
        striping: Stripings | None = None,
    ) -> Scenario:
        """Creates a scenario from a dictionary with the structure of a scenario file: tables are
        dictionaries, and lists of tables are lists of dictionaries. A key with the value ``None``
        is ignored. :meth:`to_dict` returns such a dictionary, and :class:`anabranch.Network` builds
        one.

        Raises :class:`anabranch.Error` with the path of the key, such as ``link.radio1.rate``, if
        the dictionary is not a valid scenario.
        """
        text, paths = document(values)
        return cls(text, folder=folder, _paths=paths, congestion=congestion, schedulers=schedulers, striping=striping)

    def to_toml(self) -> str:
        """Returns the text of a scenario file with all defaults and without the scenario's own
        axes.
        """
        return self._native.to_toml()

    @overload
    def set(self, path: str, value: object, /) -> Scenario: ...
    @overload
    def set(self, values: Mapping[str, object], /) -> Scenario: ...
    def set(self, path: str | Mapping[str, object], value: object = None, /) -> Scenario:
        """Returns another scenario with one changed value, ``scenario.set("link.radio1.rate", "56
        kbit/s")``, or with several values that are only valid together, as a mapping of paths to
        values.

        Steps of the path are keys; in a list of tables an index, the ``name`` of a table, or ``*``
        for all. Quantities are strings with units, as in files.

        Raises :class:`anabranch.Error` if the path does not exist or the value is invalid.
        """
        overrides = [*self._set]
        for where, what in ({path: value} if isinstance(path, str) else path).items():
            if "=" in where:
                hint = "a path is keys joined by dots; the value is the second argument"
                raise Error(f"`{where}` is no path", hint=hint)
            overrides.append(f"{where}={toml(what)}")
        return self._other(tuple(overrides), self._policies)

    def with_congestion(self, name: str, controller: Callable[[Start], Controller], /) -> Scenario:
        """Returns another scenario whose TCP profiles may name a congestion control written in
        Python: ``congestion = "NAME"``. Each connection has its own object, made by calling
        ``controller``: a subclass of :class:`anabranch.Controller`, or a callable that returns an
        object of one, such as ``functools.partial(Mine, gain=2)``.

        Raises :class:`anabranch.Error` if the name or the class is invalid.
        """
        return self._other(self._set, brought(self._policies, {name: controller}))

    def with_scheduler(self, name: str, scheduler: Callable[[], Scheduler], /) -> Scenario:
        """Returns another scenario whose transfers may name a scheduler of Multipath TCP:
        ``mptcp.scheduler = "NAME"``, a subclass of :class:`anabranch.Scheduler`. Otherwise like
        :meth:`with_congestion`.
        """
        return self._other(self._set, brought(self._policies, None, {name: scheduler}))

    def with_striping(self, name: str, striping: Callable[[], Striping], /) -> Scenario:
        """Returns another scenario whose transfers may name a striping policy of SET:
        ``set.striping = "NAME"``, a subclass of :class:`anabranch.Striping`. Otherwise like
        :meth:`with_congestion`.
        """
        return self._other(self._set, brought(self._policies, None, None, {name: striping}))

    def _other(self, overrides: tuple[str, ...], policies: tuple[Brought, ...]) -> Scenario:
        name, folder = self._name, self._folder
        return Scenario(self._text, name=name, folder=folder, _set=overrides, _paths=self._paths, _policies=policies)

    def points(self) -> list[tuple[dict[str, Any], Scenario]]:
        """Returns the combinations of the scenario's own axes (its table ``sweep``): the values by
        path, and the scenario with these values. Without axes it returns one point.
        """
        with self._said():
            points = self._native.points()
        same: dict[str, Any] = {"name": self._name, "folder": self._folder, "_policies": self._policies}
        return [(json.loads(axes), Scenario(text, **same)) for axes, text in points]

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved scenario without its seed, name and description, in hexadecimal:
        the column ``scenario_hash`` of tables. For policies written in Python it covers the source
        of the class, but not the other code of its module.
        """
        return self._native.hash()

    @property
    def name(self) -> str:
        """Name in reports."""
        return str(self._resolved["name"])

    @property
    def seed(self) -> int:
        """Root of the random streams, unless a run has another seed."""
        return int(self._resolved["seed"])

    @property
    def stop(self) -> float:
        """Latest end of the simulation, in seconds."""
        return self._native.stop()

    @property
    def folder(self) -> Path:
        """Folder of the files that the scenario uses."""
        return self._folder

    def to_dict(self) -> dict[str, Any]:
        """Returns all values, including defaults, as plain Python objects."""
        copy: dict[str, Any] = json.loads(self._native.resolved())
        return copy

    def __getitem__(self, path: str) -> Any:
        """The value at a path: a number, a string, a :class:`Section`, or :class:`Entries`."""
        found: Any = Section(self._resolved)
        try:
            for step in path.split("."):
                found = found[step]
        except (KeyError, IndexError, TypeError):
            raise KeyError(path) from None
        return found

    def __getattr__(self, key: str) -> Any:
        # Pickle looks up special methods before `_resolved` exists, which would recurse.
        if key.startswith("_"):
            raise AttributeError(key)
        return getattr(Section(self._resolved), key)

    def __contains__(self, path: str) -> bool:
        try:
            self[path]
        except KeyError:
            return False
        return True

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._resolved]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        nodes, transfers = len(self._resolved.get("node", ())), len(self._resolved.get("transfer", ()))
        return f"<Scenario {self.name!r}: {nodes} nodes, {transfers} transfers, {self.hash[:12]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._text, self._name, str(self._folder), self._set, self._paths, self._policies)


def _again(
    text: str,
    name: str,
    folder: str,
    overrides: tuple[str, ...],
    paths: Sequence[str] | None = None,
    policies: tuple[Brought, ...] = (),
) -> Scenario:
    return Scenario(text, name=name, folder=folder, _set=overrides, _paths=paths, _policies=policies)


def understood(scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> Scenario:
    """Converts each accepted form of a scenario to a :class:`Scenario`."""
    if isinstance(scenario, Scenario):
        return scenario
    return Scenario.from_dict(scenario) if isinstance(scenario, Mapping) else Scenario.from_file(scenario)
