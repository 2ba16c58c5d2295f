"""Closed forms of the papers, evaluated without a simulation.

Every function returns a :class:`Plan`: a table, and single numbers in :attr:`Plan.facts`.
``printed=True`` uses the papers' equations as printed, including their errors. Times are seconds or
strings such as ``"25 ms"``; sizes are bytes or strings such as ``"129 kB"``; rates are bit/s or
strings such as ``"250 kbit/s"``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from . import _anabranch as native
from ._error import Error
from ._table import Table, _kind, _plain
from .lab import _assignments

Phy = Literal["oqpsk250", "fsk100", "cellular"]
"""Link type of a hop: IEEE 802.15.4 at 250 kbit/s or 100 kbit/s, or a cellular network."""


class Plan(Table):
    """Result of a closed form."""

    def __init__(self, model: str, facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = [(name, _unit(name), [row.get(name) for row in rows]) for name in names]
        super().__init__(native.Frame.of([(name, unit, _kind(v), _plain(v)) for name, unit, v in columns]))
        self.model = model
        """Name of the closed form."""
        self.facts: dict[str, Any] = dict(facts)
        """Single numbers by name. The end of the name is the unit: ``_s``, ``_bytes``; other names
        have no unit.
        """

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value:.6g}" for name, value in self.facts.items() if isinstance(value, float))
        return f"<Plan {self.model}: {len(self)} rows, {facts}>"


def set(parameters: Mapping[str, Any] | None = None, /, *, printed: bool = False, **more: Any) -> Plan:  # noqa: A001
    """Latency of a SET transfer by number of gateways, its parts, and the best number of gateways.

    ``parameters`` are those of the experiment ``set`` (:func:`anabranch.lab.experiments`), as a
    mapping or as keywords; a list of values gives a plan for each. Rows: the given parameters,
    ``gateways``, ``latency_s`` and its parts, and whether this number is ``best``. Facts, if there
    is one combination: ``best_gateways``, ``latency_s``.
    """
    given = {**(parameters or {}), **more}
    answers = [json.loads(text) for text in native.plan_set(_assignments(given), printed)]
    rows = []
    for answer in answers:
        asked = {name: answer["params"][name] for name in given if name != "gateways"}
        for option in answer["options"]:
            parts = {name: value for name, value in option.items() if name != "paths"}
            rows.append({**asked, **parts, "best": option["gateways"] == answer["best_gateways"]})
    facts = {name: answers[0][name] for name in ("best_gateways", "latency_s")} if len(answers) == 1 else {}
    return Plan("set", facts, rows)


def csma(
    busy: float | Sequence[float] = 0.5,
    *,
    min_be: int = 3,
    max_be: int = 5,
    backoffs: int = 4,
    phy: Phy = "fsk100",
    printed: bool = False,
) -> Plan:
    """IEEE 802.15.4 channel access: number of back-off periods until a node gains the channel, and
    its probability.

    ``busy`` is the probability that the channel is found busy, or one for each period in turn, of
    which the last applies to all later periods. Rows: one for each back-off, ``window`` in periods,
    ``p_reached``, ``p_busy``. Facts: ``n_bp`` (mean number of periods), ``p_won``, ``p_lost``,
    ``delay_s``, and both means for attempts that are won or lost.
    """
    backoff = {"min_be": min_be, "max_be": max_be, "backoffs": backoffs}
    each = None if isinstance(busy, int | float) else [float(one) for one in busy]
    constant = float(busy) if isinstance(busy, int | float) else 0.0
    answer = json.loads(native.plan_csma(backoff, constant, each, phy, printed))
    names = ("n_bp", "n_bp_if_won", "n_bp_if_lost", "p_won", "p_lost", "delay_s", "delay_if_won_s")
    rows = [{"backoff": i, **stage} for i, stage in enumerate(answer["stages"])]
    return Plan("csma", {name: answer[name] for name in names}, rows)


def rtt(
    hops: int = 1,
    *,
    phy: Phy | Sequence[Phy] = "fsk100",
    busy: float | Sequence[float] = 0.0,
    rate: float | Sequence[float] = 1.0,
    back_busy: float | Sequence[float] | None = None,
    back_rate: float | Sequence[float] | None = None,
    access: Literal["any", "won"] = "any",
    payload: int | str = 100,
    header: int | str = 40,
    queue: int | None = None,
    cellular_rate: float | str = "10 Mbit/s",
    cellular_delay: float | str = 0.0,
    min_be: int = 3,
    max_be: int = 5,
    backoffs: int = 4,
    printed: bool = False,
) -> Plan:
    """Round-trip time over a path of 802.15.4 and cellular hops, and its parts.

    ``phy``, ``busy`` (probability that a transmitter finds the channel busy) and ``rate`` (packets
    per second that it has to send, including those of others) are one value for all hops, or one
    for each hop from the node on. ``back_busy`` and ``back_rate`` are those of the reverse path,
    from the data centre on (default: the same time). ``access`` selects the mean of channel access
    over all attempts or over those that are won. ``payload`` and ``header`` are bytes of a packet,
    ``queue`` is the largest number of packets that a node holds. Rows: one for each hop, with
    ``way`` there or back, and the parts of its time. Facts: ``rtt_s``, ``syn_s``, ``ack_s``,
    ``first_packet_s``, ``next_packet_s``, ``p_gained``.
    """
    packets = _packets(payload, header, queue, cellular_rate, cellular_delay, (min_be, max_be, backoffs), printed)
    there = _hops(hops, phy, busy, rate)
    back = None
    if back_busy is not None or back_rate is not None:
        # The reverse path begins at the last hop.
        back = {
            "phy": there["phy"][::-1],
            "busy": there["busy"][::-1] if back_busy is None else _each("back_busy", back_busy, hops),
            "rate": there["rate"][::-1] if back_rate is None else _each("back_rate", back_rate, hops),
        }
    answer = json.loads(native.plan_rtt(there, back, access == "won", packets))
    names = ("rtt_s", "syn_s", "ack_s", "first_packet_s", "next_packet_s", "p_gained")
    rows = [
        {"way": way, "hop": i, **hop}
        for way, side in (("there", "forward"), ("back", "reverse"))
        for i, hop in enumerate(answer[side], start=1)
    ]
    return Plan("rtt", {name: answer[name] for name in names}, rows)


class Path(TypedDict, total=False):
    """A path of :func:`schedule`: either ``hops``, ``phy``, ``busy`` and ``rate`` as in
    :func:`rtt`, or ``rtt``, ``first`` (delivery time of the first packet) and ``next`` (of each
    further one), in seconds or strings. Both: ``loss`` (a probability), ``cwnd``, ``ssthresh``,
    ``w_min``, ``w_max`` (packets), ``rto``.
    """

    hops: int
    phy: Phy | Sequence[Phy]
    busy: float | Sequence[float]
    rate: float | Sequence[float]
    rtt: float | str
    first: float | str
    next: float | str
    loss: float
    cwnd: int
    ssthresh: int
    rto: float | str
    w_min: int
    w_max: int


def schedule(
    paths: Iterable[Path],
    *,
    payload: int | str = 100,
    header: int | str = 40,
    queue: int | None = None,
    cellular_rate: float | str = "10 Mbit/s",
    cellular_delay: float | str = 0.0,
    min_be: int = 3,
    max_be: int = 5,
    backoffs: int = 4,
    printed: bool = False,
) -> Plan:
    """Multipath TCP: packets for each path before the next slower path delivers its first packet.

    Rows: one for each path, the fastest first, with its number, its times, its window, the
    ``expected`` number of packets and ``packets``. Facts: ``packets`` of all paths.
    """
    packets = _packets(payload, header, queue, cellular_rate, cellular_delay, (min_be, max_be, backoffs), printed)
    answer = json.loads(native.plan_schedule([_path(i, path) for i, path in enumerate(paths, start=1)], packets))
    return Plan("schedule", {"packets": answer["packets"]}, answer["paths"])


def sockbuf(
    gains: Literal["damped", "paper"] = "damped",
    *,
    kp: float | None = None,
    ki: float | None = None,
    kd: float | None = None,
    times: float = 1.0,
    before: float | str = "175 kB",
    after: float | str = "420 kB",
    least: float | str = "1460 B",
    pool: float | str = "2 MB",
    lag: float = 0.0,
    controller: Literal["running", "new"] = "running",
    cycles: int = 2000,
    period: float | str = "500 ms",
) -> Plan:
    """Controlled send buffers: gains, roots, overshoot and settling time after a step of the
    demand.

    ``gains`` selects the paper's gains or the better damped ones. ``kp``, ``ki``, ``kd`` replace
    single gains, and ``times`` multiplies all. The buffer has ``before`` bytes and the demand is
    ``after`` bytes, between ``least`` and ``pool``. ``lag`` is the time constant with which the
    demand becomes known, in cycles; ``period`` is the time between two decisions. Rows: the size
    after each cycle. Facts: ``stable``, ``stable_up_to_times``, ``overshoot`` (share of the step),
    ``rise_s``, ``settling_s`` (within 2 %), and the roots' moduli.
    """
    if not 1 <= cycles <= 1_000_000:
        raise Error(f"`cycles` is {cycles}", hint="1 to 1,000,000")
    asked = {
        "gains": gains, "kp": kp, "ki": ki, "kd": kd, "times": times, "lag": lag, "cycles": cycles,
        "before": _octets(before), "after": _octets(after), "least": _octets(least), "pool": _octets(pool),
        "new": controller == "new", "period": _seconds(period),
    }  # fmt: skip
    if gains not in ("damped", "paper"):
        raise Error(f"`gains` is `{gains}`", hint="`damped` or `paper`")
    answer = json.loads(native.plan_sockbuf(asked))
    names = ("stable", "stable_up_to_times", "overshoot", "rise_cycles", "rise_s", "settling_cycles", "settling_s")
    facts = {name: answer[name] for name in names}
    facts["roots_abs"] = [root["abs"] for root in answer["roots"]]
    rows = [
        {"cycle": i, "time_s": i * _seconds(period), "size_bytes": float(size)}
        for i, size in enumerate(answer["sizes_bytes"])
    ]
    return Plan("sockbuf", facts, rows)


def _packets(
    payload: int | str,
    header: int | str,
    queue: int | None,
    cellular_rate: float | str,
    cellular_delay: float | str,
    backoff: tuple[int, int, int],
    printed: bool,
) -> dict[str, Any]:
    rate = native.bits_per_second(cellular_rate) if isinstance(cellular_rate, str) else float(cellular_rate)
    return {
        "payload": int(_octets(payload)),
        "header": int(_octets(header)),
        "queue": queue,
        "cellular_rate": rate,
        "cellular_delay": _seconds(cellular_delay),
        "backoff": dict(zip(("min_be", "max_be", "backoffs"), backoff, strict=True)),
        "printed": printed,
    }


def _hops(hops: int, phy: str | Sequence[str], busy: float | Sequence[float], rate: float | Sequence[float]) -> dict[str, Any]:
    if not 1 <= hops <= 64:
        raise Error(f"`hops` is {hops}", hint="1 to 64: links on the way, the last one to the data centre included")
    names = [phy] * hops if isinstance(phy, str) else list(phy)
    if len(names) != hops:
        raise Error(f"phy: {len(names)} values for {hops} hops", hint="one for all hops, or one for each")
    return {"phy": names, "busy": _each("busy", busy, hops), "rate": _each("rate", rate, hops)}


def _each(name: str, values: float | Sequence[float], hops: int) -> list[float]:
    each = [float(values)] * hops if isinstance(values, int | float) else [float(value) for value in values]
    if len(each) != hops:
        raise Error(f"{name}: {len(each)} values for {hops} hops", hint="one for all hops, or one for each")
    return each


def _path(number: int, said: Path) -> dict[str, Any]:
    place = f"path {number}"
    unknown = [key for key in said if key not in Path.__annotations__]
    if unknown:
        raise Error(f"unknown key `{unknown[0]}`", place, "one of " + ", ".join(Path.__annotations__))
    times = [key for key in ("rtt", "first", "next") if key in said]
    ways = [key for key in ("phy", "busy", "rate") if key in said]
    if len(times) in (1, 2):
        raise Error("`rtt`, `first` and `next` belong together", place)
    if times and ways:
        raise Error(f"`{ways[0]}` says nothing beside `rtt`, `first` and `next`", place, "leave out either")
    count = said.get("hops", 1)
    hops = None if times else _hops(count, said.get("phy", "fsk100"), said.get("busy", 0.0), said.get("rate", 1.0))
    return {
        "hops": hops,
        "count": count,
        "times": tuple(_seconds(said[key]) for key in ("rtt", "first", "next")) if times else None,
        "loss": said.get("loss", 0.0),
        "cwnd": said.get("cwnd"),
        "ssthresh": said.get("ssthresh"),
        "rto": None if "rto" not in said else _seconds(said["rto"]),
        "w_min": said.get("w_min"),
        "w_max": said.get("w_max"),
    }


def _seconds(value: float | str) -> float:
    return native.seconds(value) if isinstance(value, str) else float(value)


def _octets(value: float | str) -> float:
    return float(native.octets(value)) if isinstance(value, str) else float(value)


def _unit(name: str) -> str:
    ends = {"_per_s": "1/s", "_s": "s", "_bytes": "B"}
    return next((unit for end, unit in ends.items() if name.endswith(end)), "1")
