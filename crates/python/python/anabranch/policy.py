"""Policies written in Python: congestion control, schedulers of Multipath TCP, striping policies of SET.

>>> class Half(anabranch.Controller):
...     def on_ack(self, now, view, acked):
...         self.cwnd = min(self.cwnd + acked / 2, view.limit)
...     def on_loss(self, now, view):
...         self.cwnd = self.ssthresh = max(view.in_flight / 2, view.least_ssthresh)
...     def on_timeout(self, now, view):
...         self.on_loss(now, view)
>>> scenario = anabranch.Scenario.from_file("scenarios/dumbbell.toml").with_congestion("half", Half)
>>> anabranch.run(scenario.set("tcp.default.congestion", "half"))

Methods are called while the simulation stands still, and see time as an argument: seconds since its start. Windows are bytes, times
are seconds, rates are bytes per second. What a method raises ends the run, and is raised by whatever has begun it. For the
same results each time, draw random numbers from ``random.Random(start.seed)``, and look at no clock and at nothing that other
connections share.
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
"""A slow-start threshold without a bound."""


class Controller:
    """A congestion control: how large the window is, and nothing else. What is sent again is the sender's affair.

    A new object is made for each connection, and made once more when its handshake is over. Subclasses set :attr:`cwnd` and
    :attr:`ssthresh`, whose fractions of a byte count for the subclass alone, in whichever methods they need; those that a class
    does not have cost nothing.
    """

    cwnd: float
    """The congestion window in bytes, 0 to 2^32 - 1. Less than a segment is taken to be a segment."""
    ssthresh: float
    """The slow-start threshold in bytes, 0 to 2^32 - 1; :data:`UNBOUNDED` at the start."""
    pacing_rate: float | None = None
    """Bytes per second at which data leaves, at least 1; ``None`` leaves pacing to the window and the round trip."""
    answers_marks: bool = True
    """The window yields to marks of the network (RFC 3168). If not, data is never ECT. Read once, when a connection begins."""
    wants_samples: bool = False
    """The algorithm works from rate samples: :meth:`on_sample` and :meth:`on_lost` are called, and its window holds in a recovery
    too. Read once, when a connection begins."""
    limits_itself: bool = False
    """It holds back on purpose: samples of what is sent now say nothing of the path's rate."""

    def __init__(self, start: Start) -> None:
        """Takes the windows that the connection begins with."""
        self.cwnd = start.cwnd
        self.ssthresh = start.ssthresh

    def on_ack(self, now: float, view: View, acked: int) -> None:
        """``acked`` new bytes were acknowledged outside of recovery."""

    def on_delivery(self, now: float, mss: int, acked: int) -> None:
        """An acknowledgement has come, in recovery or not, of ``acked`` new bytes; 0 is a duplicate."""

    def on_rtt(self, now: float, view: View, rtt: float) -> None:
        """A round trip was measured."""

    def on_slow_start_end(self, now: float, view: View) -> None:
        """The queue at the bottleneck grows (RFC 9406): slow start ends here, without a loss."""

    def on_loss(self, now: float, view: View) -> None:
        """Duplicate acknowledgements or SACK showed a loss: once per recovery."""

    def on_mark(self, now: float, view: View) -> None:
        """The peer has echoed a mark of the network: once per window. As a loss, unless a class knows better."""
        self.on_loss(now, view)

    def on_recovered(self, now: float, view: View) -> None:
        """The recovery is over."""

    def on_timeout(self, now: float, view: View) -> None:
        """The retransmission timer ran out."""

    def on_spurious(self, now: float, view: View, prior: Windows) -> None:
        """The last loss or time-out was none, and ``prior`` is how things stood before (RFC 4015)."""

    def on_idle(self, now: float, view: View) -> None:
        """Data follows after longer than one time-out of silence (RFC 5681 section 4.1)."""

    def on_sample(self, now: float, view: View, sample: Sample) -> None:
        """An acknowledgement says that something has arrived. Comes after all else that the acknowledgement has to tell."""

    def on_lost(self, now: float, view: View, lost: Lost) -> None:
        """A segment was found lost."""

    def on_restart(self, now: float, view: View) -> None:
        """Data follows after the network has become empty, because the application has had nothing to send."""


@final
@dataclass(frozen=True, slots=True)
class Send:
    """The next segment goes on a subflow, after passing over bytes that were never assigned."""

    index: int
    """:attr:`Subflow.index`."""
    skip: int = 0
    """Bytes, less than :attr:`Demand.unsent`."""


@final
@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of what other subflows have and this one lacks."""

    index: int
    """:attr:`Subflow.index`."""


@final
class _Rescue:
    def __repr__(self) -> str:
        return "RESCUE"


RESCUE: Final = _Rescue()
"""What is late on a slow subflow goes on a faster one with room."""

Pick = int | Send | Copy | _Rescue | None
"""What is to be done with the next segment: the index of a subflow or :class:`Send` sends it, ``None`` waits."""


class Scheduler:
    """A scheduler of Multipath TCP: which subflow carries the next segment. A new object is made for each connection."""

    def pick(self, demand: Demand, paths: list[Subflow]) -> Pick:
        """What is to be done with the next segment. ``paths`` are the subflows that carry data, at least one, in the order of opening;
        an index is that of :attr:`Subflow.index`. Asked again until it waits."""
        raise NotImplementedError(f"{type(self).__name__} has no method `pick`")


class Striping:
    """A striping policy of SET: which session gets the next chunk. A new object is made for each transfer."""

    def choose(self, sessions: list[Session], file: File) -> int | None:
        """The place in ``sessions`` of the one that gets the next chunk; ``None`` waits, as does a session that is not
        usable."""
        raise NotImplementedError(f"{type(self).__name__} has no method `choose`")
