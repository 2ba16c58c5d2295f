"""Errors of the package."""

from __future__ import annotations


class Error(Exception):
    """Invalid input or a failed job: what is wrong, where, and what to do.

    The package raises this error for all invalid input and failed jobs, except wrong types
    (``TypeError``) and Ctrl-C (``KeyboardInterrupt``).
    """

    message: str
    """What is wrong, and what was expected."""
    place: str | None
    """``file:line:column`` of a scenario or spec, or the value that was set. ``None`` without a
    place.
    """
    hint: str | None
    """What to do, if known."""

    def __init__(self, message: str, place: str | None = None, hint: str | None = None) -> None:
        # Pickle restores an exception from its arguments: all three are needed after a worker process.
        super().__init__(message, place, hint)
        self.message, self.place, self.hint = message, place, hint

    def __str__(self) -> str:
        text = self.message if self.place is None else f"{self.place}: {self.message}"
        return text if self.hint is None else f"{text}\n  hint: {self.hint}"


class NoColumn(Error, KeyError):
    """No column or metric has this name. Also a ``KeyError``, so that ``get`` and ``in`` of
    mappings work.
    """


def missing(package: str, extra: str, what: str) -> Error:
    """The error for an optional package that is not installed."""
    hint = f"pip install {package}, or all of `.[{extra}]` in the folder of this package"
    return Error(f"{what} needs {package}, which is not installed", hint=hint)
