"""NewReno as the core has it, in Python: what the tests compare, and by itself what a policy written in Python costs.

    python crates/python/tests/newreno.py
"""

from __future__ import annotations

import time
from pathlib import Path

import anabranch as ab
from anabranch.policy import Start, View, Windows


class NewReno(ab.Controller):
    """RFC 5681 with the window arithmetic of RFC 6582, in whole bytes."""

    cwnd: int
    ssthresh: int

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.counted = 0

    def on_ack(self, now: float, view: View, acked: int) -> None:
        if not view.uses(self.cwnd, self.ssthresh):
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += view.slow_start_step(acked)
        elif view.byte_counting is None:
            # RFC 5681 equation 3.
            self.cwnd += max(view.mss * view.mss // max(self.cwnd, 1), 1)
        else:
            self.counted += acked
            if self.counted >= self.cwnd:
                self.counted -= self.cwnd
                self.cwnd += view.mss
        self.cwnd = min(self.cwnd, view.limit)

    def on_slow_start_end(self, now: float, view: View) -> None:
        self.ssthresh = self.cwnd

    def reduce(self, flight: int, view: View) -> None:
        self.cwnd = self.ssthresh = max(flight, view.least_ssthresh)
        self.counted = 0

    def on_loss(self, now: float, view: View) -> None:
        self.reduce(view.in_flight // 2, view)

    def on_mark(self, now: float, view: View) -> None:
        before = self.cwnd
        # RFC 8511 section 3: beta_ecn is 0.8.
        self.reduce(view.in_flight * 4 // 5 if view.abe else view.in_flight // 2, view)
        self.cwnd = min(self.cwnd, before)

    def on_recovered(self, now: float, view: View) -> None:
        if view.repair == "newreno":
            # RFC 6582 section 3.2 step 3, the first choice.
            self.cwnd = min(self.ssthresh, max(view.in_flight, view.mss) + view.mss)

    def on_timeout(self, now: float, view: View) -> None:
        if view.repair != "repeated-timeout":
            self.ssthresh = max(view.in_flight // 2, view.least_ssthresh)
        self.cwnd = view.mss
        self.counted = 0

    def on_spurious(self, now: float, view: View, prior: Windows) -> None:
        self.cwnd = min(max(self.cwnd, prior.cwnd), view.limit)
        self.ssthresh = max(self.ssthresh, prior.ssthresh)

    def on_idle(self, now: float, view: View) -> None:
        self.cwnd = min(self.cwnd, view.initial_window)
        self.counted = 0


class Counting(NewReno):
    """Counts the acknowledgements that it is told of."""

    count = 0

    def on_ack(self, now: float, view: View, acked: int) -> None:
        Counting.count += 1
        super().on_ack(now, view, acked)


def measure(file: str, values: dict[str, object]) -> None:
    """Runs both in turn, and says what the best run of each took."""
    scenario = ab.Scenario.from_file(Path(__file__).resolve().parents[3] / "scenarios" / file).set(values)
    scenario = scenario.with_congestion("mine", NewReno).with_congestion("counting", Counting)
    ab.run(scenario.set("tcp.default.congestion", "counting"))
    best = {"newreno": float("inf"), "mine": float("inf")}
    for _ in range(7):
        for name in best:
            one = scenario.set("tcp.default.congestion", name)
            began = time.process_time()
            ab.run(one)
            best[name] = min(best[name], time.process_time() - began)
    each = (best["mine"] - best["newreno"]) / Counting.count * 1e9
    ratio = best["mine"] / best["newreno"]
    times = f"Rust {best['newreno'] * 1e3:.1f} ms, Python {best['mine'] * 1e3:.1f} ms, ratio {ratio:.2f}"
    print(f"{file}: {Counting.count} acknowledgements, {times}, {each:.0f} ns each")
    Counting.count = 0


if __name__ == "__main__":
    measure("dumbbell.toml", {"stop": "300 s"})
    measure("three-hops-radio.toml", {"stop": "10000 s", "transfer.log.bytes": "1 MB"})
