"""The windows of NewReno, CUBIC and BBR at one bottleneck, and its queue."""

import anabranch as ab
from matplotlib import pyplot as plt

series = ab.run("scenarios/three-controllers.toml").series()
figure, (windows, queue) = plt.subplots(2, sharex=True)
for port, name in ((5001, "NewReno"), (5002, "CUBIC"), (5003, "BBR")):
    ab.plot.series(series["connections"], "cwnd_bytes", where={"node": "a", "peer_port": port}, label=name, ax=windows)
ab.plot.series(series["queues"], "packets", where={"link": "router>b"}, ax=queue)
figure.savefig("series.png")
