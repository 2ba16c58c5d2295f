"""Python values as TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ._error import Error

HEAD = "# made by the package anabranch from Python values"
"""First line of a generated text, to which errors about the text as a whole refer."""


def document(values: Mapping[str, object]) -> tuple[str, list[str]]:
    """Converts values to the text of a TOML file with one key per line, and returns with it for
    each line the path of its key as the caller wrote it.
    """
    lines, paths = [HEAD], [""]

    def entry(line: str, path: str) -> None:
        lines.append(line)
        paths.append(path)

    def table(values: Mapping[str, object], header: str, path: str) -> None:
        tables = {}
        for key, value in values.items():
            below = _below(path, str(key))
            # TOML has no null: a key with the value `None` is left out.
            if value is None:
                continue
            if isinstance(value, Mapping) or _is_tables(value):
                tables[key] = value
                continue
            try:
                entry(f"{toml(str(key))} = {toml(value)}", below)
            except TypeError as error:
                raise TypeError(f"{below}: {error}") from None
        for key, value in tables.items():
            name, below = f"{header}{toml(str(key))}", _below(path, str(key))
            if isinstance(value, Mapping):
                entry(f"[{name}]", below)
                table(value, f"{name}.", below)
                continue
            assert isinstance(value, list | tuple)
            for number, item in enumerate(value):
                own = item.get("name")
                place = _below(below, own if isinstance(own, str) else str(number))
                entry(f"[[{name}]]", place)
                table(item, f"{name}.", place)

    table(values, "", "")
    return "\n".join(lines) + "\n", paths


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(item, Mapping) for item in value)


def _below(path: str, key: str) -> str:
    # A key that is itself a path, as in the grid of a sweep.
    if "." in key:
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


@contextmanager
def said(name: str, paths: Sequence[str] | None) -> Iterator[None]:
    """Replaces the place of an error in the text called ``name`` by the path of the value, if the
    text was made from values.
    """
    try:
        yield
    except Error as error:
        found = re.fullmatch(rf"{re.escape(name)}(?::(\d+):\d+)?", error.place or "")
        if found is None or paths is None:
            raise
        line = int(found[1] or 1)
        path = paths[line - 1] if line <= len(paths) else ""
        raise Error(error.message, path or name, error.hint) from None


def toml(value: object) -> str:
    """A value in TOML syntax, for the right side of ``=``; tables are inline."""
    # Scalars and arrays of numpy.
    if not isinstance(value, bool | int | float | str) and callable(getattr(value, "tolist", None)):
        value = value.tolist()  # type: ignore[attr-defined]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Error(f"{value} is too large a number for a scenario")
        return str(int(value))
    if isinstance(value, float):
        # The `repr` of a subclass, such as numpy's `float64`, is not valid TOML.
        value = float(value)
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        # JSON allows an unescaped DEL (U+007F), TOML does not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    if hasattr(value, "__iter__"):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    raise TypeError(f"a scenario has no values of type {type(value).__name__}")
