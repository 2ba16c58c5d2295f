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
    """What a controller is made from."""

    @property
    def cwnd(self) -> int:
        """The initial window, in bytes. Before the handshake is over it is one segment, and a controller is made again then."""
    @property
    def ssthresh(self) -> int:
        """The slow-start threshold, in bytes."""
    @property
    def mss(self) -> int:
        """Largest payload, in bytes."""
    @property
    def seed(self) -> int:
        """Differs from connection to connection and from run to run, for random choices."""

@final
class View:
    """What a controller may know of its connection."""

    @property
    def mss(self) -> int:
        """Largest payload, in bytes."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight when a loss, a time-out or the end of a recovery is told."""
    @property
    def peak(self) -> int | None:
        """The most bytes of the window that is being acknowledged that were in flight; ``None``: no further segment fitted."""
    @property
    def limit(self) -> int:
        """The window never grows past this, in bytes; each controller keeps to it by itself."""
    @property
    def initial_window(self) -> int:
        """Bytes of the initial window."""
    @property
    def least_ssthresh(self) -> int:
        """The slow-start threshold never falls below this, in bytes."""
    @property
    def srtt(self) -> float | None:
        """Smoothed round-trip time in seconds, once measured."""
    @property
    def min_rtt(self) -> float | None:
        """Smallest round-trip time measured, in seconds."""
    @property
    def byte_counting(self) -> int | None:
        """Most segments that one acknowledgement may add in slow start (RFC 3465); ``None``: acknowledgements count, not bytes."""
    @property
    def slow_start_divisor(self) -> int:
        """What slow start adds is divided by this (RFC 9406 section 4.2)."""
    @property
    def repair(self) -> Literal["reno", "newreno", "sack", "first-timeout", "repeated-timeout"]:
        """How the loss at hand is repaired."""
    @property
    def abe(self) -> bool:
        """A mark takes less than a loss (RFC 8511)."""
    def uses(self, cwnd: float, ssthresh: float) -> bool:
        """The window is worth growing: it held the sender back, or in slow start more than half of it was in use."""
    def slow_start_step(self, acked: int) -> int:
        """Bytes that slow start adds for ``acked`` bytes (RFC 5681 section 3.1, RFC 3465 section 2.2)."""

@final
class Windows:
    """A controller's window and threshold at some time."""

    @property
    def cwnd(self) -> int:
        """The congestion window, in bytes."""
    @property
    def ssthresh(self) -> int:
        """The slow-start threshold, in bytes."""

@final
class Sample:
    """What an acknowledgement shows of the path, by the segment that left last of those that have arrived
    (draft-ietf-ccwg-bbr)."""

    @property
    def delivery_rate(self) -> int:
        """Bytes per second, 0 if the interval is too short to tell."""
    @property
    def interval(self) -> float:
        """The time in seconds in which ``delivered`` bytes were sent or have arrived, whichever is longer."""
    @property
    def delivered(self) -> int:
        """Bytes that have arrived since the segment left."""
    @property
    def prior_delivered(self) -> int:
        """Bytes that had arrived when the segment left."""
    @property
    def total_delivered(self) -> int:
        """Bytes that have arrived by now."""
    @property
    def newly_acked(self) -> int:
        """Bytes that this acknowledgement says have arrived."""
    @property
    def newly_lost(self) -> int:
        """Bytes found lost since the sample before."""
    @property
    def tx_in_flight(self) -> int:
        """Bytes in the network when the segment left, itself included."""
    @property
    def lost(self) -> int:
        """Bytes found lost since the segment left."""
    @property
    def rtt(self) -> float | None:
        """The round trip of the segment in seconds, unless it was sent more than once."""
    @property
    def app_limited(self) -> bool:
        """The application had nothing more to send when the segment left."""
    @property
    def cwnd_limited(self) -> bool:
        """The window was full at some time in the last round trip."""
    @property
    def in_flight(self) -> int:
        """Bytes in the network now."""
    @property
    def recovering(self) -> bool:
        """A recovery is under way, or the repair of a time-out."""
    @property
    def selective(self) -> bool:
        """The peer reports what it has (SACK)."""

@final
class Lost:
    """A segment found lost."""

    @property
    def size(self) -> int:
        """Its bytes."""
    @property
    def tx_in_flight(self) -> int:
        """Bytes in the network when it left, itself included."""
    @property
    def lost(self) -> int:
        """Bytes found lost since it left, itself included."""
    @property
    def app_limited(self) -> bool:
        """The application had nothing more to send when it left."""
    @property
    def apart(self) -> bool:
        """It does not follow the segment that was found lost before it."""
    @property
    def delivered(self) -> int:
        """Bytes that have arrived by now."""
    @property
    def in_flight(self) -> int:
        """Bytes in the network now."""

@final
class Demand:
    """What is to be sent."""

    @property
    def unsent(self) -> int:
        """Bytes never assigned."""
    @property
    def window(self) -> int:
        """Bytes that the peer's window allows beyond what is acknowledged on the level of data."""
    @property
    def in_flight(self) -> int:
        """Bytes assigned and not acknowledged on the level of data."""
    @property
    def assigned(self) -> int:
        """Bytes assigned since the beginning."""

@final
class Subflow:
    """A subflow that could take data, if it has room."""

    @property
    def index(self) -> int:
        """What `pick` returns."""
    @property
    def service(self) -> float | None:
        """Seconds of one segment at the bottleneck, if known."""
    @property
    def wait(self) -> float:
        """Seconds until the bottleneck is free of what was sent already."""
    @property
    def loss(self) -> float:
        """Probability that a segment is lost."""
    @property
    def stuck(self) -> bool:
        """A time-out is being repaired."""
    @property
    def rtt(self) -> float:
        """Round-trip time in seconds: smoothed, or what is expected, or the initial time-out."""
    @property
    def rttvar(self) -> float:
        """How far round-trip times are off that, on average, in seconds."""
    @property
    def min_rtt(self) -> float:
        """The smallest round-trip time measured, in seconds."""
    @property
    def mss(self) -> int:
        """Largest payload, in bytes."""
    @property
    def cwnd(self) -> int:
        """The congestion window, in bytes."""
    @property
    def ssthresh(self) -> int:
        """The slow-start threshold, in bytes."""
    @property
    def w_min(self) -> int:
        """The congestion window after a time-out, in segments."""
    @property
    def w_max(self) -> int:
        """The largest congestion window, in segments."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight."""
    @property
    def rto(self) -> float:
        """The retransmission time-out, in seconds."""
    @property
    def room(self) -> int:
        """Bytes that would leave at once."""
    @property
    def lacks(self) -> bool:
        """Some segment is not on it yet."""
    @property
    def hops(self) -> int | None:
        """Links of the path, if known."""
    @property
    def arrival(self) -> float:
        """Seconds until a segment that leaves now arrives, by what is known of the path."""
    @property
    def overdue(self) -> float:
        """Seconds of silence after which something counts as lost."""
    def takes(self, left: int) -> bool:
        """A whole segment, or all of `left` bytes, would leave at once."""

@final
class Session:
    """A session of SET that could take a chunk."""

    @property
    def room(self) -> int:
        """Bytes that its TCP would send at once."""
    @property
    def chunk(self) -> int:
        """Bytes of the chunk that it would get."""
    @property
    def outstanding(self) -> int:
        """Bytes given to it and not acknowledged by the node."""
    @property
    def rate(self) -> int | None:
        """Bytes per second that it delivers, once measured."""
    @property
    def capacity(self) -> int:
        """Bytes per second that it has delivered at best of late; 0 before anything is measured."""
    @property
    def time_for_chunk(self) -> float:
        """Seconds until the chunk would be acknowledged."""
    @property
    def usable(self) -> bool:
        """New chunks are welcome."""

@final
class File:
    """The file that a transfer of SET carries."""

    @property
    def unassigned(self) -> int:
        """Bytes that no session has been given, or that were taken back."""
    @property
    def buffer(self) -> int:
        """Bytes of the node's receive buffer."""

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
