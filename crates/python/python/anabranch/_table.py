"""Tables: results of runs, closed forms and experiments."""

from __future__ import annotations

import html
import json
import math
import operator
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import _anabranch as native
from ._error import Error, NoColumn, missing

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray


class Summary(NamedTuple):
    """A mean and its confidence interval."""

    n: int
    """Number of values."""
    mean: float
    """Mean of the values."""
    ci95: float | None
    """Half the width of the mean's 95 % confidence interval (Student's t); ``None`` for a single
    value.
    """
    min: float
    """Smallest value."""
    max: float
    """Largest value."""


class Survival(NamedTuple):
    """The median of times, some of which are censored: known only to be longer than their run
    (Kaplan and Meier 1958).
    """

    n: int
    """Number of times, including censored ones."""
    censored: int
    """Number of censored times."""
    median: float | None
    """The median; ``None`` if more than half of the times are longer than their observation."""
    low: float | None
    """Lower end of the median's 95 % confidence interval (Brookmeyer and Crowley 1982, by log(-log
    S)); ``None`` if it is unknown.
    """
    high: float | None
    """Upper end of the interval; ``None`` if it is unknown."""


def survival(ended: Iterable[float | None], censored: Iterable[float | None]) -> Survival | None:
    """Returns the median of times, of which those in ``censored`` are only known to be longer than
    the given values. ``None`` values are ignored; without other values the result is ``None``.

    Raises :class:`anabranch.Error` if a value is not finite.
    """
    there = [[float(value) for value in values if value is not None] for values in (ended, censored)]
    found = native.survival(*there)
    return None if found is None else Survival(*found)


def summary(values: Iterable[float | None]) -> Summary | None:
    """Returns mean and 95 % confidence interval of numbers. ``None`` values are ignored; without
    other values the result is ``None``.

    Raises :class:`anabranch.Error` if a value is not finite.
    """
    found = native.summary([float(value) for value in values if value is not None])
    return None if found is None else Summary(*found)


class Table:
    """Rows and columns, with units for columns.

    A table is an Arrow table and implements Arrow's PyCapsule interface: polars, pandas, DuckDB,
    pyarrow and others read it without a copy, as :meth:`to_polars`, :meth:`to_pandas` and
    :meth:`to_arrow` do. Units are metadata (``unit``) of the columns. Quantities are in SI units.
    """

    def __init__(self, frame: native.Frame) -> None:
        self._frame = frame
        self._units = dict(frame.columns())

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._units)

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one: ``s``, ``B``, ``bit/s``, ``J``."""
        return {name: unit for name, unit in self._units.items() if unit != "1"}

    def unit(self, column: str) -> str:
        """Unit of a column; ``1`` without a unit."""
        return self._units[self.resolve(column)]

    def resolve(self, column: str) -> str:
        """Returns the full name of a column: ``latency_s`` is ``transfer.update.latency_s`` if no
        other column has this end.

        Raises :class:`anabranch.Error` if no column or several columns match.
        """
        if column in self._units:
            return column
        ends = [name for name in self._units if name.endswith(f".{column}")]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise NoColumn(f"`{column}` may be several columns", hint="one of " + ", ".join(ends))
        import difflib

        # Users mostly write the ends of names, so that these are compared too.
        known = {name.rpartition(".")[2]: name for name in reversed(self._units)} | {name: name for name in self._units}
        near = [known[name] for name in difflib.get_close_matches(str(column), known, n=1, cutoff=0.6)]
        near = near or [name for name in self._units if str(column) in name][:1]
        hint = f"did you mean `{near[0]}`?" if near else "there is " + ", ".join(self.columns[:8])
        raise NoColumn(f"there is no column `{column}`", hint=hint)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_frame": self._frame.to_ipc()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _frame=native.Frame.from_ipc(state["_frame"]))

    def __len__(self) -> int:
        return len(self._frame)

    def __getitem__(self, column: str) -> list[Any]:
        """The values of a column, ``None`` for missing ones."""
        return cast(list[Any], self._frame.values(self.resolve(column)))

    def __contains__(self, column: object) -> bool:
        """Whether a column has this full name."""
        return isinstance(column, str) and column in self._units

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over rows, like :meth:`rows`. ``table[name]`` and ``name in table`` concern
        columns.
        """
        return self.rows()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterates over rows: dictionaries by column."""
        names = self.columns
        for values in zip(*(self[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def summary(self, column: str) -> Summary | None:
        """Mean and 95 % confidence interval of a column; ``None`` if all values are null."""
        return summary(self[column])

    def survival(self, column: str) -> Survival | None:
        """Median of a latency over all runs, with its 95 % confidence interval. :meth:`summary`
        leaves out the runs in which the transfer was not delivered, which are the slowest.

        For other columns no value is censored. ``None`` if all values are null.
        """
        return survival(self[column], self._censored(column))

    def _censored(self, column: str) -> list[Any]:
        """Time for which transfers of runs without a latency were under way."""
        name = censored_by(self.resolve(column))
        return self[name] if name is not None and name in self else []

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream interface. The requested schema is ignored, as the interface allows."""
        return self._frame.stream()

    def __arrow_c_schema__(self) -> object:
        """Arrow's C data interface: names, types and units."""
        return self._frame.schema()

    def to_arrow(self) -> pyarrow.Table:
        """Returns a pyarrow table, with units in the metadata of its fields. Needs pyarrow (extra
        ``pandas``).
        """
        arrow = _package("pyarrow", "pandas", "to_arrow")
        return cast("pyarrow.Table", arrow.table(self))

    def to_polars(self) -> polars.DataFrame:
        """Returns a polars data frame. Needs polars (extra ``polars``). polars keeps no metadata:
        :attr:`units` has the units.
        """
        return cast("polars.DataFrame", _package("polars", "polars", "to_polars").DataFrame(self))

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a pandas data frame, with units in ``frame.attrs["units"]``. Needs pandas and
        pyarrow (extra ``pandas``).
        """
        _package("pandas", "pandas", "to_pandas")
        frame = cast("pandas.DataFrame", self.to_arrow().to_pandas())
        frame.attrs["units"] = self.units
        return frame

    def to_ipc(self) -> bytes:
        """Returns the table as an Arrow stream. The same rows give the same bytes."""
        return self._frame.to_ipc()

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as Parquet, completely or not at all."""
        _write(Path(path), self._frame.to_parquet())

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as CSV with units in the header (``name [s]``), completely or not at
        all.
        """
        _write(Path(path), self._frame.to_csv())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} rows, {len(self._units)} columns>"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        shown = self._shown()
        head = "".join(
            f"<th>{html.escape(name)}{f' [{html.escape(self._units[name])}]' if self._units[name] != '1' else ''}</th>"
            for name in shown
        )
        columns = [self[name][:10] for name in shown]
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_figure(value))}</td>" for value in row) + "</tr>"
            for row in zip(*columns, strict=True)
        )
        size = f"{len(self)} rows, {len(self._units)} columns"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{size}</p>"

    def _shown(self) -> list[str]:
        return self.columns[:12]


def censored_by(metric: str) -> str | None:
    """The column with the censored times of a latency; ``None`` if the metric is not the latency of
    a transfer.
    """
    place = metric.removesuffix(".latency_s")
    return f"{place}.latency_censored_s" if place != metric and place.startswith("transfer.") else None


class Metrics(Mapping[str, Summary]):
    """The metrics of runs by full name or by the end of a name, each with its mean and 95 %
    confidence interval. A metric without a value in any run is ``Summary(n=0, mean=nan, ci95=None,
    min=nan, max=nan)``.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __getitem__(self, name: str) -> Summary:
        whole = self._result.resolve(name)
        if not self._is_metric(whole):
            raise NoColumn(f"`{whole}` is no metric", hint=f'its values are in `result["{whole}"]`')
        return self._result.summary(whole) or Summary(0, math.nan, None, math.nan, math.nan)

    def __iter__(self) -> Iterator[str]:
        return filter(self._is_metric, self._result.columns)

    def _is_metric(self, name: str) -> bool:
        return name not in {"point", "seed", "run", "scenario_hash", "version", *self._result.parameters}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        lines = []
        for name in self:
            found, unit = self[name], self._result.unit(name)
            text = "none" if found.n == 0 else f"{found.mean:.6g}"
            if found.ci95 is not None:
                text += f" ± {found.ci95:.2g}"
            lines.append(f"{name}: {text}{'' if unit == '1' else f' {unit}'}")
        return "\n".join(lines)


class Result(Table):
    """Results of runs: a row for each run, in the order of points, seeds and runs.

    A row has ``point`` (a number), the parameters that differ from the scenario's text, ``seed``,
    ``run``, ``scenario_hash``, ``version``, and every metric, which is null if the run does not
    have it.
    """

    def __init__(
        self,
        frame: native.Frame,
        *,
        name: str,
        parameters: Sequence[str],
        varied: Sequence[str],
        missing: int,
        unmet: Sequence[int],
        made: native.Sweep | None = None,
    ) -> None:
        super().__init__(frame)
        self._made = made
        self.name: str = name
        """Name of the sweep or the scenario."""
        self.parameters: list[str] = list(parameters)
        """Parameters that differ from the scenario's text: columns named by their paths."""
        self.varied: list[str] = list(varied)
        """The parameters that distinguish points."""
        self.missing: int = missing
        """Number of runs without a row, such as those of other shards."""
        self.unmet: list[int] = list(unmet)
        """Points whose confidence interval is wider than requested."""

    def __getstate__(self) -> dict[str, Any]:
        # The sweep behind the rows is not pickled.
        return {**super().__getstate__(), "_made": None}

    @property
    def metrics(self) -> Metrics:
        """The metrics by name, each over all rows."""
        return Metrics(self)

    def groups(self, by: str | Sequence[str], metric: str) -> dict[Any, list[Any]]:
        """Returns the values of a metric in the order of rows, grouped by one or several
        columns."""
        keys = [self[by]] if isinstance(by, str) else [self[name] for name in by]
        groups: dict[Any, list[Any]] = {}
        for key, value in zip(zip(*keys, strict=True), self[metric], strict=True):
            groups.setdefault(key[0] if isinstance(by, str) else key, []).append(value)
        return groups

    def events(self, row: int = 0) -> Table:
        """Returns the events of the run of a row: packets sent, received, lost and discarded,
        frames, connections, faults.

        The run is repeated with the same outcome. Each event has a row with ``time``, ``event``,
        ``node``, ``link``, ``packet``, ``flow``, ``bytes``, ``seq`` and ``len`` (of TCP segments
        and parts of files), ``value`` (seconds until a packet leaves its queue, or duration of a
        frame; a new rate in bit/s) and ``detail`` (the reason of a loss, a note).

        Raises :class:`anabranch.Error` if the result was unpickled, was read from a file, or
        belongs to an experiment.
        """
        return Table(native.event_table(self._record(row, "events")))

    def series(self, row: int = 0, *, every: str = "100 ms") -> dict[str, Table]:
        """Returns time series of the run of a row, by name: ``connections`` (windows, round-trip
        times, bytes), ``queues`` of cables, ``radios`` (energy) and ``rdca`` (rates of senders);
        ``flows`` has a row for each flow of probes of that kind. Tables without rows are left out.

        The run is repeated with the same outcome. A row describes the state from ``time_s`` on. A
        row is written at each multiple of ``every`` at which a value differs from the previous row,
        and at the end. The columns are those of ``anabranch run --series``.

        Raises :class:`anabranch.Error` like :meth:`events`, and if ``every`` is not a time.
        """
        made, point, seed, run = self._again(row)
        return {name: Table(frame) for name, frame in made.series(point, seed, run, every)}

    def replay(self, row: int = 0, *, start: float = 0.0, end: float | None = None, limit: int = 5_000_000) -> Replay:
        """Returns a page that replays the run of a row, as ``anabranch view`` makes it. Notebooks
        show it inline.

        ``start`` and ``end`` are seconds of the run, ``limit`` is the largest number of rows of the
        page. The run is repeated.

        Raises :class:`anabranch.Error` like :meth:`events`, and if the page would exceed ``limit``.
        """
        return Replay(native.replay_page(self._record(row, "events"), start, end, limit))

    def capture(self, path: str | os.PathLike[str], row: int = 0) -> None:
        """Writes every packet of the run of a row as pcapng for Wireshark, like ``anabranch run
        --pcap``. The run is repeated.
        """
        _write(Path(path), self._record(row, "capture"))

    def write_events(self, path: str | os.PathLike[str], row: int = 0) -> None:
        """Writes the event log of the run of a row for ``anabranch view``, like ``anabranch run
        --events``.
        """
        _write(Path(path), self._record(row, "events"))

    def write_trace(self, path: str | os.PathLike[str], row: int = 0) -> None:
        """Writes the events of the run of a row as text, like ``anabranch run --trace``."""
        _write(Path(path), self._record(row, "trace"))

    def _record(self, row: int, what: str) -> bytes:
        made, point, seed, run = self._again(row)
        return made.record(point, seed, run, what)

    def _again(self, row: int) -> tuple[native.Sweep, int, int, int]:
        """The sweep that can repeat the run of a row, and the row's point, seed and run number."""
        if self._made is None:
            hint = "run its scenario again: the same seed and run number make the same run"
            raise Error("a result that was unpickled or read from a file cannot make its runs again", hint=hint)
        row = operator.index(row)
        if not -len(self) <= row < len(self):
            raise Error(f"there is no row {row}", hint=f"the result has {len(self)} rows, from 0")
        return self._made, self["point"][row], self["seed"][row], self["run"][row]

    def means(self, metric: str, by: str | Sequence[str] | None = None) -> Table:
        """Returns mean and 95 % confidence interval of a metric for every point, or by the columns
        that ``by`` names.

        The table has these columns and ``n``, ``mean``, ``ci95``, ``min``, ``max``, ``missing``
        (number of runs without the metric). If the metric is the latency of a transfer that was not
        delivered in some run, it also has ``median``, ``median_low``, ``median_high`` and
        ``censored``, as in :meth:`survival`.
        """
        names = [by] if isinstance(by, str) else list(by if by is not None else self.varied)
        names = [self.resolve(name) for name in names]
        metric = self.resolve(metric)
        if not names:
            groups: dict[Any, list[Any]] = {(): self[metric]}
        else:
            groups = self.groups(names, metric)
        found = [summary(values) for values in groups.values()]
        unit = self._units[metric]
        columns: list[tuple[str, str, Sequence[object]]] = [
            (name, self._units[name], [key[i] for key in groups]) for i, name in enumerate(names)
        ]
        columns.append(("n", "1", [0 if one is None else one.n for one in found]))
        for i, figure in enumerate(["mean", "ci95", "min", "max"], start=1):
            columns.append((figure, unit, [None if one is None else one[i] for one in found]))
        gaps = [sum(value is None for value in values) for values in groups.values()]
        columns.append(("missing", "1", gaps))
        censored = censored_by(metric)
        if censored is not None and censored in self:
            lost = self.groups(names, censored) if names else {(): self[censored]}
            medians = [survival(values, lost[key]) for key, values in groups.items()]
            for field, figure in [("median", "median"), ("low", "median_low"), ("high", "median_high")]:
                columns.append((figure, unit, [None if one is None else getattr(one, field) for one in medians]))
            columns.append(("censored", "1", [0 if one is None else one.censored for one in medians]))
        return table(columns)

    def to_xarray(self) -> xarray.Dataset:
        """Returns the metrics as an xarray data set. Needs xarray (extra ``xarray``).

        Dimensions are the parameters that vary, ``seed`` and ``run``. If the points do not form a
        complete grid, such as those of ``zip``, ``point`` and ``sample``, they are one dimension
        ``point``, and the parameters are coordinates along it. Constant parameters are scalar
        coordinates. Units are in the attribute ``units``. A missing run or metric is ``nan``.
        """
        from ._xarray import dataset

        return dataset(self)

    def _shown(self) -> list[str]:
        first = ["point", *self.parameters, "seed", "run"]
        # Metrics of transfers come first, because most users look for them.
        metrics = sorted(self.metrics, key=lambda name: not name.startswith("transfer."))
        return [*first, *metrics[: max(12 - len(first), 4)]]


class Replay:
    """A page that replays a run. Notebooks show it inline. The page loads no other files."""

    def __init__(self, page: str) -> None:
        self.html: str = page
        """The HTML of the page."""

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file for a browser."""
        _write(Path(path), self.html.encode())

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" width="100%" height="800" style="border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<Replay: {len(self.html)} characters of HTML; `write(path)` saves it>"


def read_parquet(path: str | os.PathLike[str]) -> Result:
    """Reads a result from a file of :meth:`Table.write_parquet`, or from the sweep folder of the
    command-line program or its ``table.parquet``. Rows, axes, units and seeds are preserved. The
    runs cannot be repeated, because the file does not contain the scenario.

    Raises :class:`anabranch.Error` if the file cannot be read, or has no rows of runs.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "table.parquet"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Error(f"cannot read it: {error.strerror}", str(path), "name a Parquet file that a sweep has written") from None
    try:
        frame = native.Frame.from_parquet(content)
    except Error as error:
        raise Error(error.message, str(path), error.hint) from None
    about = frame.metadata()
    if "varied" not in about:
        hint = "a Parquet file of `Result.write_parquet` or of `anabranch sweep` has them; pandas reads any"
        raise Error("the table has no rows of runs", str(path), hint)
    parameters, varied, unmet = (json.loads(about[key]) for key in ("parameters", "varied", "unmet"))
    return Result(
        frame, name=about["sweep"], parameters=parameters, varied=varied, missing=int(about["missing"]), unmet=unmet
    )


def table(columns: Iterable[tuple[str, str, Sequence[object]]]) -> Table:
    """Creates a table from columns: name, unit, values."""
    return Table(native.Frame.of([(name, unit, _kind(values), _plain(values)) for name, unit, values in columns]))


def _kind(values: Sequence[object]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    # A column of nulls only counts as a column of numbers.
    return "float" if kinds <= {int, float} else "str"


def _plain(values: Sequence[object]) -> Sequence[object]:
    if _kind(values) != "str":
        return list(values)
    return [value if value is None or isinstance(value, str) else str(value) for value in values]


def _figure(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _package(name: str, extra: str, what: str) -> ModuleType:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing(name, extra, what) from None


def _write(path: Path, content: bytes) -> None:
    # In the same folder, so that `os.replace` is atomic.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        try:
            with open(beside, "xb") as file:
                file.write(content)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise Error(f"cannot write it: {error.strerror}", str(path), "choose a path that you can write") from None
