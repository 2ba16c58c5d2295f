from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Literal, final

from typing_extensions import CapsuleType

__all__ = [
    "VERSION",
    "Demand",
    "File",
    "Frame",
    "Lost",
    "Sample",
    "Scenario",
    "Session",
    "Start",
    "Subflow",
    "Sweep",
    "View",
    "Windows",
    "bits_per_second",
    "compared",
    "event_table",
    "lab_list",
    "lab_run",
    "octets",
    "plan_csma",
    "plan_rtt",
    "plan_schedule",
    "plan_set",
    "plan_sockbuf",
    "replay_page",
    "seconds",
    "summary",
    "survival",
    "work_job",
]

VERSION: str

_Brought = tuple[str, str, Callable[..., object], str]
_Progress = Callable[[int, int], object] | None

@final
class Frame:
    @staticmethod
    def of(columns: Sequence[tuple[str, str, str, Sequence[object]]]) -> Frame: ...
    @staticmethod
    def from_ipc(octets: bytes) -> Frame: ...
    @staticmethod
    def from_parquet(octets: bytes) -> Frame: ...
    def metadata(self) -> dict[str, str]: ...
    def __len__(self) -> int: ...
    def columns(self) -> list[tuple[str, str]]: ...
    def values(self, name: str) -> list[int | None] | list[float | None] | list[bool | None] | list[str | None] | None: ...
    def stream(self) -> CapsuleType: ...
    def schema(self) -> CapsuleType: ...
    def to_ipc(self) -> bytes: ...
    def to_parquet(self) -> bytes: ...
    def to_csv(self) -> bytes: ...

@final
class Scenario:
    def __new__(
        cls, name: str, text: str, overrides: Sequence[str], folder: str | PathLike[str], brought: Sequence[_Brought]
    ) -> Scenario: ...
    def resolved(self) -> str: ...
    def to_toml(self) -> str: ...
    def hash(self) -> str: ...
    def stop(self) -> float: ...
    def points(self) -> list[tuple[str, str]]: ...

@final
class Sweep:
    @staticmethod
    def read(path: str | PathLike[str], out: str | PathLike[str] | None) -> Sweep: ...
    @staticmethod
    def parse(name: str, text: str, out: str | PathLike[str] | None) -> Sweep: ...
    @staticmethod
    def of(
        name: str,
        text: str,
        scenario: Scenario,
        folder: str | PathLike[str],
        out: str | PathLike[str] | None,
    ) -> Sweep: ...
    def run(self, threads: int, shard: tuple[int, int], progress: _Progress) -> None: ...
    def record(self, point: int, seed: int, run: int, what: str) -> bytes: ...
    def series(self, point: int, seed: int, run: int, every: str) -> list[tuple[str, Frame]]: ...
    def frame(self) -> tuple[Frame, int, list[int]]: ...
    def parameters(self) -> tuple[list[str], list[str]]: ...
    def foreign(self) -> int: ...
    def name(self) -> str: ...
    def begin(self, shard: tuple[int, int]) -> int: ...
    def take(self, most: int) -> tuple[int, str, int] | None: ...
    def put(self, number: int, rows: bytes) -> int: ...
    def sync(self) -> None: ...

@final
class Start:
    """Initial state for a controller."""

    @property
    def cwnd(self) -> int:
        """Initial window, in bytes. Before the handshake is over it is one segment; the controller
        is made again afterwards.
        """
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold, in bytes."""
    @property
    def mss(self) -> int:
        """Largest payload, in bytes."""
    @property
    def seed(self) -> int:
        """Seed for random choices, different for each connection and run."""

@final
class View:
    """State of the connection that a controller can read."""

    @property
    def mss(self) -> int:
        """Largest payload, in bytes."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight at a loss, a time-out or the end of a recovery."""
    @property
    def peak(self) -> int | None:
        """Largest number of bytes in flight of the window that is being acknowledged. ``None``: no
        further segment fitted into the window.
        """
    @property
    def limit(self) -> int:
        """Largest window, in bytes. Each controller must respect it."""
    @property
    def initial_window(self) -> int:
        """Initial window, in bytes."""
    @property
    def least_ssthresh(self) -> int:
        """Smallest slow-start threshold, in bytes."""
    @property
    def srtt(self) -> float | None:
        """Smoothed round-trip time in seconds; ``None`` before the first measurement."""
    @property
    def min_rtt(self) -> float | None:
        """Smallest measured round-trip time, in seconds."""
    @property
    def byte_counting(self) -> int | None:
        """Largest number of segments that one acknowledgement adds in slow start (RFC 3465).
        ``None``: acknowledgements count, not bytes.
        """
    @property
    def slow_start_divisor(self) -> int:
        """Divisor of the growth in slow start (RFC 9406 section 4.2)."""
    @property
    def repair(self) -> Literal["reno", "newreno", "sack", "first-timeout", "repeated-timeout"]:
        """Method by which the current loss is repaired."""
    @property
    def abe(self) -> bool:
        """Whether a mark reduces the window less than a loss (RFC 8511)."""
    def uses(self, cwnd: float, ssthresh: float) -> bool:
        """Whether the window should grow: it limited the sender, or in slow start more than half of
        it was in use.
        """
    def slow_start_step(self, acked: int) -> int:
        """Returns the number of bytes that slow start adds for ``acked`` bytes (RFC 5681 section
        3.1, RFC 3465 section 2.2).
        """

@final
class Windows:
    """Window and threshold of a controller at some time."""

    @property
    def cwnd(self) -> int:
        """Congestion window, in bytes."""
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold, in bytes."""

@final
class Sample:
    """Rate sample of an acknowledgement, for the segment that was sent last among those that have
    arrived (draft-ietf-ccwg-bbr).
    """

    @property
    def delivery_rate(self) -> int:
        """Delivery rate in bytes per second; 0 if the interval is too short."""
    @property
    def interval(self) -> float:
        """Time in seconds in which ``delivered`` bytes were sent or have arrived, whichever is
        longer.
        """
    @property
    def delivered(self) -> int:
        """Bytes that have arrived since the segment was sent."""
    @property
    def prior_delivered(self) -> int:
        """Bytes that had arrived when the segment was sent."""
    @property
    def total_delivered(self) -> int:
        """Bytes that have arrived so far."""
    @property
    def newly_acked(self) -> int:
        """Bytes newly reported as arrived by this acknowledgement."""
    @property
    def newly_lost(self) -> int:
        """Bytes found lost since the previous sample."""
    @property
    def tx_in_flight(self) -> int:
        """Bytes in the network when the segment was sent, including it."""
    @property
    def lost(self) -> int:
        """Bytes found lost since the segment was sent."""
    @property
    def rtt(self) -> float | None:
        """Round-trip time of the segment in seconds; ``None`` if it was retransmitted."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had no more data when the segment was sent."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window was full at some time in the last round trip."""
    @property
    def in_flight(self) -> int:
        """Bytes in the network now."""
    @property
    def recovering(self) -> bool:
        """Whether a recovery or the repair of a time-out is under way."""
    @property
    def selective(self) -> bool:
        """Whether the peer reports arrivals by SACK."""

@final
class Lost:
    """A segment found lost."""

    @property
    def size(self) -> int:
        """Bytes of the segment."""
    @property
    def tx_in_flight(self) -> int:
        """Bytes in the network when the segment was sent, including it."""
    @property
    def lost(self) -> int:
        """Bytes found lost since the segment was sent, including it."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had no more data when the segment was sent."""
    @property
    def apart(self) -> bool:
        """Whether the segment does not follow the segment that was found lost before it."""
    @property
    def delivered(self) -> int:
        """Bytes that have arrived so far."""
    @property
    def in_flight(self) -> int:
        """Bytes in the network now."""

@final
class Demand:
    """Data to be sent."""

    @property
    def unsent(self) -> int:
        """Bytes that were never assigned."""
    @property
    def window(self) -> int:
        """Bytes that the peer's window allows beyond the data-level acknowledgement."""
    @property
    def in_flight(self) -> int:
        """Bytes assigned and not acknowledged at the data level."""
    @property
    def assigned(self) -> int:
        """Bytes assigned since the beginning."""

@final
class Subflow:
    """A subflow that can take data if it has room."""

    @property
    def index(self) -> int:
        """Index that ``pick`` returns."""
    @property
    def service(self) -> float | None:
        """Transmission time of one segment at the bottleneck in seconds, if known."""
    @property
    def wait(self) -> float:
        """Seconds until the bottleneck has transmitted the data that was already sent."""
    @property
    def loss(self) -> float:
        """Probability that a segment is lost."""
    @property
    def stuck(self) -> bool:
        """Whether a time-out is being repaired."""
    @property
    def rtt(self) -> float:
        """Round-trip time in seconds: the smoothed value, else the expected value, else the initial
        time-out.
        """
    @property
    def rttvar(self) -> float:
        """Mean deviation of round-trip times from ``rtt``, in seconds."""
    @property
    def min_rtt(self) -> float:
        """Smallest measured round-trip time, in seconds."""
    @property
    def mss(self) -> int:
        """Largest payload, in bytes."""
    @property
    def cwnd(self) -> int:
        """Congestion window, in bytes."""
    @property
    def ssthresh(self) -> int:
        """Slow-start threshold, in bytes."""
    @property
    def w_min(self) -> int:
        """Congestion window after a time-out, in segments."""
    @property
    def w_max(self) -> int:
        """Largest congestion window, in segments."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight."""
    @property
    def rto(self) -> float:
        """Retransmission time-out, in seconds."""
    @property
    def room(self) -> int:
        """Bytes that can be sent at once."""
    @property
    def lacks(self) -> bool:
        """Whether the subflow lacks some assigned segment."""
    @property
    def hops(self) -> int | None:
        """Number of links of the path, if known."""
    @property
    def arrival(self) -> float:
        """Estimated seconds until a segment that is sent now arrives."""
    @property
    def overdue(self) -> float:
        """Seconds of silence after which data counts as lost."""
    def takes(self, left: int) -> bool:
        """Whether a whole segment, or all of ``left`` bytes, can be sent at once."""

@final
class Session:
    """A session of SET that can take a chunk."""

    @property
    def room(self) -> int:
        """Bytes that the session's TCP can send at once."""
    @property
    def chunk(self) -> int:
        """Size in bytes of the chunk that the session would get."""
    @property
    def outstanding(self) -> int:
        """Bytes given to the session and not acknowledged by the node."""
    @property
    def rate(self) -> int | None:
        """Delivery rate in bytes per second; ``None`` before the first measurement."""
    @property
    def capacity(self) -> int:
        """Highest recent delivery rate in bytes per second; 0 before the first measurement."""
    @property
    def time_for_chunk(self) -> float:
        """Seconds until the chunk would be acknowledged."""
    @property
    def usable(self) -> bool:
        """Whether the session accepts new chunks."""

@final
class File:
    """The file of a SET transfer."""

    @property
    def unassigned(self) -> int:
        """Bytes that are not assigned to a session, or were taken back."""
    @property
    def buffer(self) -> int:
        """Size of the node's receive buffer in bytes."""

def work_job(letter: str, brought: Sequence[_Brought]) -> bytes: ...
_Parts = tuple[int, float, float | None, float, float]

def summary(values: Sequence[float]) -> _Parts | None: ...
def survival(
    ended: Sequence[float], censored: Sequence[float]
) -> tuple[int, int, float | None, float | None, float | None] | None: ...
def compared(left: Sequence[float], right: Sequence[float]) -> tuple[_Parts, _Parts | None]: ...
def event_table(log: bytes) -> Frame: ...
def replay_page(log: bytes, start: float, end: float | None, limit: int) -> str: ...
def lab_list() -> list[str]: ...
def lab_run(name: str, assignments: Sequence[str], runs: int, seed: int, progress: _Progress) -> list[str]: ...
def plan_set(assignments: Sequence[str], printed: bool) -> list[str]: ...
def plan_csma(
    backoff: Mapping[str, int], busy: float, by_period: Sequence[float] | None, phy: str, printed: bool
) -> str: ...
def plan_rtt(
    there: Mapping[str, object], back: Mapping[str, object] | None, won: bool, packets: Mapping[str, object]
) -> str: ...
def plan_schedule(paths: Sequence[Mapping[str, object]], packets: Mapping[str, object]) -> str: ...
def plan_sockbuf(asked: Mapping[str, object]) -> str: ...
def seconds(text: str) -> float: ...
def octets(text: str) -> int: ...
def bits_per_second(text: str) -> float: ...
