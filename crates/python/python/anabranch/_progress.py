"""Progress bars in terminals and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = bool | Callable[[int, int], object]
"""``True``: a progress bar, if tqdm is installed and the output is a terminal or notebook.
``False``: nothing. A function: called with the number of finished runs and the number of runs that
are known to be needed.
"""


@contextmanager
def shown(progress: Progress, what: str) -> Iterator[Callable[[int, int], object] | None]:
    """The function to call with the progress, or ``None``."""
    if callable(progress):
        yield progress
        return
    bar = _bar(what) if progress else None
    if bar is None:
        yield None
        return

    def show(made: int, total: int) -> None:
        bar.total = total
        bar.update(made - bar.n)

    try:
        yield show
    finally:
        bar.close()


def _bar(what: str) -> Any:
    notebook = "ipykernel" in sys.modules
    if not notebook and not sys.stderr.isatty():
        return None
    try:
        # A notebook without widgets shows the text bar.
        if notebook and _has_widgets():
            from tqdm.notebook import tqdm
        else:
            from tqdm.std import tqdm  # type: ignore[assignment]
    except ImportError:
        return None
    return tqdm(desc=what, unit="run", leave=False, total=0)


def _has_widgets() -> bool:
    import importlib.util

    return importlib.util.find_spec("ipywidgets") is not None
