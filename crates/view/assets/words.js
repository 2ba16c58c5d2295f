// What numbers mean, in words.

const REASONS = ["the queue was full", "lost on the channel", "the link was down", "no route", "hop limit used up", "too big", "the node was dead", "held by a cache", "waited in vain for a route", "dropped early by the queue"];
const REPAIRS = ["not repaired", "end to end", "by a cache on the way", "by another subflow", "by the session layer", "by the link layer", "nothing was missing", "needs no repair", "given up by the link layer"];
const TCP = 1;
const SYN = 2;
const FIN = 4;
const RST = 8;
const ACK = 16;
const FRAGMENT = 64;
const FRAME_KINDS = ["data", "acknowledgement", "RTS", "CTS"];

/** A number with the digits that say something. */
function round(value, digits = 3) {
  if (!Number.isFinite(value)) return "-";
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 9, useGrouping: true });
}

/** Nanoseconds as seconds, to so many places. */
function seconds(nanos, places = 4) {
  return (nanos / 1e9).toFixed(places);
}

/** A span of nanoseconds with its unit. */
function span(nanos) {
  if (nanos >= 1e9) return `${round(nanos / 1e9)} s`;
  if (nanos >= 1e6) return `${round(nanos / 1e6)} ms`;
  return `${round(nanos / 1e3)} µs`;
}

/** A rate in bit/s with its unit. */
function rate(bits) {
  if (bits >= 1e9) return `${round(bits / 1e9)} Gbit/s`;
  if (bits >= 1e6) return `${round(bits / 1e6)} Mbit/s`;
  if (bits >= 1e3) return `${round(bits / 1e3)} kbit/s`;
  return `${bits} bit/s`;
}

/**
 * A share of 1 in percent. One that is not nothing does not read as nothing, and one that is not
 * all not as all.
 */
function percent(share) {
  const whole = Math.round(share * 100);
  if (whole === 0 && share > 0) return "<1 %";
  return `${share < 1 ? Math.min(99, whole) : 100} %`;
}

/** Names of what a run has. */
class Names {
  constructor(run) {
    this.run = run;
    this.facts = run.facts;
  }

  node(node) {
    return this.facts.nodes[node]?.name ?? "all";
  }

  link(link) {
    const [from, to] = this.facts.links[link];
    return `${this.node(from)} → ${this.node(to)}`;
  }

  flow(flow) {
    const [source, destination, protocol, from, to, , subflow] = this.facts.flows[flow];
    const how = { 6: "TCP", 17: "UDP", 58: "ICMPv6" }[protocol] ?? `protocol ${protocol}`;
    const ports = protocol === 6 || protocol === 17 ? ` ${from}→${to}` : "";
    const part = subflow === null ? "" : `, subflow ${subflow + 1}`;
    return `${this.node(source)} → ${this.node(destination)}, ${how}${ports}${part}`;
  }

  packet(packet) {
    const { packet: table } = this.run;
    const flags = table.flags[packet];
    const ends = this.facts.flows[table.flow[packet]];
    const where = `${this.node(ends[0])} → ${this.node(ends[1])}`;
    if (!(flags & TCP)) return `${where}, ${table.octets[packet]} bytes`;
    const names = [[SYN, "SYN"], [FIN, "FIN"], [RST, "RST"]].filter(([flag]) => flags & flag).map(([, name]) => name);
    if (flags & FRAGMENT) names.unshift("a piece of");
    if (table.len[packet] > 0) names.push(`bytes ${table.seq[packet]} to ${table.seq[packet] + table.len[packet]}`);
    else if (names.length === 0) names.push(`acknowledges ${table.ack[packet]}`);
    if (table.again[packet]) names.push("again");
    if (table.maker[packet] && !(flags & FRAGMENT)) names.push(`from the cache of ${this.node(table.maker[packet] - 1)}`);
    return `${where}, ${names.join(" ")}`;
  }

  /** Where a loss was. */
  place(loss) {
    const where = this.run.loss.where[loss];
    return [() => this.link(where), () => `at ${this.node(where)}`, () => `on the air from ${this.node(where)}`][this.run.loss.place[loss]]();
  }

  reason(loss) {
    const reason = this.run.loss.reason[loss];
    return reason === 0 ? "nobody received the frame" : REASONS[reason - 1];
  }

  repair(loss) {
    const kind = this.run.loss.repair[loss];
    const by = this.run.loss.by[loss];
    if (kind === 2) return `by the cache of ${this.node(by)}`;
    if (kind === 3 || kind === 4) {
      const [source, destination, , , , , subflow] = this.facts.flows[by];
      return kind === 3 ? `by subflow ${subflow + 1}` : `by the session layer, ${this.node(source)} → ${this.node(destination)}`;
    }
    return REPAIRS[kind];
  }
}
