"""Compares two points of a sweep run by run: `python3 paired.py RUNS.jsonl METRIC`, RUNS.jsonl from `anabranch run --json`."""

import json
import math
import statistics
import sys

path, metric = sys.argv[1:]
points = {}
with open(path) as lines:
    for record in map(json.loads, lines):
        params = json.dumps(record["params"])
        points.setdefault(params, {})[record["run"]] = record["metrics"][metric]["mean"]

(one, first), (other, second) = points.items()
ratios = [math.log(second[run] / first[run]) for run in first]
mean = statistics.fmean(ratios)
# Student's t for 95 % and 19 degrees of freedom, as there are with 20 runs.
half = 2.093 * statistics.stdev(ratios) / math.sqrt(len(ratios))
low, middle, high = (math.exp(x) for x in (mean - half, mean, mean + half))
better = sum(ratio < 0 for ratio in ratios)
print(f"{metric}: {other} against {one}")
print(f"ratio {middle:.3f}, 95 % confidence {low:.3f} to {high:.3f}; smaller in {better} of {len(ratios)} runs")
