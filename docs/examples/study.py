"""SET with 1 to 4 gateways against split TCP over 0 to 10 % radio loss, in pairs, with intervals and a picture."""

import anabranch as ab

kind, gateways, loss = "transfer.update.kind", "transfer.update.gateways", "link.radio*.loss"
network = ab.Scenario.from_file("scenarios/papers/set.toml")
network = network.set({"nodes.gw*.count": 4, "nodes.r*.count": [0] * 4, "file": "42 kB"})
schemes = [{kind: "split", gateways: 1}, *({kind: "set", gateways: count} for count in (1, 2, 3, 4))]
losses = [0.0, "2 %", "5 %", "10 %"]
rows = ab.sweep({"scenario": network, "runs": 20, "point": schemes, "grid": {loss: losses}}, progress=False)

table = ab.compare(rows, "latency_s", by=[kind, gateways], baseline=("split", 1))
for row in table:
    ratio = f"{row['ratio']:.2f} ± {row['ratio_ci95']:.2f}"
    print(f"loss {row[loss]:.0%}, {row[gateways]} gateways: {ratio} of the latency of split TCP, {row['n']} pairs")

ax = ab.plot.ratio(table)
ax.figure.savefig("study.png")
