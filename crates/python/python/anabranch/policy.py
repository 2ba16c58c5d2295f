"""Policies written in Python: congestion control, schedulers of Multipath TCP, striping policies of
SET.

>>> class Half(anabranch.Controller):
...     def on_ack(self, now, view, acked):
...         self.cwnd = min(self.cwnd + acked / 2, view.limit)
...     def on_loss(self, now, view):
...         self.cwnd = self.ssthresh = max(view.in_flight / 2, view.least_ssthresh)
...     def on_timeout(self, now, view):
...         self.on_loss(now, view)
>>> scenario = anabranch.Scenario.from_file("scenarios/dumbbell.toml").with_congestion("half", Half)
>>> anabranch.run(scenario.set("tcp.default.congestion", "half"))

Simulated time does not advance during a method; ``now`` is in seconds since the start of the
simulation. Windows are bytes, times are seconds, rates are bytes per second. An exception in a
method ends the run, and is raised by the function that started it. For reproducible results, draw
random numbers from ``random.Random(start.seed)``, read no clock, and share no state between
connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from ._anabranch import Demand, File, Lost, Sample, Session, Start, Subflow, View, Windows

__all__ = [
    "RESCUE",
    "UNBOUNDED",
    "Controller",
    "Copy",
    "Demand",
    "File",
    "Lost",
    "Pick",
    "Sample",
    "Scheduler",
    "Send",
    "Session",
    "Start",
    "Striping",
    "Subflow",
    "View",
    "Windows",
]

UNBOUNDED: Final = 2**32 - 1
"""An unbounded slow-start threshold."""


class Controller:
    """A congestion control: it sets the size of the window. The sender decides which segments are
    retransmitted.

    Each connection has its own object, which is made again when the handshake is over. Subclasses
    override the methods that they need and set :attr:`cwnd` and :attr:`ssthresh`; the sender
    ignores fractions of a byte. Methods that a class does not define cost nothing.
    """

    cwnd: float
    """Congestion window in bytes, 0 to 2^32 - 1. A value below one segment counts as one
    segment."""
    ssthresh: float
    """Slow-start threshold in bytes, 0 to 2^32 - 1; :data:`UNBOUNDED` at the start."""
    pacing_rate: float | None = None
    """Pacing rate in bytes per second, at least 1; ``None`` paces by window and round-trip time."""
    answers_marks: bool = True
    """Whether the window is reduced on ECN marks (RFC 3168). If not, data is never ECT. Read once,
    when a connection begins.
    """
    wants_samples: bool = False
    """Whether the algorithm uses rate samples: :meth:`on_sample` and :meth:`on_lost` are called,
    and its window also applies in a recovery. Read once, when a connection begins.
    """
    limits_itself: bool = False
    """Whether the algorithm currently limits itself on purpose: samples of data sent now do not
    show the path's rate.
    """

    def __init__(self, start: Start) -> None:
        """Starts with the windows of the connection."""
        self.cwnd = start.cwnd
        self.ssthresh = start.ssthresh

    def on_ack(self, now: float, view: View, acked: int) -> None:
        """``acked`` new bytes were acknowledged outside of recovery."""

    def on_delivery(self, now: float, mss: int, acked: int) -> None:
        """An acknowledgement of ``acked`` new bytes has arrived, in recovery or not; 0 for a
        duplicate.
        """

    def on_rtt(self, now: float, view: View, rtt: float) -> None:
        """A round-trip time was measured."""

    def on_slow_start_end(self, now: float, view: View) -> None:
        """The queue at the bottleneck grows (RFC 9406): slow start ends without a loss."""

    def on_loss(self, now: float, view: View) -> None:
        """Duplicate acknowledgements or SACK showed a loss. Called once per recovery."""

    def on_mark(self, now: float, view: View) -> None:
        """The peer has echoed an ECN mark. Called once per window; the default is
        :meth:`on_loss`."""
        self.on_loss(now, view)

    def on_recovered(self, now: float, view: View) -> None:
        """The recovery is over."""

    def on_timeout(self, now: float, view: View) -> None:
        """The retransmission timer has expired."""

    def on_spurious(self, now: float, view: View, prior: Windows) -> None:
        """The last loss or time-out was spurious; ``prior`` are the windows before it (RFC
        4015)."""

    def on_idle(self, now: float, view: View) -> None:
        """Data follows after a silence longer than one retransmission time-out (RFC 5681 section
        4.1).
        """

    def on_sample(self, now: float, view: View, sample: Sample) -> None:
        """An acknowledgement reports new arrivals. Called after all other methods for this
        acknowledgement.
        """

    def on_lost(self, now: float, view: View, lost: Lost) -> None:
        """A segment was found lost."""

    def on_restart(self, now: float, view: View) -> None:
        """Data follows after the network became empty, because the application had nothing to
        send."""


@final
@dataclass(frozen=True, slots=True)
class Send:
    """Sends the next segment on a subflow, after skipping bytes that were never assigned."""

    index: int
    """:attr:`Subflow.index` of the subflow."""
    skip: int = 0
    """Number of skipped bytes, less than :attr:`Demand.unsent`."""


@final
@dataclass(frozen=True, slots=True)
class Copy:
    """Sends a copy of data that other subflows have and this one lacks."""

    index: int
    """:attr:`Subflow.index` of the subflow."""


@final
class _Rescue:
    def __repr__(self) -> str:
        return "RESCUE"


RESCUE: Final = _Rescue()
"""Sends data that is late on a slow subflow on a faster one with room."""

Pick = int | Send | Copy | _Rescue | None
"""Decision about the next segment: the index of a subflow or :class:`Send` sends it; ``None``
waits.
"""


class Scheduler:
    """A scheduler of Multipath TCP: it selects the subflow of the next segment. Each connection has
    its own object.
    """

    def pick(self, demand: Demand, paths: list[Subflow]) -> Pick:
        """Decides about the next segment. ``paths`` are the subflows that carry data, at least one,
        in the order of their opening. Called again until it returns ``None``.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `pick`")


class Striping:
    """A striping policy of SET: it selects the session of the next chunk. Each transfer has its own
    object.
    """

    def choose(self, sessions: list[Session], file: File) -> int | None:
        """Returns the index in ``sessions`` of the session that gets the next chunk. ``None``, or a
        session that is not usable, waits.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `choose`")
