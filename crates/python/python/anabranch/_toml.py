"""Python values as TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from ._error import Error


def toml(value: object) -> str:
    """A value as it stands to the right of ``=`` in TOML; tables are inline."""
    # numpy's scalars and arrays.
    if not isinstance(value, bool | int | float | str) and callable(getattr(value, "tolist", None)):
        value = value.tolist()  # type: ignore[attr-defined]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Error(f"{value} is too large a number for a scenario")
        return str(int(value))
    if isinstance(value, float):
        # Its own words, whatever a subclass such as numpy's `float64` prints.
        value = float(value)
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        # JSON lets a delete stand as it is, TOML does not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    if hasattr(value, "__iter__"):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    raise TypeError(f"a scenario has no values of type {type(value).__name__}")
