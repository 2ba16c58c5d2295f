"""A congestion control of one's own beside those that are there already."""

from functools import partial

import anabranch as ab
from anabranch.policy import Start, View


class Aimd(ab.Controller):
    """A segment more with each round trip, and at a loss a part of the window."""

    def __init__(self, start: Start, keep: float = 0.5) -> None:
        super().__init__(start)
        self.keep = keep

    def on_ack(self, now: float, view: View, acked: int) -> None:
        if view.uses(self.cwnd, self.ssthresh):
            slow_start = self.cwnd < self.ssthresh
            self.cwnd = min(self.cwnd + (acked if slow_start else view.mss * acked / self.cwnd), view.limit)

    def on_loss(self, now: float, view: View) -> None:
        self.cwnd = self.ssthresh = max(self.keep * view.in_flight, view.least_ssthresh)

    def on_timeout(self, now: float, view: View) -> None:
        self.on_loss(now, view)
        self.cwnd = view.mss


scenario = ab.Scenario.from_file("scenarios/dumbbell.toml").set("link.bottleneck.queue", "40 packets")
scenario = scenario.with_congestion("aimd", Aimd).with_congestion("gentle", partial(Aimd, keep=0.85))
names = ["aimd", "gentle", "newreno", "cubic"]
result = ab.sweep({"scenario": scenario, "runs": 2, "grid": {"tcp.default.congestion": names}}, progress=False)
for row in result.means("flow1.goodput_bit_per_s"):
    print(f"{row['tcp.default.congestion']:8} {row['mean'] / 1e6:.2f} Mbit/s")
