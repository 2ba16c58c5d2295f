"""Makes the synthetic cellular traces of this folder: `python3 make.py` writes them here, the same each time.

Rates wander as in models of cellular links: their logarithm goes at random and back to its mean (an Ornstein-Uhlenbeck process, a
step each 20 ms), with an outage now and then. Moments at which packets may leave are a Poisson process of that rate.
"""
import math
import pathlib
import random


def trace(seed, seconds, mbit_per_s, spread, outages):
    draw = random.Random(seed).random
    mean = math.log(mbit_per_s * 1e6 / 12000)  # packets of 1500 octets in a second

    def normal():
        return math.sqrt(-2 * math.log(1 - draw())) * math.cos(2 * math.pi * draw())

    # `memory` per step: the level forgets its past within a second.
    step, memory = 0.02, math.exp(-0.02)
    level, times, now, due = mean, [], 0.0, -math.log(1 - draw())
    while now < seconds:
        level = mean + memory * (level - mean) + spread * math.sqrt(1 - memory**2) * normal()
        rate = 0 if any(begin <= now < end for begin, end in outages) else math.exp(level)
        # A packet leaves when the integral of the rate has grown by an exponential variable.
        left = rate * step
        at = now
        while left >= due:
            at += due / rate
            left -= due
            times.append(max(1, round(at * 1000)))
            due = -math.log(1 - draw())
        due -= left
        now += step
    # The last entry is the length of the trace, after which mahimahi repeats it.
    times = [time for time in times if time < seconds * 1000] + [seconds * 1000]
    return "".join(f"{time}\n" for time in times)


here = pathlib.Path(__file__).parent
(here / "cellular.down").write_text(trace(1, 10, 3.0, 0.6, [(6.4, 6.7)]))
(here / "cellular.up").write_text(trace(2, 10, 1.0, 0.4, []))
