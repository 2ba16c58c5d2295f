"""Scenarios: a network and what goes on in it."""

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
    """A table of a scenario: ``section["rate"]`` and ``section.rate`` are the same; lists of tables are :class:`Entries`."""

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
    """A list of a scenario; its tables by number, or by their ``name``: ``scenario.link["radio1"]``."""

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
    """A network and what goes on in it, as a scenario file has it.

    A scenario does not change: :meth:`set` makes another one. Reading goes by paths (``scenario["link.radio1.rate"]``) or by
    attributes (``scenario.link["radio1"].rate``), and finds defaults too, which the file need not name. Equal scenarios
    (after defaults, without the seed) are equal and have the same :attr:`hash`.
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
        """Understands the text of a scenario file.

        ``name`` is what errors call it, ``folder`` where the files are that it carries. ``congestion``, ``schedulers`` and ``striping``
        are policies written in Python that the text may name (:mod:`anabranch.policy`), by those names.

        Raises :class:`anabranch.Error` with line and column if the text is no scenario.
        """
        self._text, self._name, self._folder, self._set, self._paths = text, name, Path(folder), _set, _paths
        self._policies = brought(_policies, congestion, schedulers, striping)
        with self._said():
            self._native = native.Scenario(name, text, _set, self._folder, self._policies)
        self._resolved: dict[str, Any] = json.loads(self._native.resolved())

    def _said(self) -> AbstractContextManager[None]:
        """Errors in the text name the values that it was made of, if it was."""
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
        """Reads a scenario file. Files that it carries are looked for beside it. ``congestion``, ``schedulers`` and ``striping`` are
        policies written in Python that it may name.

        Raises :class:`anabranch.Error` if it cannot be read or is no scenario.
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
        """Understands the text of a scenario file; ``folder`` is where the files are that it carries, and the rest as for
        :meth:`from_file`."""
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
        """Understands a dictionary that says what a scenario file says: tables are dictionaries, and lists of tables are lists of
        them. A value ``None`` is a key left out. :meth:`to_dict` gives such a dictionary, and :class:`anabranch.Network` builds one.

        Raises :class:`anabranch.Error` with the path of the key, as in ``link.radio1.rate``, if it is no scenario.
        """
        text, paths = document(values)
        return cls(text, folder=folder, _paths=paths, congestion=congestion, schedulers=schedulers, striping=striping)

    def to_toml(self) -> str:
        """The scenario as a file, with every default filled in and without the axes of its own sweep."""
        return self._native.to_toml()

    @overload
    def set(self, path: str, value: object, /) -> Scenario: ...
    @overload
    def set(self, values: Mapping[str, object], /) -> Scenario: ...
    def set(self, path: str | Mapping[str, object], value: object = None, /) -> Scenario:
        """Another scenario with one value changed, ``scenario.set("link.radio1.rate", "56 kbit/s")``, or with several that only
        go together, as a mapping of paths to values.

        Steps of the path are keys; in a list of tables a number, the ``name`` of one, or ``*`` for all. Quantities are texts
        with units, as in files.

        Raises :class:`anabranch.Error` if there is no such place or the value cannot be.
        """
        overrides = [*self._set]
        for where, what in ({path: value} if isinstance(path, str) else path).items():
            if "=" in where:
                hint = "a path is keys joined by dots; the value is the second argument"
                raise Error(f"`{where}` is no path", hint=hint)
            overrides.append(f"{where}={toml(what)}")
        return self._other(tuple(overrides), self._policies)

    def with_congestion(self, name: str, controller: Callable[[Start], Controller], /) -> Scenario:
        """Another scenario, whose TCP profiles may name a congestion control written in Python: ``congestion = "NAME"``. A new object is
        made for each connection, by calling ``controller``: a subclass of :class:`anabranch.Controller`, or whatever makes an
        object of one, such as ``functools.partial(Mine, gain=2)``.

        Raises :class:`anabranch.Error` if it is no name, or no such class.
        """
        return self._other(self._set, brought(self._policies, {name: controller}))

    def with_scheduler(self, name: str, scheduler: Callable[[], Scheduler], /) -> Scenario:
        """Another scenario, whose transfers may name a scheduler of Multipath TCP: ``mptcp.scheduler = "NAME"``, a subclass of
        :class:`anabranch.Scheduler`. Otherwise as :meth:`with_congestion`."""
        return self._other(self._set, brought(self._policies, None, {name: scheduler}))

    def with_striping(self, name: str, striping: Callable[[], Striping], /) -> Scenario:
        """Another scenario, whose transfers may name a striping policy of SET: ``set.striping = "NAME"``, a subclass of
        :class:`anabranch.Striping`. Otherwise as :meth:`with_congestion`."""
        return self._other(self._set, brought(self._policies, None, None, {name: striping}))

    def _other(self, overrides: tuple[str, ...], policies: tuple[Brought, ...]) -> Scenario:
        name, folder = self._name, self._folder
        return Scenario(self._text, name=name, folder=folder, _set=overrides, _paths=self._paths, _policies=policies)

    def points(self) -> list[tuple[dict[str, Any], Scenario]]:
        """The combinations of the scenario's own axes (its table ``sweep``): the values by path, and the scenario with them.

        One point without axes if it has none.
        """
        with self._said():
            points = self._native.points()
        same: dict[str, Any] = {"name": self._name, "folder": self._folder, "_policies": self._policies}
        return [(json.loads(axes), Scenario(text, **same)) for axes, text in points]

    @property
    def hash(self) -> str:
        """SHA-256 over the resolved scenario without its seed, name and description, in hexadecimal: what tables call ``scenario_hash``.
        Of policies written in Python that it names, it covers the source of the class, and not what that uses of its module."""
        return self._native.hash()

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return str(self._resolved["name"])

    @property
    def seed(self) -> int:
        """The root of its random streams, unless a run is told otherwise."""
        return int(self._resolved["seed"])

    @property
    def stop(self) -> float:
        """When the simulation ends at the latest, in seconds."""
        return self._native.stop()

    @property
    def folder(self) -> Path:
        """Where the files are that it carries."""
        return self._folder

    def to_dict(self) -> dict[str, Any]:
        """All that it says, defaults included, as plain Python."""
        copy: dict[str, Any] = json.loads(self._native.resolved())
        return copy

    def __getitem__(self, path: str) -> Any:
        """What stands at a path: a number, a text, a :class:`Section`, or :class:`Entries`."""
        found: Any = Section(self._resolved)
        try:
            for step in path.split("."):
                found = found[step]
        except (KeyError, IndexError, TypeError):
            raise KeyError(path) from None
        return found

    def __getattr__(self, key: str) -> Any:
        # Pickle asks before there is anything.
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
    """A scenario, whichever way it was given."""
    if isinstance(scenario, Scenario):
        return scenario
    return Scenario.from_dict(scenario) if isinstance(scenario, Mapping) else Scenario.from_file(scenario)
