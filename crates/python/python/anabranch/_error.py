"""What goes wrong."""

from __future__ import annotations


class Error(Exception):
    """Something cannot be done: what, where, and what to do about it.

    Whatever the package raises on bad input or a failed job is one of these; wrong types are ``TypeError``, and Ctrl-C is
    ``KeyboardInterrupt``.
    """

    message: str
    """What is wrong, and what was expected."""
    place: str | None
    """Where: ``file:line:column`` of a scenario or spec, or the value that was set. ``None`` if it has no place."""
    hint: str | None
    """What to do about it, if anything is known."""

    def __init__(self, message: str, place: str | None = None, hint: str | None = None) -> None:
        # All three are arguments, so that the error survives its way from a worker process.
        super().__init__(message, place, hint)
        self.message, self.place, self.hint = message, place, hint

    def __str__(self) -> str:
        text = self.message if self.place is None else f"{self.place}: {self.message}"
        return text if self.hint is None else f"{text}\n  hint: {self.hint}"


class NoColumn(Error, KeyError):
    """There is no column, or no metric, of this name, so that mappings of them have a ``get`` and an ``in``."""


def missing(package: str, extra: str, what: str) -> Error:
    """An optional dependency is not there."""
    hint = f"pip install {package}, or all of `.[{extra}]` in the folder of this package"
    return Error(f"{what} needs {package}, which is not installed", hint=hint)
