// Where nodes are that move.

/** The legs of the nodes that move, each in a straight line at a constant speed, in metres. */
class Legs {
  constructor(leg, nodes) {
    this.leg = leg;
    const { first, rows } = grouped(leg.node, nodes.length);
    this.first = first;
    this.rows = rows;
    this.starts = Float64Array.from(rows, (row) => leg.start[row]);
    this.movers = [];
    nodes.forEach((_, node) => {
      if (first[node + 1] > first[node]) this.movers.push(node);
    });
  }

  /** All places that a node comes to, as x and y. */
  *places() {
    const { leg } = this;
    for (let row = 0; row < leg.rows; row += 1) {
      yield [leg.x0[row] / 1000, leg.y0[row] / 1000];
      yield [leg.x1[row] / 1000, leg.y1[row] / 1000];
    }
  }

  /** Where a node that moves is at a time. */
  place(node, time) {
    const { leg, first } = this;
    const last = after(this.starts, time, first[node], first[node + 1]) - 1;
    const row = this.rows[Math.max(last, first[node])];
    const way = Math.max(0, Math.min(1, (time - leg.start[row]) / Math.max(1, leg.took[row])));
    return [(leg.x0[row] + (leg.x1[row] - leg.x0[row]) * way) / 1000, (leg.y0[row] + (leg.y1[row] - leg.y0[row]) * way) / 1000];
  }
}
