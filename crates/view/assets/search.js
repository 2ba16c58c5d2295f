// Finding what belongs to a time among hundreds of thousands of rows, which are in order of time.

/** How many of `values[low..high]`, in order, are at most `limit`, added to `low`. */
function after(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

const BLOCK = 256;
const NEW_RATE = 4;

/** Rows that last from a start to an end, in order of their starts; finds those that last at a time. */
class Intervals {
  constructor(starts, ends) {
    this.starts = starts;
    this.ends = ends;
    // The latest end within each block, so that blocks that are over are passed by.
    this.latest = new Float64Array(Math.ceil(starts.length / BLOCK)).fill(-1);
    for (let i = 0; i < ends.length; i += 1) {
      const block = (i / BLOCK) | 0;
      if (ends[i] > this.latest[block]) this.latest[block] = ends[i];
    }
  }

  /** Calls `visit` with every row that has begun by `time` and ends after `since`. */
  each(time, visit, since = time) {
    const begun = after(this.starts, time);
    const blocks = Math.ceil(begun / BLOCK);
    for (let block = 0; block < blocks; block += 1) {
      if (this.latest[block] <= since) continue;
      const end = Math.min(begun, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < end; i += 1) if (this.ends[i] > since) visit(i);
    }
  }
}

/** The rows of each of `count` groups, in order: those of group g are `rows[first[g]..first[g + 1]]`. */
function grouped(groups, count) {
  const first = new Uint32Array(count + 1);
  for (let i = 0; i < groups.length; i += 1) first[groups[i] + 1] += 1;
  for (let g = 0; g < count; g += 1) first[g + 1] += first[g];
  const next = first.slice();
  const rows = new Uint32Array(groups.length);
  for (let i = 0; i < groups.length; i += 1) {
    rows[next[groups[i]]] = i;
    next[groups[i]] += 1;
  }
  return { first, rows };
}

/** Values over time, with the least and the greatest of each block at hand. */
class Series {
  constructor(times, values) {
    this.times = times;
    this.values = values;
    const blocks = Math.ceil(values.length / BLOCK);
    this.low = new Float64Array(blocks).fill(Infinity);
    this.high = new Float64Array(blocks).fill(-Infinity);
    for (let i = 0; i < values.length; i += 1) {
      const block = (i / BLOCK) | 0;
      if (values[i] < this.low[block]) this.low[block] = values[i];
      if (values[i] > this.high[block]) this.high[block] = values[i];
    }
  }

  /** The least and the greatest of rows `from..to`, into `range`; rows without a value are passed by. */
  range(from, to, range) {
    let low = Infinity;
    let high = -Infinity;
    let i = from;
    while (i < to) {
      if (i % BLOCK === 0 && i + BLOCK <= to) {
        const block = i / BLOCK;
        if (this.low[block] < low) low = this.low[block];
        if (this.high[block] > high) high = this.high[block];
        i += BLOCK;
      } else {
        const value = this.values[i];
        if (value < low) low = value;
        if (value > high) high = value;
        i += 1;
      }
    }
    range[0] = low;
    range[1] = high;
  }
}

/** When a link transmits: from when and for how long, one after another. */
class Transmissions {
  constructor(starts, spans) {
    const order = Uint32Array.from(starts.keys());
    // Disciplines other than first in, first out send in another order than that of arrival.
    if (starts.some((start, i) => i > 0 && start < starts[i - 1])) order.sort((a, b) => starts[a] - starts[b]);
    this.starts = Float64Array.from(order, (i) => starts[i]);
    this.spans = Float64Array.from(order, (i) => spans[i]);
    this.before = new Float64Array(order.length);
    for (let i = 1; i < order.length; i += 1) this.before[i] = this.before[i - 1] + this.spans[i - 1];
  }

  /** Nanoseconds of transmission until a time. */
  until(time) {
    const i = after(this.starts, time) - 1;
    return i < 0 ? 0 : this.before[i] + Math.min(this.spans[i], time - this.starts[i]);
  }
}

/** A run as the page has it: its facts, its tables, and indexes over these. */
class Run {
  constructor(facts, tables) {
    this.facts = facts;
    this.start = facts.start;
    // What is shown ends a little after the last thing that there is to see.
    const idle = facts.idle.reduce((sum, [from, to]) => sum + to - from, 0);
    this.end = Math.max(this.start + 1e6, Math.min(facts.end, facts.busy + (facts.busy - facts.start - idle) * 0.02));
    Object.assign(this, tables);
    const { flight, frame, packet, loss } = tables;
    const ends = new Float64Array(flight.rows);
    flight.leaves = new Float64Array(flight.rows);
    for (let i = 0; i < flight.rows; i += 1) {
      // What is under way when the log ends has no end.
      ends[i] = flight.fate[i] === 1 ? Infinity : flight.sent[i] + flight.took[i];
      flight.leaves[i] = flight.sent[i] + flight.waited[i];
    }
    flight.end = ends;
    this.flights = new Intervals(flight.sent, ends);
    frame.end = new Float64Array(frame.rows);
    for (let i = 0; i < frame.rows; i += 1) frame.end[i] = frame.start[i] + frame.took[i];
    this.frames = new Intervals(frame.start, frame.end);
    this.ofFlow = grouped(packet.flow, facts.flows.length);
    this.ofLink = grouped(flight.link, facts.links.length);
    this.statesOf = grouped(tables.state.flow, facts.flows.length);
    // Rates that links get later, with the times from which they have them.
    this.rates = new Map();
    const { change } = tables;
    for (let i = 0; i < change.rows; i += 1) {
      if (change.what[i] !== NEW_RATE) continue;
      const link = change.index[i];
      this.rates.set(link, [...(this.rates.get(link) ?? []), [change.at[i], change.value[i]]]);
    }
    this.transmissions = new Map();
    const lossFlow = new Uint32Array(loss.rows);
    for (let i = 0; i < loss.rows; i += 1) lossFlow[i] = packet.flow[loss.packet[i]];
    this.lossesOf = grouped(lossFlow, facts.flows.length);
    // When packets have arrived at the ends of links, in order.
    const arrivals = [];
    for (let i = 0; i < flight.rows; i += 1) if (flight.fate[i] === 0) arrivals.push(ends[i]);
    this.arrivals = Float64Array.from(arrivals).sort();
  }

  /** What is where at a time; the same is counted in `Replay::at`. */
  moment(time) {
    const links = this.facts.links.length;
    const moment = { queued: new Uint32Array(links), underWay: new Uint32Array(links), onAir: 0, arrived: 0, lost: 0 };
    const { flight } = this;
    this.flights.each(time, (i) => {
      const counts = flight.leaves[i] > time ? moment.queued : moment.underWay;
      counts[flight.link[i]] += 1;
    });
    this.frames.each(time, () => { moment.onAir += 1; });
    moment.arrived = after(this.arrivals, time);
    moment.lost = after(this.loss.at, time);
    return moment;
  }

  /** The rate in bit/s of what a link begins to transmit at a time. */
  rateAt(link, time) {
    const last = this.rates.get(link)?.findLast(([at]) => at < time);
    return last ? last[1] : this.facts.links[link][3];
  }

  /**
   * Nanoseconds that a link has transmitted until a time; the same is counted in `Replay::busy`.
   */
  busy(link, time) {
    let found = this.transmissions.get(link);
    if (!found) {
      found = this.facts.links[link][2] > 0 ? this.framesOf(link) : this.packetsOf(link);
      this.transmissions.set(link, found);
    }
    return found.until(time);
  }

  packetsOf(link) {
    const { flight, packet, ofLink } = this;
    const rows = ofLink.rows.subarray(ofLink.first[link], ofLink.first[link + 1]).filter((i) => flight.end[i] > flight.leaves[i]);
    const took = (i) => {
      const whole = Math.ceil((packet.octets[flight.packet[i]] * 8e9) / this.rateAt(link, flight.leaves[i]));
      return Math.min(whole, flight.end[i] - flight.leaves[i]);
    };
    return new Transmissions(Float64Array.from(rows, (i) => flight.leaves[i]), Float64Array.from(rows, took));
  }

  framesOf(link) {
    const { frame } = this;
    const [from, to] = this.facts.links[link];
    const rows = [];
    for (let i = 0; i < frame.rows; i += 1) if (frame.from[i] === from && frame.to[i] === to + 1) rows.push(i);
    return new Transmissions(Float64Array.from(rows, (i) => frame.start[i]), Float64Array.from(rows, (i) => frame.took[i]));
  }

  /** What a flow with the ends of `flow` the other way round sends; -1 without. */
  back(flow) {
    const [source, destination, protocol, from, to] = this.facts.flows[flow];
    return this.facts.flows.findIndex((f) => f[0] === destination && f[1] === source && f[2] === protocol && f[3] === to && f[4] === from);
  }
}
