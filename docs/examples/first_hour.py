"""Latency of split TCP and of SET over the loss of the radio links, for the network of `mine.toml`."""

import anabranch as ab

kind, loss = "transfer.update.kind", "link.radio*.loss"
grid = {kind: ["split", "set"], loss: [0.0, "1 %", "2 %", "5 %"]}
rows = ab.sweep({"scenario": "mine.toml", "runs": 20, "grid": grid}, progress=False)
for row in ab.compare(rows, "latency_s", by=kind, baseline="split"):
    print(f"loss {row[loss]:.0%}: {row['ratio']:.2f} ± {row['ratio_ci95']:.2f} of the latency of split TCP")
ab.plot.metric(rows, "latency_s", over=loss, by=kind).figure.savefig("mine.png")
